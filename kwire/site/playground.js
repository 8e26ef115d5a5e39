"use strict";
// The playground: asks the worker for what kwire's command line says of the bytes, and shows it. Text from the bytes is
// only ever put into the page as text.
(() => {
  const at = (id) => document.getElementById(id), setting = at("setting");
  if (!setting) return;
  const here = document.baseURI, CAPTURE = "/tmp/capture", MOST_ROWS = 2000, MOST_LINK = 60000, MOST_LINES = 20000;
  const MAGIC = [[0xa1, 0xb2, 0xc3, 0xd4], [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x4d, 0x3c, 0xb2, 0xa1], [0x0a, 0x0d, 0x0d, 0x0a]];
  const paths = {
    pyodide: new URL(setting.dataset.pyodide, here).href,
    code: new URL(setting.dataset.code, here).href,
  };
  let worker = null, number = 0, given = null;
  const waiting = new Map();

  // ---------------------------------------------------------------- the worker

  const begin = () => {
    worker = new Worker(new URL("worker.js", here), { type: "module" });
    worker.onmessage = ({ data }) => {
      const { keep, fail } = waiting.get(data.id) || {};
      waiting.delete(data.id);
      if (keep) data.failed === undefined ? keep(data.answer) : fail(new Error(data.failed));
    };
    worker.onerror = (event) => end(event.message || "the worker could not be started");
  };
  const end = (why) => {
    if (worker) worker.terminate();
    worker = null;
    for (const { fail } of waiting.values()) fail(new Error(why));
    waiting.clear();
  };
  const ask = (asked) => new Promise((keep, fail) => {
    if (!worker) begin();
    waiting.set(++number, { keep, fail });
    worker.postMessage({ id: number, setting: paths, ...asked });
  });
  const run = (args, input, more) => ask({ run: args, input, columns: columns(), ...more });

  const columns = () => {
    const probe = document.createElement("span"), out = at("out"), text = "0".repeat(100);
    probe.textContent = text;
    probe.style.cssText = "position:absolute;visibility:hidden;white-space:pre";
    const hidden = getComputedStyle(out).display === "none";
    out.append(probe);
    if (hidden) out.style.display = "block";
    const wide = Math.floor((out.clientWidth * 100) / probe.getBoundingClientRect().width) - 2;
    out.style.display = "";
    probe.remove();
    return Math.max(60, Math.min(160, wide || 100));
  };

  // ---------------------------------------------------------------- what is shown

  const show = (answer) => {
    const out = at("out");
    const rows = answer.lines.slice(0, MOST_LINES).flatMap((line) => {
      const row = document.createElement("span");
      row.className = "l";
      row.append(...line.map(([text, style]) => {
        if (!style) return text;
        const piece = document.createElement("span");
        piece.className = style;
        piece.textContent = text;
        return piece;
      }));
      return [row, "\n"];
    });
    const left = answer.lines.length - MOST_LINES;
    if (left > 0) rows.push(`… ${left.toLocaleString("en")} lines more: kwire decode shows them\n`);
    out.replaceChildren();
    for (const row of rows) out.append(row);
    out.dataset.columns = answer.columns;
    out.dataset.status = answer.status;
    at("said").textContent = answer.said;
  };
  const busy = async (what, work) => {
    at("stop").disabled = false;
    at("state").textContent = worker ? what : `${what} Python is loaded first, which takes some seconds.`;
    try {
      await work();
      at("state").textContent = "";
    } catch (error) {
      at("state").textContent = `Not done: ${error.message}`;
    }
    at("stop").disabled = waiting.size === 0;
  };

  const options = () => {
    const args = ["--input", given ? "auto" : at("input").value, "--format", at("format").value];
    if (at("as").value.trim()) args.push("--as", at("as").value.trim());
    if (at("v").value.trim()) args.push("-v", at("v").value.trim());
    if (at("full").checked) args.push("--full");
    return args;
  };
  const input = () => given || new TextEncoder().encode(at("bytes").value);
  const decode = () => busy("Decoding.", async () => {
    at("out").replaceChildren();
    show(await run(["decode", ...options()], input()));
  });

  // ---------------------------------------------------------------- files and captures

  const isCapture = (bytes) => MAGIC.some((magic) => magic.every((byte, index) => bytes[index] === byte));
  const take = async (file) => {
    const bytes = new Uint8Array(await file.arrayBuffer());
    at("exchanges").replaceChildren();
    if (isCapture(bytes) || (bytes[0] === 0x1f && bytes[1] === 0x8b) || /\.pcap(ng)?(\.\w+)?$/.test(file.name)) return capture(bytes);
    given = bytes;
    at("bytes").value = `${clean(file.name)}: ${bytes.length.toLocaleString("en")} bytes`;
    return decode();
  };

  const capture = (bytes) => busy("Reading the capture.", async () => {
    at("out").replaceChildren();
    if (setting.dataset.captures === "no") throw new Error("this site's Pyodide has no numpy, which captures need; kwire read CAPTURE reads it");
    await ask({ keep: CAPTURE, input: bytes, numpy: true });
    const answer = await run(["read", CAPTURE, "--format", "json"], new Uint8Array());
    const rows = answer.lines.map((line) => line.map(([text]) => text).join("")).filter(Boolean).map((line) => JSON.parse(line));
    at("said").textContent = answer.said;
    list(rows);
  });
  const paired = (rows) => {
    const open = new Map(), exchanges = [];
    for (const row of rows) {
      const key = `${row.connection} ${row.correlation_id}`, asked = open.get(key);
      if (row.kind === "response" && asked) {
        asked.response = row;
        open.delete(key);
        continue;
      }
      exchanges.push({ request: row.kind === "response" ? null : row, response: row.kind === "response" ? row : null });
      if (row.kind === "request") open.set(key, exchanges[exchanges.length - 1]);
    }
    return exchanges;
  };
  // Controls and marks of direction are spelled, as wire/visible.py does: JSON gives them back as they are.
  const clean = (text) => String(text ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (char) => {
    const code = char.codePointAt(0), digits = code < 256 ? 2 : code < 65536 ? 4 : 8;
    return `\\${{ 2: "x", 4: "u", 8: "U" }[digits]}${code.toString(16).padStart(digits, "0")}`;
  });
  const count = (number) => (number === null || number === undefined ? "" : number.toLocaleString("en"));
  const list = (rows) => {
    const exchanges = paired(rows), table = document.createElement("table"), head = table.createTHead().insertRow();
    const more = exchanges.length > MOST_ROWS ? `, the first ${count(MOST_ROWS)} shown` : "";
    table.createCaption().textContent = `${count(exchanges.length)} exchanges${more}`;
    for (const text of ["time", "exchange", "connection", "client", "sent", "got", "took", "about", "outcome"]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = text;
      head.append(cell);
    }
    const body = table.createTBody();
    for (const { request, response } of exchanges.slice(0, MOST_ROWS)) {
      const line = body.insertRow(), button = document.createElement("button"), row = request || response;
      const outcome = document.createElement("span"), wrong = [response, request].find((one) => one && one.quality !== "ok");
      button.type = "button";
      button.textContent = row.api ? `${row.api} v${row.api_version}` : row.kind ?? "bytes";
      button.addEventListener("click", () => frames(request, response));
      outcome.textContent = response?.error ?? (wrong ? wrong.quality : response ? "ok" : "no answer here");
      outcome.className = response?.error || wrong ? "error" : "dim";
      const time = typeof row.time === "number" ? new Date(row.time / 1e6).toISOString().slice(11, 23) : row.time;
      const took = response?.latency_ns ? `${(response.latency_ns / 1e6).toFixed(1)} ms` : "";
      const about = [row.group ? `group ${row.group}` : "", ...(row.topics || []).slice(0, 3)].filter(Boolean).join(" ");
      const cells = [time, button, row.connection, row.client_id, count(request?.size), count(response?.size), took, about, outcome];
      for (const content of cells) line.insertCell().append(content instanceof Node ? content : clean(content));
    }
    at("exchanges").replaceChildren(table);
  };
  const frames = (request, response) => busy("Decoding.", async () => {
    const row = request || response, together = !request || !response || request.index === response.index;
    const where = together ? ["--connection", row.connection, "--index", String(row.index)]
      : ["--frame", String(request.packet), "--frame", String(response.packet)];
    show(await run(["decode", CAPTURE, ...where, ...(at("full").checked ? ["--full"] : [])], new Uint8Array()));
    at("out").scrollIntoView({ block: "start" });
  });

  // ---------------------------------------------------------------- the link

  const pack = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const unpack = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
  const share = async () => {
    const parts = new URLSearchParams(), bytes = input();
    for (const name of ["as", "v"]) if (at(name).value.trim()) parts.set(name, at(name).value.trim());
    if (at("format").value !== "text") parts.set("format", at("format").value);
    if (at("input").value !== "auto") parts.set("input", at("input").value);
    if (bytes.length < MOST_LINK) parts.set(given ? "raw" : "d", pack(bytes));
    if (bytes.length >= MOST_LINK || parts.toString().length > MOST_LINK) {
      at("state").textContent = "These bytes are too long for a link.";
      return;
    }
    history.replaceState(null, "", `#${parts}`);
    try {
      await navigator.clipboard.writeText(location.href);
      at("state").textContent = "The link is in the clipboard; the bytes are in it, and nowhere else.";
    } catch {
      at("state").textContent = "The link is in the address bar; the bytes are in it, and nowhere else.";
    }
  };
  const open = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    for (const name of ["as", "v", "format", "input"]) if (parts.get(name)) at(name).value = parts.get(name);
    try {
      given = null;
      if (parts.has("hex")) at("bytes").value = (parts.get("hex").match(/.{1,2}/g) || []).join(" ");
      else if (parts.has("d")) at("bytes").value = new TextDecoder().decode(unpack(parts.get("d")));
      else if (parts.has("raw")) {
        given = unpack(parts.get("raw"));
        at("bytes").value = `from the link: ${given.length.toLocaleString("en")} bytes`;
      } else return;
    } catch {
      at("state").textContent = "The link is damaged.";
      return;
    }
    decode();
  };

  if (location.protocol === "file:") {
    at("state").textContent = "Browsers run Python only from a server: python3 -m http.server in the site's folder is one.";
    at("go").disabled = true;
    return;
  }
  at("go").addEventListener("click", decode);
  at("stop").addEventListener("click", () => end("stopped"));
  at("share").addEventListener("click", share);
  at("bytes").addEventListener("input", () => { given = null; });
  at("bytes").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) decode(); });
  at("file").addEventListener("change", () => { if (at("file").files[0]) take(at("file").files[0]); });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
  window.addEventListener("hashchange", open);
  open();
})();

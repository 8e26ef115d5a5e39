"use strict";
// The search of every page: the index is a script beside the pages, loaded at the first key. It ranks as render/search.py
// does, and takes the beginnings of words too.
(() => {
  const field = document.getElementById("q"), list = document.getElementById("found");
  const root = list.dataset.root, TITLE = 20, NAME = 5, TEXT = 1, MOST = 30;
  let rows = null, loading = false;
  field.closest(".search").hidden = false;

  globalThis.kwireFound = (found) => {
    rows = found.map((row) => ({ row, places: row.slice(4, 7).map((text) => text.split(" ")) }));
    show();
  };

  const load = () => {
    if (loading) return;
    loading = true;
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    document.head.append(script);
  };

  const stem = (word) => {
    const small = word.toLowerCase();
    return small.length > 4 ? small.replace(/(ing|ed|es|s|e)$/, "") : small;
  };
  const words = (text) => {
    const found = new Set();
    for (const run of text.replaceAll("_", " ").match(/[\p{L}\p{N}]+/gu) || []) {
      const parts = run.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g) || [];
      parts.forEach((part) => found.add(stem(part)));
    }
    return [...found];
  };

  const worth = (word, places) => {
    for (const [place, value] of [[places[0], TITLE], [places[1], NAME], [places[2], TEXT]]) {
      if (place.includes(word)) return value;
      if (place.some((one) => one.startsWith(word))) return value * 0.8;
    }
    return 0;
  };

  const search = (text) => {
    const sought = words(text), ranked = [];
    for (const { row, places } of rows) {
      const worths = sought.map((word) => worth(word, places));
      if (sought.length && worths.every(Boolean)) ranked.push([worths.reduce((a, b) => a + b), row]);
    }
    return ranked.sort((a, b) => b[0] - a[0]).slice(0, MOST).map(([, row]) => row);
  };

  const entry = (row, text) => {
    const [kind, name, place, summary, , , , fields] = row, link = document.createElement("a");
    const wanted = text.trim().toLowerCase(), field = fields.split(" ").find((one) => one.toLowerCase() === wanted);
    link.href = `${root}${place}/index.html${field ? `#f-${wanted}` : ""}`;
    const strong = document.createElement("strong"), small = document.createElement("small");
    strong.textContent = field ? `${name}.${field}` : name;
    small.textContent = ` ${kind} · ${summary}`;
    link.append(strong, small);
    const item = document.createElement("li");
    item.append(link);
    return item;
  };

  const show = () => {
    const text = field.value;
    list.hidden = !text.trim();
    if (list.hidden || !rows) return;
    const found = search(text);
    list.replaceChildren(...found.map((row) => entry(row, text)));
    if (!found.length) {
      const none = document.createElement("li");
      none.textContent = "No page has all of these words.";
      list.append(none);
    }
  };

  field.addEventListener("focus", load);
  field.addEventListener("input", () => { load(); show(); });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape") {
      list.hidden = true;
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && field.closest(".search").contains(document.activeElement)) {
      const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
      const next = links[at + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) next.focus(); else if (event.key === "ArrowUp") field.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && document.activeElement === field && list.querySelector("a")) {
      list.querySelector("a").click();
    }
  });
})();

"use strict";
// Two versions of a message side by side, as kwire explain --diff has them: made of what the page says of each step
// between them. The address keeps the choice: #diff-12-16.
(() => {
  const place = document.getElementById("compare");
  const versions = [...document.querySelectorAll("section.version")].map((one) => Number(one.id.slice(1)));
  if (!place || versions.length < 2) return;

  const select = (label, value) => {
    const field = document.createElement("select"), named = document.createElement("label");
    field.append(...versions.map((version) => new Option(`v${version}`, version, false, version === value)));
    named.append(`${label} `, field, " ");
    place.append(named);
    return field;
  };
  const first = select("Compare", versions[versions.length - 1]), second = select("with", versions[0]);
  const button = document.createElement("button"), out = document.createElement("div");
  button.type = "button";
  button.textContent = "Show";
  out.setAttribute("role", "status");
  place.append(button, out);

  const cell = (tag, text, style) => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (style) made.className = style;
    return made;
  };
  const row = (tag, texts) => {
    const made = document.createElement("tr");
    made.append(...texts.map(([text, style]) => cell(tag, text, style)));
    return made;
  };

  const differences = (kind, old, recent) => {
    const found = new Map();
    for (let version = old + 1; version <= recent; version++) {
      for (const line of document.querySelectorAll(`#${kind}-v${version} table.diff tbody tr`)) {
        const [path, before, after] = [...line.cells].map((one) => one.textContent);
        found.set(path, [found.has(path) ? found.get(path)[0] : before, after === "gone" ? "not there" : after]);
      }
    }
    return [...found].filter(([, [before, after]]) => before !== after);
  };

  const show = () => {
    const [old, recent] = [Number(first.value), Number(second.value)].sort((a, b) => a - b);
    out.replaceChildren();
    for (const kind of ["request", "response", "message"]) {
      const name = document.querySelector(`#${kind}-v${recent} h3`);
      if (!name) continue;
      const title = `${name.firstChild.textContent.split(" ")[0]} v${old} and v${recent}`;
      const found = differences(kind, old, recent);
      out.append(cell("h3", title));
      if (!found.length) {
        out.append(cell("p", "The same fields.", "dim"));
        continue;
      }
      const table = document.createElement("table");
      table.createTHead().append(row("th", [["field"], [`v${old}`], [`v${recent}`]]));
      const body = table.createTBody();
      for (const [path, [before, after]] of found) {
        const style = after === "not there" ? "error" : before === "not there" ? "good" : "note";
        body.append(row("td", [[path], [before], [after, style]]));
      }
      table.createCaption().textContent = title;
      table.caption.className = "hidden";
      out.append(table);
    }
  };
  const open = () => {
    const asked = /^#diff-(\d+)-(\d+)$/.exec(location.hash);
    if (!asked) return;
    [first.value, second.value] = [asked[1], asked[2]];
    show();
    place.scrollIntoView();
  };
  button.addEventListener("click", () => {
    show();
    history.replaceState(null, "", `#diff-${first.value}-${second.value}`);
  });
  window.addEventListener("hashchange", open);
  open();
})();

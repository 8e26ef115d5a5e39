"use strict";
// Tables sort by a click on a head and filter by what is typed; a click on a number shows the command that shows more.
const bar = document.getElementById("command"), shown = bar.querySelector("code"), copy = bar.querySelector("button");
function show(command) {
  shown.textContent = command;
  copy.textContent = "Copy";
  bar.hidden = false;
}
copy.addEventListener("click", () => {
  const range = document.createRange();
  range.selectNodeContents(shown);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  copy.textContent = document.execCommand("copy") ? "Copied" : "Ctrl-C copies";
});
document.addEventListener("keydown", event => { if (event.key === "Escape") bar.hidden = true; });
function value(row, at) {
  const cell = row.cells[at];
  return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
}
function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}
function pressable(parent, text, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", act);
  parent.replaceChildren(button);
}
function sort(table, head, at) {
  const now = head.getAttribute("aria-sort");
  const falling = now === null ? head.classList.contains("n") : now === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const body = table.tBodies[0], rows = [...body.rows];
  rows.sort((a, b) => (falling ? -1 : 1) * compare(value(a, at), value(b, at)));
  body.append(...rows);
}
function filter(table, words, told) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean), rows = table.tBodies[0].rows;
  let count = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every(word => text.includes(word));
    count += !row.hidden;
  }
  told.textContent = wanted.length ? `${count} of ${rows.length} rows` : "";
}
for (const table of document.querySelectorAll("table.sheet")) {
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    pressable(head, head.textContent, () => sort(table, head, at));
  });
  for (const row of table.tBodies[0].rows) {
    const command = row.querySelector(".cmd code");
    if (!command) continue;
    for (const cell of row.querySelectorAll("td.n")) {
      if (!cell.textContent) continue;
      const more = cell.dataset.m ? " " + cell.dataset.m : "";
      pressable(cell, cell.textContent, () => show(command.textContent + more));
    }
  }
  if (table.tBodies[0].rows.length < 6) continue;
  const tool = document.createElement("div"), label = document.createElement("label");
  const input = document.createElement("input"), told = document.createElement("span");
  tool.className = "tool";
  told.setAttribute("role", "status");
  input.type = "search";
  input.setAttribute("aria-label", `Filter: ${table.caption.firstChild.textContent}`);
  label.append("Filter ", input);
  input.addEventListener("input", () => filter(table, input.value, told));
  tool.append(label, told);
  (table.closest(".tall") ?? table).before(tool);
}
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

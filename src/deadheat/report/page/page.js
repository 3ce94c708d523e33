"use strict";

/* Shared by all pages: elements, fractions and percent.
   Data is inserted as text, never as HTML. */

const $ = (id) => document.getElementById(id);
let redraw = () => {}; // writes the numbers of scripts again
let percent = false;

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node[name] = value;
    else if (value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

const press = (text, onclick, attributes = {}) =>
  element("button", { type: "button", onclick, ...attributes }, text);

/* Elements whose text differs in percent have the other text in data-percent. */
function switchPercent() {
  percent = !percent;
  $("percent").setAttribute("aria-pressed", String(percent));
  for (const node of document.querySelectorAll("[data-percent]")) {
    [node.textContent, node.dataset.percent] = [node.dataset.percent, node.textContent];
  }
  redraw();
}

document.querySelector(".bar").hidden = false;
$("percent").onclick = switchPercent;

/* Tables of the page: headings sort them, buttons copy the leading one. */

const RANKS = new Set(["board", "rank", "ranks"]); // 1 comes first

/* Empty cells are always last. The first click sorts numbers down, words and ranks up. */
function sortRows(head, body) {
  const column = head.cellIndex;
  const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
  const numeric = [...body.rows].some((row) => row.cells[column].dataset.sort !== undefined);
  const first = numeric && !RANKS.has(head.textContent) ? "descending" : "ascending";
  const other = first === "descending" ? "ascending" : "descending";
  const direction = head.getAttribute("aria-sort") === first ? other : first;
  const sign = direction === "ascending" ? 1 : -1;
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === "" || y === "") return (x === "") - (y === "");
    return sign * (numeric ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true }));
  });
  for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction);
  body.replaceChildren(...rows);
}

function makeSortable(table) {
  for (const head of table.tHead.rows[0].cells) {
    head.replaceChildren(press(head.textContent, () => sortRows(head, table.tBodies[0])));
  }
}

/* Copy to the clipboard; if the browser refuses, show the text, selected. */
async function copyText(text, status, style) {
  try {
    await navigator.clipboard.writeText(text);
    status.replaceChildren(`Copied ${style}.`);
  } catch {
    const box = element("textarea", { readonly: "", rows: 4, "aria-label": `The table as ${style}` });
    box.value = text;
    status.replaceChildren(box);
    box.select();
  }
}

/* The leading table in its present order, as fractions or in percent. */
function copyOf(table, [fraction, inPercent]) {
  const { head, rows, foot } = percent ? inPercent : fraction;
  const order = [...table.tBodies[0].rows].map((row) => rows[Number(row.dataset.row)]);
  return [...head, ...order, ...foot].join("\n");
}

function makeCopied(area) {
  const table = area.parentElement.querySelector(".leading");
  const status = area.querySelector(".copied");
  for (const button of area.querySelectorAll("button")) {
    const copies = JSON.parse(button.dataset.copies);
    button.onclick = () => copyText(copyOf(table, copies), status, button.textContent);
  }
  area.hidden = false;
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll(".copies").forEach(makeCopied);

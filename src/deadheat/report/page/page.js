"use strict";

/* What every page has: elements, light and dark, fractions and percent, printing.
   Whatever comes from data goes into the document as text. */

const $ = (id) => document.getElementById(id);
let redraw = () => {}; // called when the page is to be drawn anew: other numbers, another width
let percent = false;
let printing = false;

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node[name] = value;
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

const element = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);
const shape = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const press = (text, onclick, attributes = {}) =>
  element("button", { type: "button", onclick, ...attributes }, text);

/* A table of texts or elements; the first cell of a row says whose it is. */
function tableOf(headings, rows, { caption = null, chosen = null } = {}) {
  const heads = headings.map((text, i) => element("th", { scope: "col", class: i ? null : "word" }, text));
  const lines = rows.map(([name, ...cells], i) => {
    const head = element("th", { scope: "row", class: "word", title: name }, name);
    const values = cells.map((cell) => element("td", {}, cell));
    return element("tr", { class: i === chosen ? "chosen" : null }, head, ...values);
  });
  return element(
    "table",
    { class: "numbers" },
    caption && element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...lines),
  );
}

/* ---- Fractions and percent: every text that differs carries its other form ---- */

function switchPercent() {
  percent = !percent;
  $("percent").setAttribute("aria-pressed", String(percent));
  for (const node of document.querySelectorAll("[data-percent]")) {
    [node.textContent, node.dataset.percent] = [node.dataset.percent, node.textContent];
  }
  redraw();
}

/* ---- Light and dark ---- */

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function themed() {
  const dark =
    (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
  return dark;
}

function switchTheme() {
  document.documentElement.dataset.theme = themed() ? "light" : "dark";
  themed();
}

/* ---- On paper, everything is open ---- */

function printed(begins) {
  printing = begins;
  for (const details of document.querySelectorAll("details")) {
    if (begins) details.dataset.open = details.open;
    details.open = begins || details.dataset.open === "true";
  }
  redraw();
}

document.querySelector(".bar").hidden = false;
$("percent").onclick = switchPercent;
$("theme").onclick = switchTheme;
prefersDark.addEventListener("change", themed);
addEventListener("beforeprint", () => printed(true));
addEventListener("afterprint", () => printed(false));
themed();

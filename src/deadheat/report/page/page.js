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

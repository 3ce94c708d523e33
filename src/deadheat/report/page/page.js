"use strict";

/* What every page has: elements, fractions and percent.
   Whatever comes from data goes into the document as text. */

const $ = (id) => document.getElementById(id);
let redraw = () => {}; // called when numbers are to be written anew
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

/* Every text that differs in percent carries its other form. */
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

"use strict";

/* The page reads its data once; everything that comes from data goes into the document as text. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", null, "#B8A500"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const PAGE_SIZE = 20;
const VIEWS = ["expected", "worst", "best", "oblivious"];
const $ = (id) => document.getElementById(id);

let here = null; // the collection that is shown

/* ---- Small helpers ---- */

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node[name] = value;
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

function select(label, options, onchange, chosen) {
  const items = options.map(([value, text]) => element("option", { value }, text));
  const box = element("select", { onchange: () => onchange(box.value) }, ...items);
  if (chosen != null) box.value = chosen;
  return element("label", {}, label, " ", box);
}

function number(value, signed = false) {
  if (value == null || Number.isNaN(value)) return "–";
  const text = value.toFixed(DATA.digits).replace(/^-(?=0\.?0*$)/, "");
  return signed && Number(text) > 0 ? "+" + text : text.replace("-", "−");
}

/* Plotly reads some HTML in its texts; names are shown as they are, if not too long. */
function plain(text, length = 60) {
  const short = text.length > length ? text.slice(0, length - 1) + "…" : text;
  return short.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };
const unpacked = new WeakMap();
function unpack(packed) {
  if (!unpacked.has(packed)) {
    const text = atob(packed[1]), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    unpacked.set(packed, new ARRAYS[packed[0]](bytes.buffer));
  }
  return unpacked.get(packed);
}

/* ---- Light and dark ---- */

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return !printing && (chosen ? chosen === "dark" : prefersDark.matches);
}

function themed() {
  $("theme").textContent = isDark() ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  drawLegend();
  drawCurves();
}

function printed(begins) {
  printing = begins;
  for (const details of document.querySelectorAll("details")) {
    if (begins) details.dataset.open = details.open;
    details.open = begins || details.dataset.open === "true";
  }
  themed();
}

const colour = (index) => PALETTE[index % PALETTE.length] || (isDark() ? "#DDDDDD" : "#000000");
const dashOf = (index) => DASHES[Math.floor(index / PALETTE.length) % DASHES.length];

/* ---- Curves ---- */

const curve = { family: null, off: new Set(), hidden: {} };

function visible() {
  return here.systems.map((each, index) => ({ ...each, index })).filter((each) =>
    !curve.off.has(each.index)
    && Object.entries(each.labels).every(([label, value]) => !curve.hidden[label]?.has(value)));
}

function setupCurves() {
  const families = Object.keys(here.families);
  curve.family = families.includes(curve.family) ? curve.family : families[0];
  curve.off = new Set(here.systems.map((_, index) => index).filter((index) => index >= 12));
  curve.hidden = {};
  const choice = buttons("Measure", families, (family) => family === curve.family, (family, group) => {
    curve.family = family;
    for (const button of group) button.ariaPressed = button.textContent === family;
  });
  const labels = Object.keys(here.systems[0].labels);
  $("curve-controls").replaceChildren(
    choice, ...(labels.length > 1 ? labels.map(facet).filter(Boolean) : []));
  drawLegend();
  drawCurves();
}

/* Buttons that hide all systems of one model, dtype or regime. */
function facet(label) {
  const values = [...new Set(here.systems.map((each) => each.labels[label]))];
  if (values.length < 2) return null;
  const hidden = curve.hidden[label] = new Set();
  return buttons(label, values, () => true, (value, group) => {
    hidden[hidden.has(value) ? "delete" : "add"](value);
    for (const button of group) button.ariaPressed = !hidden.has(button.textContent);
  });
}

function buttons(label, values, isPressed, choose) {
  const group = values.map((value) => element("button", { type: "button", "aria-pressed": String(isPressed(value)),
    onclick: () => { choose(value, group); drawCurves(); } }, value));
  return element("span", { class: "set", role: "group", "aria-label": label }, label + " ", ...group);
}

function drawLegend() {
  const items = here.systems.map((each, index) => {
    const box = element("input", { type: "checkbox", onchange: () => {
      curve.off[box.checked ? "delete" : "add"](index);
      drawCurves();
    } });
    box.checked = !curve.off.has(index);
    return element("label", {}, box, swatch(index), each.name);
  });
  $("legend").replaceChildren($("legend").firstElementChild, ...items);
}

function swatch(index) {
  const line = { solid: "solid", dash: "dashed", dot: "dotted", dashdot: "double" }[dashOf(index)];
  const node = element("span", { class: "swatch", "aria-hidden": "true" });
  node.style.borderTop = `4px ${line} ${colour(index)}`;
  return node;
}

function drawCurves() {
  const members = here.families[curve.family]; // by cutoff
  const shown = visible().filter((each) => members.some((measure) => each.means[measure.name]));
  const overK = members.length > 1;
  const ink = isDark() ? "#e8ebef" : "#1b1f24", line = isDark() ? "#363d46" : "#d5d9df";
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true };
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
    font: { color: ink, family: getComputedStyle(document.body).fontFamily, size: 13 },
    margin: { l: 50, r: 12, t: 12, b: 45 }, hovermode: "closest", dragmode: "pan",
    ...(printing ? { width: 660, height: overK ? 330 : 110 + 44 * shown.length } : { autosize: true }),
    hoverlabel: { align: "left" }, modebar: { bgcolor: "rgba(0,0,0,0)", color: "#8b96a5", activecolor: ink },
  };
  const traces = overK ? lines(shown, members) : intervals(shown, members[0].name);
  $("chart").style.height = overK ? "" : `${110 + 44 * shown.length}px`;
  if (overK) {
    const ks = members.map((measure) => measure.k);
    layout.xaxis = { ...axis, title: { text: "cutoff k" } };
    if (ks.length <= 12) Object.assign(layout.xaxis, { type: ks.at(-1) >= 20 * ks[0] ? "log" : "linear", tickvals: ks, ticktext: ks.map(String) });
    layout.yaxis = { ...axis, title: { text: plain(curve.family) + "@k" } };
  } else {
    layout.xaxis = { ...axis, title: { text: plain(members[0].name) } };
    layout.yaxis = { ...axis, autorange: "reversed" };
  }
  const best = shown.map((each) => `${each.name}: ${number(each.means[members.at(-1).name]?.[0])}`);
  $("chart").setAttribute("aria-label", `${members.at(-1).name}, expected values: ${best.join("; ") || "no system chosen"}. The table holds all numbers.`);
  Plotly.react($("chart"), traces, layout, { displaylogo: false, responsive: true, modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]] });
}

function lines(shown, members) {
  return shown.flatMap((each) => {
    const own = members.filter((measure) => each.means[measure.name]);
    const ks = own.map((measure) => measure.k);
    const means = own.map((measure) => each.means[measure.name]);
    const text = own.map((measure) => hover(each, measure.name));
    const tint = colour(each.index);
    const edge = { x: ks, mode: "lines", line: { width: 0, color: tint }, hoverinfo: "skip" };
    return [
      { ...edge, y: means.map((mean) => mean[1]) },
      { ...edge, y: means.map((mean) => mean[2]), fill: "tonexty", fillcolor: tint + "2b" },
      { x: ks, y: means.map((mean) => mean[0]), mode: "lines+markers", hovertext: text, hoverinfo: "text",
        line: { color: tint, width: 2, dash: dashOf(each.index) }, marker: { size: ks.length > 30 ? 4 : 7, color: tint } },
      { x: ks, y: means.map((mean) => mean[3]), mode: "markers", hovertext: text, hoverinfo: "text",
        marker: { symbol: "x-thin", size: 9, line: { width: 2, color: tint } } },
    ];
  });
}

/* One cutoff only: an interval per system, the highest expectation on top. */
function intervals(shown, measure) {
  const sorted = [...shown].sort((a, b) => b.means[measure][0] - a.means[measure][0]);
  const room = Math.max(12, Math.round($("chart").clientWidth / 28));
  return sorted.flatMap((each) => {
    const [expected, worst, best, oblivious] = each.means[measure];
    const y = [plain(each.name, room) + "&#8203;".repeat(each.index)];
    const common = { y, mode: "markers", hovertext: [hover(each, measure)], hoverinfo: "text" };
    const tint = colour(each.index);
    return [
      { ...common, x: [expected], marker: { size: 10, color: tint },
        error_x: { type: "data", symmetric: false, array: [best - expected], arrayminus: [expected - worst], color: tint, thickness: 3, width: 6 } },
      { ...common, x: [oblivious], marker: { symbol: "x-thin", size: 11, line: { width: 2.5, color: tint } } },
    ];
  });
}

function hover(each, measure) {
  const [expected, worst, best, oblivious, std] = each.means[measure];
  return [
    `<b>${plain(each.name)}</b>`,
    `${plain(measure)} expected ${number(expected)}` + (std == null ? "" : ` ± ${number(std)}`),
    `worst ${number(worst)}, best ${number(best)}, range ${number(best - worst)}`,
    `oblivious ${number(oblivious)}, bias ${number(oblivious - expected, true)}`,
  ].join("<br>");
}

/* ---- Comparison ---- */

const WORDS = { // verdict: class, text of the cell, full text, meaning
  "A is better": ["v-row", "▲ better", "row is better", "the row has the higher expectation, whatever is left to ties and queries"],
  "B is better": ["v-column", "▽ worse", "column is better", "the column has it"],
  "undecided: ties": ["v-ties", "≈ ties", "undecided: ties", DATA.verdicts["undecided: ties"]],
  "undecided: queries": ["v-queries", "≈ queries", "undecided: queries", DATA.verdicts["undecided: queries"]],
  "not testable": ["v-queries", "? no test", "not testable", DATA.verdicts["not testable"]],
  "identical": ["v-queries", "= same", "identical", DATA.verdicts["identical"]],
  "decision error": ["v-error", "! error", "decision error", DATA.verdicts["decision error"]],
};
const pairs = new Map(); // "row,column,measure" to the pair as seen from the row

function setupComparison() {
  pairs.clear();
  const { columns, pairs: rows, notes, warnings } = here.comparison;
  for (const values of rows) {
    const pair = Object.fromEntries(columns.map((key, i) => [key, values[i]]));
    pairs.set(`${pair.a},${pair.b},${pair.measure}`, pair);
  }
  const measures = [...new Set(rows.map((values) => values[2]))];
  $("comparison-controls").replaceChildren(...(measures.length
    ? [select("Measure", measures.map((name) => [name, name]), drawMatrix)] : []));
  const say = (text) => element("p", { class: "hint" }, text);
  $("comparison-warnings").replaceChildren(...warnings.slice(0, 3).map(say));
  $("comparison-notes").replaceChildren(...warnings.slice(3).concat(notes).map(say));
  $("comparison-notes").parentNode.hidden = !measures.length;
  const key = Object.values(WORDS).map(([style, text, word, meaning]) => element("div", {},
    element("dt", { class: style }, text), element("dd", {}, `${word}: ${meaning}`)));
  $("verdict-key").replaceChildren(...(measures.length ? key : []));
  drawMatrix(measures[0]);
}

function drawMatrix(measure) {
  $("verdict").replaceChildren();
  if (!measure) { $("matrix").replaceChildren(); return; }
  const head = element("tr", {}, element("td"), ...here.systems.map((each) => element("th", { scope: "col" }, each.name)));
  const rows = here.systems.map((each, row) => element("tr", {},
    element("th", { scope: "row", class: "word" }, each.name),
    ...here.systems.map((other, column) => {
      const pair = pairs.get(`${row},${column},${measure}`);
      if (!pair) return element("td", { class: "self" });
      const [style, text, word] = WORDS[pair.verdict];
      return element("td", {}, element("button", { type: "button", class: style, "aria-label": `${each.name} against ${other.name}: ${word}`,
        onclick: () => showPair(each.name, other.name, measure, pair) }, text));
    })));
  const caption = element("caption", {}, `Row against column in ${measure}`);
  $("matrix").replaceChildren(element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function showPair(row, column, measure, pair) {
  const percent = (value) => (100 * value).toFixed(1) + "\u00a0%";
  const facts = [
    `Expected difference ${number(pair.difference, true)}` + (pair.std == null ? "" : ` ± ${number(pair.std)} (tie std)`) + `, oblivious difference ${number(pair.oblivious_difference, true)}.`,
    `Ties can move the difference from ${number(pair.lowest, true)} to ${number(pair.highest, true)}; under random tie-breaking the row wins with probability ${percent(pair.a_wins)}, the column with ${percent(pair.b_wins)}.`,
    pair.p_corrected == null ? "No test over queries." : `Over queries: corrected p ${pair.p_corrected < 0.0001 ? "< 0.0001" : "= " + pair.p_corrected.toFixed(4)}, bootstrap interval [${number(pair.interval_low, true)}, ${number(pair.interval_high, true)}].`,
  ];
  $("verdict").replaceChildren(
    element("p", {}, element("strong", {}, `${row} against ${column}, ${measure}: ${WORDS[pair.verdict][2]}`)),
    ...facts.map((fact) => element("p", {}, fact)));
}

/* ---- Queries ---- */

const explorer = { system: 0, measure: null, sort: "range", descending: true, text: "", column: "range", least: null, most: null, page: 0, at: 0, rows: [], open: null };
const COLUMNS = ["query", "expected", "range", "bias"];

function views(system, measure) {
  const packed = here.systems[system].values[measure];
  if (!packed) return null;
  const all = unpack(packed), n = here.queries.length;
  return Object.fromEntries(VIEWS.map((view, i) => [view, all.subarray(i * n, (i + 1) * n)]));
}

function valueOf(values, column, query) {
  if (column === "range") return values.best[query] - values.worst[query];
  if (column === "bias") return values.oblivious[query] - values.expected[query];
  return values[column][query];
}

function setupQueries() {
  const measure = here.shown[0];
  const range = (each) => (each.means[measure] ? each.means[measure][2] - each.means[measure][1] : -1);
  const ranges = here.systems.map(range); // begin with the system that ties move most
  Object.assign(explorer, { system: ranges.indexOf(Math.max(...ranges)), measure, open: null, text: "", least: null, most: null, column: "range" });
  const input = (label, type, change) => {
    const box = element("input", { type, step: "any", oninput: () => { change(box.value); filter(); } });
    return element("label", {}, label, " ", box);
  };
  const bound = (name) => (value) => { explorer[name] = value === "" ? null : Number(value); };
  $("query-controls").replaceChildren(
    select("System", here.systems.map((each, index) => [index, each.name]), (value) => { explorer.system = Number(value); again(); }, explorer.system),
    select("Measure", here.shown.map((name) => [name, name]), (value) => { explorer.measure = value; again(); }),
    input("Find", "search", (value) => { explorer.text = value.toLowerCase(); }),
    select("Filter by", COLUMNS.slice(1).map((name) => [name, name]), (value) => { explorer.column = value; filter(); }, "range"),
    input("from", "number", bound("least")),
    input("to", "number", bound("most")));
  $("query-controls").onsubmit = () => false;
  const head = COLUMNS.map((column) => element("th", { scope: "col", class: column === "query" ? "word" : null },
    element("button", { type: "button", "data-column": column, onclick: () => sortBy(column) }, column)));
  $("query-table").tHead.replaceChildren(element("tr", {}, ...head));
  $("query").replaceChildren();
  filter();
}

function again() {
  filter();
  if (explorer.open != null) openQuery(explorer.open);
}

function sortBy(column) {
  explorer.descending = explorer.sort === column ? !explorer.descending : column !== "query";
  explorer.sort = column;
  filter();
}

const collator = new Intl.Collator("en", { numeric: true });

function filter() {
  const values = views(explorer.system, explorer.measure);
  const { text, least, most, column } = explorer;
  const rows = [];
  for (let query = 0; values && query < here.queries.length; query++) {
    if (Number.isNaN(values.expected[query])) continue;
    const value = valueOf(values, column, query);
    if ((least != null && value < least - 1e-7) || (most != null && value > most + 1e-7)) continue;
    if (text && !here.queries[query].toLowerCase().includes(text) && !here.queryTexts?.[query].toLowerCase().includes(text)) continue;
    rows.push(query);
  }
  const sign = explorer.descending ? -1 : 1;
  if (explorer.sort === "query") {
    rows.sort((a, b) => sign * collator.compare(here.queries[a], here.queries[b]));
  } else if (values) {
    const keys = Float64Array.from(here.queries, (_, query) => valueOf(values, explorer.sort, query));
    rows.sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
  }
  explorer.rows = rows;
  turn(0);
}

function drawRows(focus = false) {
  const { rows, page } = explorer;
  const values = views(explorer.system, explorer.measure);
  const pages = Math.max(1, Math.ceil(rows.length / PAGE_SIZE));
  const total = here.queries.length.toLocaleString("en");
  $("count").textContent = values
    ? `${rows.length.toLocaleString("en")} of ${total} queries, page ${page + 1} of ${pages}`
    : `${here.systems[explorer.system].name} was not evaluated in ${explorer.measure}`;
  for (const button of $("query-table").tHead.querySelectorAll("button")) {
    const sorted = button.dataset.column === explorer.sort;
    const order = explorer.descending ? "descending" : "ascending";
    button.parentNode.setAttribute("aria-sort", sorted ? order : "none");
    button.textContent = button.dataset.column + (sorted ? (explorer.descending ? " ↓" : " ↑") : "");
  }
  const lines = rows.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE).map((query, i) => {
    const cells = COLUMNS.slice(1).map((column) => element("td", {}, number(valueOf(values, column, query), column === "bias")));
    const label = [here.queries[query], here.queryTexts?.[query] ?? ""].join(" ").trim();
    return element("tr", { tabindex: i === explorer.at ? 0 : -1, "data-query": query, "aria-selected": String(query === explorer.open), onclick: () => { explorer.at = i; openQuery(query); } },
      element("th", { scope: "row", title: label }, label), ...cells);
  });
  $("query-table").tBodies[0].replaceChildren(...lines);
  const move = (text, target, enabled) => element("button", { type: "button", disabled: !enabled, onclick: () => turn(target * PAGE_SIZE) }, text);
  $("pager").replaceChildren(
    move("First", 0, page > 0), move("Previous", page - 1, page > 0),
    move("Next", page + 1, page + 1 < pages), move("Last", pages - 1, page + 1 < pages));
  if (focus) lines[explorer.at]?.focus();
}

function turn(place, focus = false) {
  Object.assign(explorer, { page: Math.floor(place / PAGE_SIZE), at: place % PAGE_SIZE });
  drawRows(focus);
}

function onKey(event) {
  const { rows, page, at } = explorer, last = Math.max(0, rows.length - 1), place = page * PAGE_SIZE + at;
  const steps = { ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + PAGE_SIZE, PageUp: place - PAGE_SIZE, Home: 0, End: last };
  if (event.key === "Enter" || event.key === " ") openQuery(rows[place]);
  else if (event.key in steps) turn(Math.min(last, Math.max(0, steps[event.key])), true);
  else return;
  event.preventDefault();
}

function openQuery(query) {
  explorer.open = query;
  for (const row of $("query-table").tBodies[0].rows) {
    const chosen = Number(row.dataset.query) === query;
    row.setAttribute("aria-selected", String(chosen));
    row.tabIndex = chosen ? 0 : -1;
  }
  const lines = here.systems.map((each, index) => [each, views(index, explorer.measure), index])
    .filter(([, values]) => values && !Number.isNaN(values.expected[query]))
    .map(([each, values, index]) => element("tr", { class: index === explorer.system ? "chosen" : null },
      element("th", { scope: "row", class: "word" }, each.name),
      ...["expected", "worst", "best", "oblivious"].map((column) => element("td", {}, number(valueOf(values, column, query))))));
  const head = ["system", "expected", "worst", "best", "oblivious"].map((text, i) => element("th", { scope: "col", class: i ? null : "word" }, text));
  $("query").replaceChildren(
    element("h3", {}, here.queries[query]),
    here.queryTexts ? element("p", {}, here.queryTexts[query]) : "",
    element("div", { class: "scroll" }, element("table", { class: "numbers" }, element("caption", {}, explorer.measure),
      element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...lines))),
    ...ranked(query));
  $("said").textContent = `Query ${here.queries[query]} is shown`;
  if (matchMedia("(max-width: 60rem)").matches) $("query").scrollIntoView();
}

/* The ranked list of the chosen system: tie groups in boxes, the cutoff as a line. */
function ranked(query) {
  const system = here.systems[explorer.system];
  if (!system.lists) return [element("p", { class: "hint" }, `${system.name}: the ranked list is not part of this page.`)];
  const lists = Object.fromEntries(Object.entries(system.lists).map(([name, packed]) => [name, unpack(packed)]));
  const begin = lists.shown.subarray(0, query).reduce((sum, count) => sum + count, 0), shown = lists.shown[query], rest = lists.rest[query];
  if (!shown) return [element("p", { class: "hint" }, "The run holds no document for this query.")];
  const k = here.cutoffs[explorer.measure];
  const items = [];
  for (let place = 0; place < shown;) {
    const above = lists.above[begin + place], size = lists.size[begin + place];
    let end = place + 1;
    while (end < shown && lists.above[begin + end] === above) end++;
    items.push(group(lists, begin, place, end, k));
    if (end === k && above + size <= k && end < lists.retrieved[query]) items.push(element("li", { class: "cutoff" }, `cutoff ${k}`));
    if (end === shown && rest) items.at(-1).append(element("p", { class: "more" }, `and ${rest} more with this score` + (lists.rest_relevant[query] ? `, ${lists.rest_relevant[query]} of them relevant` : "")));
    place = end;
  }
  const hidden = lists.retrieved[query] - shown - rest, facts = [];
  if (hidden > 0) facts.push(`${hidden.toLocaleString("en")} more documents follow; the page holds the first ${DATA.top}.`);
  if (lists.missing[query]) facts.push(`Relevant but not retrieved: ${lists.missing[query]}.`);
  if (k > shown && shown < lists.retrieved[query]) facts.push(`The cutoff ${k} lies below what is shown.`);
  return [
    element("h4", {}, `Ranked list of ${system.name}`),
    element("ol", { class: "ranked" }, ...items),
    ...facts.map((fact) => element("p", { class: "hint" }, fact)),
  ];
}

/* Documents of one tie group that stand together, from place to end. */
function group(lists, begin, place, end, k) {
  const above = lists.above[begin + place], size = lists.size[begin + place], lines = [];
  for (let i = place; i < end; i++) {
    if (i === k && i > place) lines.push(element("li", { class: "cutoff" }, `cutoff ${k} inside the tie`));
    lines.push(documentLine(lists, begin + i, above + 1 + (size > 1 ? "=" : "")));
  }
  if (end === k && above + size > k && size > 1) lines.push(element("li", { class: "cutoff" }, `cutoff ${k} inside the tie`));
  if (size === 1) return lines[0];
  const label = `tie of ${size}, ranks ${above + 1}–${above + size}, in any order`;
  return element("li", { class: "tie" }, element("span", { class: "label" }, label), element("ol", {}, ...lines));
}

function documentLine(lists, at, rank) {
  const number = lists.documents[at], grade = lists.grades[at], score = lists.scores[at], relevant = grade > 0;
  const judged = Number.isNaN(grade) ? "not judged" : relevant ? `relevant, grade ${grade}` : `judged not relevant, grade ${grade}`;
  const text = here.documentTexts?.[number];
  return element("li", { class: "document" + (relevant ? " relevant" : ""), title: judged },
    element("span", { class: "rank" }, rank),
    element("span", { class: "mark", role: "img", "aria-label": judged }, relevant ? "●" : ""),
    element("span", { class: "id" }, here.documents[number]),
    element("span", { class: "score" }, String(lists.scores instanceof Float32Array ? Number(score.toPrecision(9)) : score)),
    text ? element("span", { class: "text" }, text) : null);
}

/* ---- Start ---- */

function show(index) {
  here = DATA.collections[index];
  setupCurves();
  setupComparison();
  setupQueries();
}

$("theme").hidden = false;
$("theme").onclick = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; themed(); };
prefersDark.addEventListener("change", themed);
addEventListener("beforeprint", () => printed(true));
addEventListener("afterprint", () => printed(false));
$("query-table").tBodies[0].addEventListener("keydown", onKey);
if (DATA.collections.length > 1) {
  $("choose").hidden = false;
  $("collection").append(...DATA.collections.map((each, index) => element("option", { value: index }, each.name)));
  $("collection").onchange = () => show(Number($("collection").value));
}
show(0);
themed();

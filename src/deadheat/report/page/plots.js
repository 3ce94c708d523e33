/* The interval plot of one measure, and the curves over the cutoff. */

const COLOURS = 8;
const DASHES = ["none", "7 4", "2 4", "9 3 2 3"];
const FEW_ROWS = 10;
const colour = (index) => `c${here.place[index] % COLOURS}`;
const dash = (index) => DASHES[Math.floor(here.place[index] / COLOURS) % DASHES.length];

/* ---- Intervals: a row per system, the highest expectation on top ---- */

const intervals = { all: false };

function drawIntervals() {
  const measure = state.measure, area = document.querySelectorAll(".intervals")[state.collection];
  const ranked = here.systems.map((each, index) => ({ ...each, index })).filter((each) => each.means[measure])
    .sort((a, b) => b.means[measure][0] - a.means[measure][0]);
  const few = ranked.length > FEW_ROWS + 2 && !intervals.all && !printing;
  const shown = few ? ranked.slice(0, FEW_ROWS) : ranked;
  const axis = axisOf(shown.flatMap((each) => each.means[measure].slice(0, 4)));
  const ticks = ticksOf(axis, innerWidth < 600 ? 2 : 8);
  const ranks = ranksOf(measure);
  const rows = shown.map((each) => element("tr", {},
    element("th", { scope: "row", class: "word", title: each.name }, each.name),
    element("td", { class: "drawn" }, interval(each, measure, axis, ticks)),
    element("td", {}, number(each.means[measure][0])),
    ranks ? element("td", {}, ranks.get(each.index) ?? "–") : null));
  const head = ["system", `${measure}: worst to best`, "expected", ranks ? "rank under ties" : null].filter(Boolean)
    .map((text, i) => element("th", { scope: "col", class: i < 2 ? "word" : null }, text));
  const more = ranked.length > FEW_ROWS + 2 ? element("button", { type: "button", onclick: () => { intervals.all = !intervals.all; drawIntervals(); } },
    few ? `Show all ${ranked.length}` : `Show the first ${FEW_ROWS}`) : null;
  area.replaceChildren(element("table", { class: "numbers" },
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows),
    element("tfoot", {}, element("tr", {}, element("td"), element("td", { class: "drawn" }, axisLine(axis, ticks)), element("td"), ranks ? element("td") : null))),
    more ?? "");
}

/* What tie-breaking can make of each system's rank, where the systems were compared. */
function ranksOf(measure) {
  const compared = here.comparison.measures[measure];
  return compared && new Map(compared.order.map((system, i) => [system, [...new Set(compared.ranks[i])].join("–")]));
}

const percentOf = (value, [low, high]) => `${(100 * (value - low)) / (high - low)}%`;

function interval(each, measure, axis, ticks) {
  const [expected, worst, best, oblivious] = each.means[measure], at = (value) => percentOf(value, axis);
  const middle = { y1: "50%", y2: "50%" };
  const apart = Math.abs(oblivious - expected) >= 0.01 * (axis[1] - axis[0]); // the eye can tell them
  return shape("svg", { class: `scale ${colour(each.index)}`, role: "img", "aria-label": `${number(worst)} to ${number(best)}` + (apart ? `, oblivious ${number(oblivious)}` : "") },
    ...ticks.map(([value]) => shape("line", { class: "grid", x1: at(value), x2: at(value), y1: 0, y2: "100%" })),
    shape("line", { class: "span", x1: at(worst), x2: at(best), ...middle }),
    apart ? shape("svg", { x: at(oblivious), y: "50%", overflow: "visible" }, shape("path", { class: "cross", d: "M-4.5-4.5 4.5 4.5M-4.5 4.5 4.5-4.5" })) : null,
    shape("circle", { class: "dot", cx: at(expected), cy: "50%", r: 4.5 }));
}

function axisLine(axis, ticks) {
  return shape("svg", { class: "scale axis", "aria-hidden": "true" },
    ...ticks.map(([value, text]) => shape("text", { x: percentOf(value, axis), y: "70%", "text-anchor": "middle" }, text)));
}

/* ---- Curves ---- */

const curve = { off: new Set(), hidden: {}, points: [] };
const MOST_CURVES = 12; // that are drawn at first

const membersOf = (measure) => here.families[here.familyOf[measure]] ?? [];

function visible() {
  return here.systems.map((each, index) => ({ ...each, index })).filter((each) =>
    !curve.off.has(each.index)
    && Object.entries(each.labels).every(([label, value]) => !curve.hidden[label]?.has(value)));
}

function setupCurves() {
  if (!$("curves")) return;
  curve.off = new Set(here.order.slice(MOST_CURVES));
  curve.hidden = {};
  const labels = Object.keys(here.systems[0].labels);
  $("curve-controls").replaceChildren(...(labels.length > 1 ? labels.map(facet).filter(Boolean) : []));
  const items = here.order.map((index) => {
    const box = element("input", { type: "checkbox", onchange: () => {
      curve.off[box.checked ? "delete" : "add"](index);
      drawCurves();
    } });
    box.checked = !curve.off.has(index);
    return element("label", {}, box, swatch(index), here.systems[index].name);
  });
  $("legend").replaceChildren($("legend").firstElementChild, ...items);
}

/* Buttons that hide all systems of one model, dtype or regime. */
function facet(label) {
  const values = [...new Set(here.systems.map((each) => each.labels[label]))];
  if (values.length < 2) return null;
  const hidden = curve.hidden[label] = new Set();
  const buttons = values.map((value) => {
    const button = element("button", { type: "button", "aria-pressed": "true", onclick: () => {
      hidden[hidden.has(value) ? "delete" : "add"](value);
      button.setAttribute("aria-pressed", String(!hidden.has(value)));
      drawCurves();
    } }, value);
    return button;
  });
  return element("span", { class: "set", role: "group", "aria-label": label }, label + " ", ...buttons);
}

function swatch(index) {
  return shape("svg", { class: `swatch ${colour(index)}`, "aria-hidden": "true" },
    shape("line", { class: "curve", x1: 0, x2: 26, y1: 6, y2: 6, "stroke-dasharray": dash(index) }));
}

function drawCurves() {
  if (!$("curves")) return;
  const members = membersOf(state.measure);
  $("curves").hidden = !members.length;
  if (!members.length) return;
  const shown = visible().filter((each) => members.some((measure) => each.means[measure.name]));
  const frame = frameOf(shown, members);
  const paths = shown.map((each) => ({ index: each.index, points: members.filter(({ name }) => each.means[name]).map(({ name, k }) => {
    const [expected, worst, best, oblivious] = each.means[name];
    return { name, k, x: frame.x(k), y: frame.y(expected), low: frame.y(worst), high: frame.y(best), cross: Math.abs(frame.y(oblivious) - frame.y(expected)) >= 3 ? frame.y(oblivious) : null };
  }) }));
  curve.points = paths.flatMap(({ index, points }) => points.map((point) => ({ ...point, index })));
  const label = `${here.familyOf[state.measure]} over the cutoff, ${shown.length} systems; the numbers are below`;
  $("chart").replaceChildren(shape("svg", { width: frame.width, height: frame.height, role: "img", "aria-label": label },
    ...grid(frame, members), ...paths.map(band), ...lines(paths), ...dots(), ...crosses()), element("div", { class: "tip", hidden: true }));
  $("coinciding").textContent = coinciding(paths);
  drawCurveNumbers(shown, members);
}

/* Size, margins and axes of the chart. */
function frameOf(shown, members) {
  const width = printing ? 660 : $("chart").clientWidth, height = width < 600 ? 280 : 360;
  const left = 52, right = width - 16, top = 12, bottom = height - 42;
  const ks = members.map(({ k }) => k), logarithmic = ks.at(-1) >= 20 * ks[0];
  const scaled = (k) => (logarithmic ? Math.log(k) : k);
  const values = shown.flatMap((each) => members.flatMap(({ name }) => each.means[name]?.slice(0, 4) ?? []));
  const axis = axisOf(values.length ? values : [0, 1]);
  return { width, height, left, right, top, bottom, axis,
    x: (k) => left + 8 + ((scaled(k) - scaled(ks[0])) / (scaled(ks.at(-1)) - scaled(ks[0]))) * (right - left - 16),
    y: (value) => bottom - ((value - axis[0]) / (axis[1] - axis[0])) * (bottom - top) };
}

function grid(frame, members) {
  const { left, right, top, bottom } = frame, parts = [];
  for (const [value, text] of ticksOf(frame.axis, 6)) {
    const y = frame.y(value);
    parts.push(shape("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }), shape("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, text));
  }
  let last = -Infinity;
  for (const { k } of members) {
    const x = frame.x(k);
    parts.push(shape("line", { class: "grid", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
    if (x - last < 26) continue; // no room for its number
    parts.push(shape("text", { x, y: bottom + 18, "text-anchor": "middle" }, String(k)));
    last = x;
  }
  parts.push(shape("line", { class: "grid", x1: left, x2: left, y1: top, y2: bottom }),
    shape("text", { x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle" }, `${here.familyOf[state.measure]} at cutoff k`));
  return parts;
}

function band({ index, points }) {
  const corners = [...points.map(({ x, high }) => `${x},${high}`), ...points.toReversed().map(({ x, low }) => `${x},${low}`)];
  return shape("polygon", { class: `band ${colour(index)}`, points: corners.join(" ") });
}

/* Pieces of curves by where they lie: those that several systems share are striped in all colours. */
function lines(paths) {
  const pieces = new Map();
  for (const { index, points } of paths) {
    points.slice(1).forEach((to, i) => {
      const from = points[i], place = [from.x, from.y, to.x, to.y].map(Math.round).join();
      if (!pieces.has(place)) pieces.set(place, []);
      pieces.get(place).push({ index, x1: from.x, y1: from.y, x2: to.x, y2: to.y });
    });
  }
  return [...pieces.values()].flatMap((shared) => shared.map(({ index, ...ends }, i) => shape("line", { class: `curve ${colour(index)}`, ...ends,
    ...(shared.length > 1 ? { "stroke-dasharray": `9 ${9 * (shared.length - 1)}`, "stroke-dashoffset": -9 * i } : { "stroke-dasharray": dash(index) }) })));
}

/* Points that coincide become rings around each other. */
function dots() {
  const places = Map.groupBy(curve.points, ({ x, y }) => `${Math.round(x)},${Math.round(y)}`);
  return [...places.values()].flatMap((shared) => shared.map(({ x, y, index }, i) =>
    shape("circle", { class: `dot ${colour(index)}`, cx: x, cy: y, r: 3.5 + 2.2 * Math.min(4, shared.length - 1 - i) })));
}

function crosses() {
  return curve.points.filter(({ cross }) => cross != null).map(({ x, cross, index }) =>
    shape("path", { class: `cross ${colour(index)}`, d: `M${x - 4} ${cross - 4}l8 8m0-8l-8 8` }));
}

/* Which systems have one and the same curve. */
function coinciding(paths) {
  const alike = Map.groupBy(paths, ({ points }) => points.map(({ x, y }) => `${Math.round(x)},${Math.round(y)}`).join(" "));
  const said = [...alike.values()].filter((group) => group.length > 1).map((group) => group.map(({ index }) => here.systems[index].name).join(" = "));
  return said.length ? `Curves that coincide are striped: ${said.join("; ")}.` : "";
}

function drawCurveNumbers(shown, members) {
  const head = element("tr", {}, element("th", { scope: "col", class: "word" }, "expected"), ...members.map(({ name }) => element("th", { scope: "col" }, name)));
  const rows = shown.map((each) => element("tr", {}, element("th", { scope: "row", class: "word" }, each.name),
    ...members.map(({ name }) => element("td", {}, number(each.means[name]?.[0])))));
  $("curve-numbers").replaceChildren(element("table", { class: "numbers" }, element("thead", {}, head), element("tbody", {}, ...rows)));
}

/* The numbers of the point nearest to the pointer, of all systems that share it. */
function pointAt(event) {
  const box = $("chart").getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const away = (point) => Math.hypot(point.x - x, point.y - y);
  const nearest = curve.points.reduce((best, point) => (best && away(best) <= away(point) ? best : point), null);
  const tip = $("chart").querySelector(".tip");
  tip.hidden = !nearest || away(nearest) > 30;
  if (tip.hidden) return;
  const alike = curve.points.filter((point) => Math.hypot(point.x - nearest.x, point.y - nearest.y) < 1.5);
  tip.replaceChildren(element("strong", {}, nearest.name), ...alike.map(({ index, name }) => {
    const [expected, worst, best, oblivious] = here.systems[index].means[name];
    return element("span", { class: colour(index) }, `${here.systems[index].name}: ${number(expected)}, worst ${number(worst)}, best ${number(best)}, oblivious ${number(oblivious)}`);
  }));
  tip.style.left = `${Math.max(0, Math.min(nearest.x + 10, box.width - tip.offsetWidth))}px`;
  tip.style.top = `${nearest.y + 12}px`;
}

/* Curves over the cutoff. Those that coincide are told apart: striped lines, ringed points. */

const COLOURS = 8;
const DASHES = ["none", "7 4", "2 4", "9 3 2 3"];
const colour = (index) => `c${here.place[index] % COLOURS}`;
const dash = (index) => DASHES[Math.floor(here.place[index] / COLOURS) % DASHES.length];
const pixel = (x, y) => `${Math.round(x)},${Math.round(y)}`;

const curve = { off: new Set(), hidden: {}, points: [] };
const MOST_CURVES = 12; // that are drawn at first

const membersOf = (measure) => here.families[here.familyOf[measure]] ?? [];

function visible() {
  const isHidden = ([label, value]) => curve.hidden[label]?.has(value);
  return here.order.filter(
    (index) => !curve.off.has(index) && !Object.entries(here.systems[index].labels).some(isHidden),
  );
}

function setupCurves() {
  if (!$("curves")) return;
  curve.off = new Set(here.order.slice(MOST_CURVES));
  curve.hidden = {};
  const labels = Object.keys(here.systems[0].labels);
  $("curve-controls").replaceChildren(...(labels.length > 1 ? labels.map(facet).filter(Boolean) : []));
  $("legend").replaceChildren($("legend").firstElementChild, ...here.order.map(legendItem));
}

function toggle(set, value) {
  set[set.has(value) ? "delete" : "add"](value);
  drawCurves();
}

function legendItem(index) {
  const box = element("input", { type: "checkbox", onchange: () => toggle(curve.off, index) });
  box.checked = !curve.off.has(index);
  return element("label", {}, box, swatch(index), here.systems[index].name);
}

/* Buttons that hide all systems of one model, dtype or regime. */
function facet(label) {
  const values = [...new Set(here.systems.map((each) => each.labels[label]))];
  if (values.length < 2) return null;
  const hidden = (curve.hidden[label] = new Set());
  const pressed = (value) => (event) => {
    toggle(hidden, value);
    event.target.setAttribute("aria-pressed", String(!hidden.has(value)));
  };
  const buttons = values.map((value) => press(value, pressed(value), { "aria-pressed": "true" }));
  return element("span", { class: "set", role: "group", "aria-label": label }, label + " ", ...buttons);
}

function swatch(index) {
  const ends = { x1: 0, x2: 26, y1: 6, y2: 6 };
  const line = shape("line", { class: "curve", ...ends, "stroke-dasharray": dash(index) });
  return shape("svg", { class: `swatch ${colour(index)}`, "aria-hidden": "true" }, line);
}

function drawCurves() {
  if (!$("curves")) return;
  const members = membersOf(state.measure); // by cutoff
  $("curves").hidden = !members.length;
  if (!members.length) return;
  const shown = visible().filter((index) => members.some(({ name }) => here.systems[index].means[name]));
  const frame = frameOf(shown, members);
  const paths = shown.map((index) => ({ index, points: pointsOf(index, members, frame) }));
  curve.points = paths.flatMap(({ points }) => points);
  const label = `${here.familyOf[state.measure]} over the cutoff, ${shown.length} systems; the numbers are below`;
  const parts = [...grid(frame, members), ...bands(paths), ...lines(paths), ...dots(), ...crosses()];
  $("chart").replaceChildren(
    shape("svg", { width: frame.width, height: frame.height, role: "img", "aria-label": label }, ...parts),
    element("div", { class: "tip", hidden: true }),
  );
  $("coinciding").textContent = coinciding(paths);
  const rows = shown.map((index) => [
    here.systems[index].name,
    ...members.map(({ name }) => number(here.systems[index].means[name]?.[0])),
  ]);
  $("curve-numbers").replaceChildren(tableOf(["expected", ...members.map(({ name }) => name)], rows));
}

/* Where the values of a system lie; a cross only where the eye can tell it from the curve. */
function pointsOf(index, members, { x, y }) {
  const { means } = here.systems[index];
  return members
    .filter(({ name }) => means[name])
    .map(({ name, k }) => {
      const [expected, worst, best, oblivious] = means[name].map(y);
      const cross = Math.abs(oblivious - expected) >= 3 ? oblivious : null;
      return { index, name, x: x(k), y: expected, low: worst, high: best, cross };
    });
}

/* Size, margins and axes of the chart. */
function frameOf(shown, members) {
  const width = printing ? 660 : $("chart").clientWidth;
  const height = width < 600 ? 280 : 360;
  const [left, right, top, bottom] = [52, width - 16, 12, height - 42];
  const values = shown.flatMap((index) =>
    members.flatMap(({ name }) => here.systems[index].means[name]?.slice(0, 4) ?? []),
  );
  const [low, high] = axisOf(values.length ? values : [0, 1]);
  const ks = members.map(({ k }) => k);
  const scaled = ks.at(-1) >= 20 * ks[0] ? Math.log : Number;
  const [first, last] = [scaled(ks[0]), scaled(ks.at(-1))];
  const x = (k) => left + 8 + ((scaled(k) - first) / (last - first)) * (right - left - 16);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  return { width, height, left, right, top, bottom, axis: [low, high], x, y };
}

function grid({ left, right, top, bottom, axis, x, y }, members) {
  const line = (x1, y1, x2, y2) => shape("line", { class: "grid", x1, y1, x2, y2 });
  const text = (words, anchor, at) => shape("text", { "text-anchor": anchor, ...at }, words);
  const parts = [line(left, top, left, bottom)];
  for (const [value, words] of ticksOf(axis, 6)) {
    parts.push(line(left, y(value), right, y(value)), text(words, "end", { x: left - 8, y: y(value) + 4 }));
  }
  let last = -Infinity;
  for (const { k } of members) {
    parts.push(line(x(k), bottom, x(k), bottom + 4));
    if (x(k) - last < 26) continue; // no room for its number
    parts.push(text(String(k), "middle", { x: x(k), y: bottom + 18 }));
    last = x(k);
  }
  const title = `${here.familyOf[state.measure]} at cutoff k`;
  return [...parts, text(title, "middle", { x: (left + right) / 2, y: bottom + 36 })];
}

/* Bands of the same outline are drawn once. */
function bands(paths) {
  const outline = ({ points }) =>
    [
      ...points.map(({ x, high }) => pixel(x, high)),
      ...points.toReversed().map(({ x, low }) => pixel(x, low)),
    ].join(" ");
  const outlines = new Map(paths.toReversed().map((path) => [outline(path), path.index]));
  return [...outlines].map(([points, index]) => shape("polygon", { class: `band ${colour(index)}`, points }));
}

/* Pieces of curves by where they lie: those that several systems share are striped in all colours. */
function lines(paths) {
  const pieces = paths.flatMap(({ index, points }) =>
    points.slice(1).map((to, i) => ({ index, x1: points[i].x, y1: points[i].y, x2: to.x, y2: to.y })),
  );
  const places = Map.groupBy(pieces, ({ x1, y1, x2, y2 }) => pixel(x1, y1) + pixel(x2, y2));
  const striped = (n, i) => ({ "stroke-dasharray": `9 ${9 * (n - 1)}`, "stroke-dashoffset": -9 * i });
  return [...places.values()].flatMap((shared) =>
    shared.map(({ index, ...ends }, i) => {
      const pattern = shared.length > 1 ? striped(shared.length, i) : { "stroke-dasharray": dash(index) };
      return shape("line", { class: `curve ${colour(index)}`, ...ends, ...pattern });
    }),
  );
}

/* Points that coincide become rings around each other. */
function dots() {
  const places = Map.groupBy(curve.points, ({ x, y }) => pixel(x, y));
  const radius = (inside) => 3.5 + 2.2 * Math.min(4, inside);
  return [...places.values()].flatMap((shared) =>
    shared.map(({ x, y, index }, i) =>
      shape("circle", { class: `dot ${colour(index)}`, cx: x, cy: y, r: radius(shared.length - 1 - i) }),
    ),
  );
}

function crosses() {
  return curve.points
    .filter(({ cross }) => cross != null)
    .map(({ x, cross, index }) =>
      shape("path", { class: `cross ${colour(index)}`, d: `M${x - 4} ${cross - 4}l8 8m0-8l-8 8` }),
    );
}

/* Which systems have one and the same curve. */
function coinciding(paths) {
  const alike = Map.groupBy(paths, ({ points }) => points.map(({ x, y }) => pixel(x, y)).join(" "));
  const groups = [...alike.values()].filter((group) => group.length > 1);
  const said = groups.map((group) => {
    const names = group.map(({ index }) => here.systems[index].name);
    return names.slice(0, 3).join(" = ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
  });
  return said.length ? `Curves that coincide are striped: ${said.join("; ")}.` : "";
}

/* The numbers of the point nearest to the pointer, of all systems that share it. */
function pointAt(event) {
  const box = $("chart").getBoundingClientRect();
  const away = ({ x, y }) => Math.hypot(x - event.clientX + box.left, y - event.clientY + box.top);
  const [nearest] = curve.points.toSorted((a, b) => away(a) - away(b));
  const tip = $("chart").querySelector(".tip");
  tip.hidden = !nearest || away(nearest) > 30;
  if (tip.hidden) return;
  const alike = curve.points.filter(({ x, y }) => pixel(x, y) === pixel(nearest.x, nearest.y));
  tip.replaceChildren(element("strong", {}, nearest.name), ...alike.map(reading));
  tip.style.left = `${Math.max(0, Math.min(nearest.x + 10, box.width - tip.offsetWidth))}px`;
  tip.style.top = `${nearest.y + 12}px`;
}

function reading({ index, name }) {
  const { name: system, means } = here.systems[index];
  const [expected, ...others] = means[name].slice(0, 4).map((value) => number(value));
  const told = others.map((text, i) => `${VIEWS[i + 1]} ${text}`).join(", ");
  return element("span", { class: colour(index) }, `${system}: ${expected}, ${told}`);
}

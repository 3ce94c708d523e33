/* The interval plot of one measure: a row per system, the highest expectation on top. */

const FEW_ROWS = 10;
const intervals = { all: false };

function drawIntervals() {
  const { measure } = state;
  const area = document.querySelectorAll(".intervals")[state.collection];
  const ranked = here.order
    .filter((index) => here.systems[index].means[measure])
    .sort((a, b) => here.systems[b].means[measure][0] - here.systems[a].means[measure][0]);
  const many = ranked.length > FEW_ROWS + 2;
  const shown = many && !intervals.all && !printing ? ranked.slice(0, FEW_ROWS) : ranked;
  const axis = axisOf(shown.flatMap((index) => here.systems[index].means[measure].slice(0, 4)));
  const ticks = ticksOf(axis, Math.max(2, Math.round(area.clientWidth / 180)));
  const ranks = ranksOf(measure);
  const rows = shown.map((index) => {
    const { name, means } = here.systems[index];
    const cells = [interval(index, means[measure], axis, ticks), number(means[measure][0])];
    return [name, ...cells, ...(ranks ? [ranks.get(index) ?? "–"] : [])];
  });
  const headings = ["system", `${measure}: worst to best`, "expected", ...(ranks ? ["rank under ties"] : [])];
  const table = tableOf(headings, rows);
  table.append(
    element("tfoot", {}, element("tr", {}, element("td"), element("td", {}, axisLine(axis, ticks)))),
  );
  const longest = Math.max(...shown.map((index) => here.systems[index].name.length));
  area.style.setProperty("--names", `${Math.min(40, Math.round(0.85 * longest) + 2)}ch`);
  area.replaceChildren(table, many ? moreOrFewer(ranked.length) : "");
}

function moreOrFewer(all) {
  const text = intervals.all ? `Show the first ${FEW_ROWS}` : `Show all ${all}`;
  return press(text, () => {
    intervals.all = !intervals.all;
    drawIntervals();
  });
}

/* What tie-breaking can make of each system's rank, where the systems were compared. */
function ranksOf(measure) {
  const compared = here.comparison.measures[measure];
  const rank = (system, i) => [system, [...new Set(compared.ranks[i])].join("–")];
  return compared && new Map(compared.order.map(rank));
}

const percentOf = (value, [low, high]) => `${(100 * (value - low)) / (high - low)}%`;

function interval(index, [expected, worst, best, oblivious], axis, ticks) {
  const at = (value) => percentOf(value, axis);
  const line = (style, from, to, places) =>
    shape("line", { class: style, x1: at(from), x2: at(to), ...places });
  const apart = Math.abs(oblivious - expected) >= 0.02 * (axis[1] - axis[0]); // the eye can tell them
  const label = `${number(worst)} to ${number(best)}` + (apart ? `, oblivious ${number(oblivious)}` : "");
  const cross = shape("path", { class: "cross", d: "M-4.5-4.5 4.5 4.5M-4.5 4.5 4.5-4.5" });
  return shape(
    "svg",
    { class: `scale ${colour(index)}`, role: "img", "aria-label": label },
    ...ticks.map(([value]) => line("grid", value, value, { y1: 0, y2: "100%" })),
    line("span", worst, best, { y1: "50%", y2: "50%" }),
    apart ? shape("svg", { x: at(oblivious), y: "50%", overflow: "visible" }, cross) : null,
    shape("circle", { class: "dot", cx: at(expected), cy: "50%", r: 4.5 }),
  );
}

function axisLine(axis, ticks) {
  const texts = ticks.map(([value, text]) =>
    shape("text", { x: percentOf(value, axis), y: "70%", "text-anchor": "middle" }, text),
  );
  return shape("svg", { class: "scale axis", "aria-hidden": "true" }, ...texts);
}

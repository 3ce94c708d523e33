/* Verdicts on every pair: one triangle, the systems by rank. */

const FEW_SYSTEMS = 8; // up to so many have their names over the columns
const MANY_SYSTEMS = 20; // of more, only pairs that are decided or contested are shown
const WORDS = {
  // verdict: class, sign, text of the cell, what it means
  "A is better": ["v-better", "▲", "better", "the row is better; neither ties nor other queries reverse that"],
  "B is better": ["v-better", "▽", "worse", "the column is better; neither ties nor other queries reverse that"],
  "undecided: ties": ["v-ties", "≈", "ties", DATA.verdicts["undecided: ties"]],
  "not significant": ["v-open", "?", "not significant", DATA.verdicts["not significant"]],
  "not testable": ["v-open", "·", "no test", DATA.verdicts["not testable"]],
  identical: ["v-open", "=", "same", DATA.verdicts["identical"]],
  "decision error": ["v-flips", "⇅", "order flips", DATA.verdicts["decision error"]],
};

/* Pairs of a measure, each seen from the system that ranks higher. */
function pairsOf({ a, b, verdict, order, ranks, ...numbers }) {
  const columns = Object.entries(unpackAll({ a, b, ...numbers }));
  const words = Object.keys(DATA.verdicts);
  return [...unpack(verdict)].map((number, i) => ({
    ...Object.fromEntries(columns.map(([name, values]) => [name, values[i]])),
    verdict: words[number],
  }));
}

function drawComparison() {
  const { notes, warnings, measures } = here.comparison,
    compared = measures[state.measure];
  const say = (text) => element("p", { class: "hint" }, text);
  const missing = `Not compared in ${state.measure}: some system was not evaluated in it.`;
  const every = Object.keys(measures).length && !compared ? [missing, ...warnings] : warnings;
  $("comparison-warnings").replaceChildren(...every.slice(0, 3).map(say));
  const summary = $("comparison-notes").firstElementChild;
  $("comparison-notes").replaceChildren(summary, ...every.slice(3).concat(notes).map(say));
  $("comparison-notes").hidden = $("matrix").hidden = $("matrix-hint").hidden = !compared;
  $("verdict").replaceChildren();
  $("verdict-key").replaceChildren();
  if (compared) drawMatrix(compared);
}

function drawMatrix(compared) {
  const { order } = compared,
    few = order.length <= FEW_SYSTEMS,
    many = order.length > MANY_SYSTEMS,
    every = pairsOf(compared);
  const pairs = many ? every.filter(({ verdict }) => WORDS[verdict][0] !== "v-open") : every;
  const of = new Map(pairs.map((pair) => [`${pair.a},${pair.b}`, pair]));
  const name = (place) => here.systems[order[place]].name;
  const shown = (side) => new Set(pairs.map((pair) => pair[side]));
  const [above, below] = [shown("a"), shown("b")];
  const places = [...order.keys()],
    columns = places.filter((place) => below.has(order[place]));
  const named = (place) => `${place + 1} ${name(place)}`;
  const head = columns.map((place) =>
    element("th", { scope: "col", title: name(place) }, few ? named(place) : String(place + 1)),
  );
  const rows = places.filter((place) => above.has(order[place])).map((row) => {
    const cells = columns.map((column) => cellOf(of.get(`${order[row]},${order[column]}`), few));
    const heading = element("th", { scope: "row", class: "word", title: name(row) }, named(row));
    return element("tr", {}, heading, ...cells);
  });
  const open = `${every.length - pairs.length} of ${every.length} pairs`;
  $("matrix-hint").textContent =
    `Each cell is the row against the column, by rank in ${state.measure}` +
    `${few ? "" : ", which numbers the columns"}. Choose one to read the numbers behind its verdict.` +
    (many ? ` Left out: ${open} that are neither decided nor contested by ties.` : "");
  $("matrix").replaceChildren(
    element(
      "table",
      { class: few ? null : "many", onkeydown: moveInMatrix },
      element("caption", {}, state.measure),
      element("thead", {}, element("tr", {}, element("td"), ...head)),
      element("tbody", {}, ...rows),
    ),
  );
  $("matrix").querySelector("button")?.setAttribute("tabindex", "0");
  const given = new Set(pairs.map(({ verdict }) => verdict));
  $("verdict-key").replaceChildren(
    ...Object.entries(WORDS)
      .filter(([verdict]) => given.has(verdict))
      .map(([, [style, sign, text, meaning]]) =>
        element("div", {}, element("dt", { class: style }, `${sign} ${text}`), element("dd", {}, meaning)),
      ),
  );
}

function cellOf(pair, few) {
  if (!pair) return element("td");
  const [style, sign, text] = WORDS[pair.verdict];
  const label = `${here.systems[pair.a].name} against ${here.systems[pair.b].name}: ${text}`;
  const attributes = { class: style, tabindex: -1, "aria-label": label, title: few ? null : label };
  return element("td", {}, press(few ? `${sign} ${text}` : sign, () => showPair(pair), attributes));
}

/* One stop of the tab key; the arrows go from cell to cell. */
function moveInMatrix(event) {
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  if (!(event.key in steps)) return;
  const [down, right] = steps[event.key];
  const step = (cell) => {
    const row = cell.closest("tbody").rows[cell.parentElement.sectionRowIndex + down];
    return row?.cells[cell.cellIndex + right];
  };
  let cell = step(event.target.closest("td"));
  while (cell && !cell.querySelector("button")) cell = step(cell); // empty cells are skipped
  const next = cell?.querySelector("button");
  event.preventDefault();
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function showPair(pair) {
  const [a, b] = [pair.a, pair.b].map((system) => here.systems[system].name);
  const error = pair.probability_error > 0 ? ` ± ${(100 * pair.probability_error).toFixed(1)}` : "";
  const chance = (value) => (100 * value).toFixed(1) + error + "\u00a0%";
  const drawn = 1 - pair.a_wins - pair.b_wins;
  const draws = drawn >= 0.0005 ? `; ${(100 * drawn).toFixed(1)}\u00a0% are draws` : "";
  const known = { "A is better": `${a} is better`, "B is better": `${b} is better` }[pair.verdict];
  const said = known ?? (pair.verdict === "decision error" ? "order flips" : pair.verdict);
  const std = Number.isNaN(pair.std) ? "" : ` ± ${number(pair.std)} (tie std)`;
  const p = pair.p_corrected < 0.0001 ? "< 0.0001" : "= " + pair.p_corrected.toFixed(4);
  const value = (name) => number(pair[name], true);
  const interval = `[${value("interval_low")}, ${value("interval_high")}]`;
  const facts = [
    `Expected difference ${value("difference")}${std}; ` +
      `under the tie rule (oblivious) ${value("oblivious_difference")}.`,
    `Ties can move the difference from ${value("lowest")} to ${value("highest")}; under random tie-breaking ` +
      `${a} wins with probability ${chance(pair.a_wins)}, ${b} with ${chance(pair.b_wins)}${draws}.`,
    Number.isNaN(pair.p_corrected)
      ? "No test over queries."
      : `Over queries: corrected p ${p}, interval ${interval}.`,
  ];
  const verdict = element("strong", {}, `${a} against ${b}, ${state.measure}: ${said}`);
  $("verdict").replaceChildren(
    element("p", {}, verdict, known ? "" : ` (${DATA.verdicts[pair.verdict]})`),
    ...facts.map((fact) => element("p", {}, fact)),
  );
}

/* The query explorer: a table to sort and filter, and the ranked list of one query. */

const PAGE_SIZE = 20;
const COLUMNS = ["query", "expected", "range", "bias"];
const UNFILTERED = { text: "", least: null, most: null, column: "range" };
const explorer = { ...UNFILTERED, sort: "range", descending: true, page: 0, at: 0, rows: [] };
const collator = new Intl.Collator("en", { numeric: true });

function views(system, measure) {
  const packed = here.systems[system].values[measure];
  if (!packed) return null;
  const all = unpack(packed),
    n = here.queries.length;
  return Object.fromEntries(VIEWS.map((view, i) => [view, all.subarray(i * n, (i + 1) * n)]));
}

function valueOf(values, column, query) {
  if (column === "range") return values.best[query] - values.worst[query];
  if (column === "bias") return values.oblivious[query] - values.expected[query];
  return values[column][query];
}

function chooser(label, options, chosen, onchange, attributes = {}) {
  const items = options.map(([value, text]) => element("option", { value }, text));
  const box = element("select", { onchange: () => onchange(box.value), ...attributes }, ...items);
  box.value = chosen;
  return element("label", {}, label, " ", box);
}

function setupQueries() {
  Object.assign(explorer, UNFILTERED);
  const wanted = (change) => {
    Object.assign(explorer, change);
    filter();
  };
  const systems = here.systems.map((each, index) => [index, each.name]);
  const columns = COLUMNS.slice(1).map((name) => [name, name]);
  const input = (label, attributes, change) => {
    const box = element("input", { ...attributes, oninput: () => wanted(change(box.value)) });
    return element("label", {}, label, " ", box);
  };
  const bound = (label, name) =>
    input(label, { type: "number", step: "any", id: name }, (value) => ({
      [name]: value === "" ? null : Number(value) / unit(),
    }));
  $("query-controls").replaceChildren(
    chooser("System", systems, state.system, (value) => choose({ system: Number(value) }), { id: "system" }),
    input("Find", { type: "search" }, (value) => ({ text: value.toLowerCase() })),
    chooser("Filter by", columns, "range", (column) => wanted({ column })),
    bound("from", "least"),
    bound("to", "most"),
  );
  $("query-controls").onsubmit = () => false;
  const head = COLUMNS.map((column) => {
    const button = press(column, () => sortBy(column), { "data-column": column });
    return element("th", { scope: "col", class: column === "query" ? "word" : null }, button);
  });
  $("query-table").tHead.replaceChildren(element("tr", {}, ...head));
}

/* The bounds of the filter in the numbers that are shown now. */
function drawBounds() {
  for (const name of ["least", "most"]) {
    $(name).value = explorer[name] == null ? "" : Number((explorer[name] * unit()).toPrecision(10));
  }
}

function sortBy(column) {
  explorer.descending = explorer.sort === column ? !explorer.descending : column !== "query";
  explorer.sort = column;
  filter();
}

function filter() {
  const values = views(state.system, state.measure),
    rows = [];
  for (let query = 0; values && query < here.queries.length; query++) {
    if (!Number.isNaN(values.expected[query]) && isWanted(query, values)) rows.push(query);
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

function isWanted(query, values) {
  const { text, least, most, column } = explorer,
    value = valueOf(values, column, query);
  return (
    (least == null || value >= least - 1e-7) &&
    (most == null || value <= most + 1e-7) &&
    (!text ||
      here.queries[query].toLowerCase().includes(text) ||
      here.queryTexts?.[query].toLowerCase().includes(text))
  );
}

function turn(place, focus = false) {
  Object.assign(explorer, { page: Math.floor(place / PAGE_SIZE), at: place % PAGE_SIZE });
  drawRows(focus);
}

function drawRows(focus = false) {
  const { rows, page } = explorer;
  const values = views(state.system, state.measure);
  const pages = Math.max(1, Math.ceil(rows.length / PAGE_SIZE));
  const [found, all] = [rows.length, here.queries.length].map((n) => n.toLocaleString("en"));
  $("count").textContent = values
    ? `${found} of ${all} queries, page ${page + 1} of ${pages}`
    : `${here.systems[state.system].name} was not evaluated in ${state.measure}`;
  const order = explorer.descending ? "descending" : "ascending";
  for (const button of $("query-table").tHead.querySelectorAll("button")) {
    button.parentNode.setAttribute("aria-sort", button.dataset.column === explorer.sort ? order : "none");
  }
  const lines = rows
    .slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE)
    .map((query, i) => queryRow(query, i, values));
  $("query-table").tBodies[0].replaceChildren(...lines);
  const move = (text, target, enabled) => press(text, () => turn(target * PAGE_SIZE), { disabled: !enabled });
  $("pager").replaceChildren(
    move("First", 0, page > 0),
    move("Previous", page - 1, page > 0),
    move("Next", page + 1, page + 1 < pages),
    move("Last", pages - 1, page + 1 < pages),
  );
  if (focus) lines[explorer.at]?.focus();
}

function queryRow(query, i, values) {
  const label = [here.queries[query], here.queryTexts?.[query] ?? ""].join(" ").trim();
  const cells = COLUMNS.slice(1).map((column) =>
    element("td", {}, number(valueOf(values, column, query), column === "bias")),
  );
  const onclick = () => {
    explorer.at = i;
    choose({ query });
  };
  const selected = String(query === state.query);
  const attributes = { tabindex: i === explorer.at ? 0 : -1, "data-query": query, "aria-selected": selected };
  const head = element("th", { scope: "row", title: label }, label);
  return element("tr", { ...attributes, onclick }, head, ...cells);
}

function moveInQueries(event) {
  const { rows, page, at } = explorer,
    last = Math.max(0, rows.length - 1),
    place = page * PAGE_SIZE + at;
  const steps = {
    ArrowDown: place + 1,
    ArrowUp: place - 1,
    PageDown: place + PAGE_SIZE,
    PageUp: place - PAGE_SIZE,
    Home: 0,
    End: last,
  };
  if (event.key === "Enter" || event.key === " ") choose({ query: rows[place] });
  else if (event.key in steps) turn(Math.min(last, Math.max(0, steps[event.key])), true);
  else return;
  event.preventDefault();
}

/* ---- One query ---- */

function drawQuery() {
  const { query, measure } = state;
  for (const row of $("query-table").tBodies[0].rows) {
    const chosen = Number(row.dataset.query) === query;
    row.setAttribute("aria-selected", String(chosen));
    if (query != null) row.tabIndex = chosen ? 0 : -1;
  }
  if (query == null) {
    $("query").replaceChildren();
    return;
  }
  const rows = [];
  for (const index of new Set([state.system, ...here.order])) {
    const values = views(index, measure);
    if (!values || Number.isNaN(values.expected[query])) continue;
    rows.push([here.systems[index].name, ...VIEWS.map((view) => number(values[view][query]))]);
  }
  const table = tableOf(["system", ...VIEWS], rows, { caption: measure, chosen: 0 });
  const status = element("span", { role: "status" });
  const copy = press("Copy link", () => copyText(location.href, status, "link"));
  $("query").replaceChildren(
    element("h3", {}, [here.queries[query], here.queryTexts?.[query]].filter(Boolean).join(" · ")),
    element("div", { class: "controls" }, copy, status),
    element("div", { class: "scroll", role: "region", "aria-label": "All systems", tabindex: 0 }, table),
    ...ranked(query),
  );
  $("said").textContent = `Query ${here.queries[query]} is shown`;
}

/* The ranked list of the chosen system: tie groups in boxes, the cutoff as a line. */
function ranked(query) {
  const system = here.systems[state.system];
  const hint = (text) => element("p", { class: "hint" }, text);
  if (!system.lists) return [hint(`${system.name}: the ranked list is not part of this page.`)];
  const lists = unpackAll(system.lists);
  const begin = lists.shown.subarray(0, query).reduce((sum, count) => sum + count, 0);
  const shown = lists.shown[query];
  if (!shown) return [hint("The run holds no document for this query.")];
  const k = here.cutoffs[state.measure];
  const items = [];
  for (let place = 0; place < shown;) {
    const [above, size] = [lists.above[begin + place], lists.size[begin + place]];
    let end = place + 1;
    while (end < shown && lists.above[begin + end] === above) end++;
    items.push(group(lists, begin, place, end, k));
    if (end === k && above + size <= k && end < lists.retrieved[query]) items.push(cutoff(`cutoff ${k}`));
    if (end === shown && lists.rest[query]) items.at(-1).append(rest(lists, query));
    place = end;
  }
  const head = ["rank", "grade", "document", "score"].map((text) =>
    element("span", { class: text === "document" ? "id" : text }, text),
  );
  return [
    element("h4", {}, `Ranked list of ${system.name}`),
    element("div", { class: "ranked-head", "aria-hidden": "true" }, ...head),
    element("ol", { class: "ranked" }, ...items),
    ...factsOf(lists, query, k).map(hint),
  ];
}

const cutoff = (text) => element("li", { class: "cutoff" }, text);

function rest(lists, query) {
  const relevant = lists.rest_relevant[query] ? `, ${lists.rest_relevant[query]} of them relevant` : "";
  return element("p", { class: "more" }, `and ${lists.rest[query]} more with this score${relevant}`);
}

/* What the list does not show. */
function factsOf(lists, query, k) {
  const [shown, retrieved, missing] = [lists.shown[query], lists.retrieved[query], lists.missing[query]];
  const hidden = retrieved - shown - lists.rest[query];
  const facts = [];
  if (hidden > 0)
    facts.push(`${hidden.toLocaleString("en")} more documents follow; the page holds the first ${DATA.top}.`);
  if (missing) facts.push(`Relevant but not retrieved: ${missing}.`);
  if (k > shown && shown < retrieved) facts.push(`The cutoff ${k} lies below what is shown.`);
  return facts;
}

/* Documents of one tie group that stand together, from place to end. */
function group(lists, begin, place, end, k) {
  const above = lists.above[begin + place],
    size = lists.size[begin + place],
    lines = [];
  for (let i = place; i < end; i++) {
    if (i === k && i > place) lines.push(cutoff(`cutoff ${k} inside the tie`));
    lines.push(documentLine(lists, begin + i, above + 1 + (size > 1 ? "=" : "")));
  }
  if (end === k && above + size > k && size > 1) lines.push(cutoff(`cutoff ${k} inside the tie`));
  if (size === 1) return lines[0];
  const label = `tie of ${size}, ranks ${above + 1}–${above + size}, in any order`;
  const head = element("span", { class: "label" }, label);
  return element("li", { class: "tie" }, head, element("ol", {}, ...lines));
}

function documentLine(lists, at, rank) {
  const place = lists.documents[at];
  const grade = lists.grades[lists.grade[at]];
  const relevant = grade > 0;
  const judged = Number.isNaN(grade)
    ? "not judged"
    : `${relevant ? "relevant" : "judged not relevant"}, grade ${grade}`;
  const shown = Number.isNaN(grade) ? "–" : String(grade).replace("-", "−");
  const score =
    lists.scores instanceof Float32Array ? Number(lists.scores[at].toPrecision(9)) : lists.scores[at];
  const text = here.documentTexts?.[place];
  return element(
    "li",
    { class: "document" + (relevant ? " relevant" : ""), title: judged },
    element("span", { class: "rank" }, rank),
    element("span", { class: "grade", role: "img", "aria-label": judged }, shown),
    element("span", { class: "id" }, here.documents[place]),
    element("span", { class: "score" }, String(score)),
    text ? element("span", { class: "text" }, text) : null,
  );
}

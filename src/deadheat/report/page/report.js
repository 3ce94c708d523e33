/* The query explorer: a table to sort and search, and the ranked list of one query. */

const STEP = 50; // rows shown at first, and added by the button
const EXPLORER_VIEWS = ["expected", "worst", "best", "oblivious"];
const COLUMNS = {
  query: null,
  expected: ([expected]) => expected,
  range: ([, worst, best]) => best - worst,
  bias: ([expected, , , oblivious]) => oblivious - expected,
};
const explorer = { sort: "range", descending: true, rows: STEP };
const collator = new Intl.Collator("en", { numeric: true });

function number(value, signed = false) {
  if (value == null) return "–";
  const text = percent ? (100 * value).toFixed(DATA.digits - 2) : value.toFixed(DATA.digits);
  if (Number(text) === 0) return text.replace("-", "");
  return signed && value > 0 ? "+" + text : text.replace("-", "−");
}

const systemOf = (name) => here.systems.find((system) => system.name === name);
const labelOf = (query) => [here.queries[query], here.queryTexts?.[query]].filter(Boolean).join(" · ");

/* Expected, worst, best and oblivious value of a query; null if the system lacks it. */
function valuesOf(system, query) {
  const views = system.values[state.measure];
  return views && views[0][query] != null ? views.map((view) => view[query]) : null;
}

function sortBy(column) {
  explorer.descending = explorer.sort === column ? !explorer.descending : column !== "query";
  explorer.sort = column;
  drawQueries();
}

function drawQueries() {
  const { sort, descending, rows: shown } = explorer,
    system = systemOf(state.system),
    wanted = $("find").value.toLowerCase(),
    sign = descending ? -1 : 1;
  const rows = here.queries
    .map((_, query) => ({ query, values: valuesOf(system, query) }))
    .filter(({ query, values }) => values && labelOf(query).toLowerCase().includes(wanted));
  const key = COLUMNS[sort];
  if (key) rows.sort((a, b) => sign * (key(a.values) - key(b.values)));
  else rows.sort((a, b) => sign * collator.compare(here.queries[a.query], here.queries[b.query]));
  const heads = Object.keys(COLUMNS).map((column) => {
    const order = column === sort ? (descending ? "descending" : "ascending") : "none";
    const button = press(column, () => sortBy(column), { "data-column": column });
    return element("th", { scope: "col", class: key ? null : "word", "aria-sort": order }, button);
  });
  $("query-table").tHead.replaceChildren(element("tr", {}, ...heads));
  $("query-table").tBodies[0].replaceChildren(...rows.slice(0, shown).map(queryRow));
  $("more").hidden = rows.length <= shown;
  const count = `${rows.length.toLocaleString("en")} of ${here.queries.length.toLocaleString("en")} queries`;
  $("count").textContent =
    state.measure in system.values ? count : `${system.name} was not evaluated in ${state.measure}`;
}

function queryRow({ query, values }) {
  const cells = Object.entries(COLUMNS).slice(1).map(([column, key]) =>
    element("td", {}, number(key(values), column === "bias")),
  );
  const name = press(labelOf(query), null, { title: labelOf(query) });
  const onclick = () => choose({ query: here.queries[query] });
  return element("tr", { "data-query": query, onclick }, element("th", { scope: "row" }, name), ...cells);
}

/* One query: its values in all systems, and the ranked list of the chosen one. */
function drawQuery() {
  const query = here.queries.indexOf(state.query);
  for (const row of $("query-table").tBodies[0].rows) {
    row.classList.toggle("chosen", Number(row.dataset.query) === query);
  }
  if (query < 0) return $("query").replaceChildren();
  const chosen = systemOf(state.system);
  const row = (tag, cells, attributes = {}) =>
    element("tr", attributes, ...cells.map((text, i) => element(i ? tag : "th", i ? {} : { class: "word" }, text)));
  const rows = [...new Set([chosen, ...here.systems])].flatMap((system) => {
    const values = valuesOf(system, query);
    const style = { class: system === chosen ? "chosen" : null };
    return values ? [row("td", [system.name, ...values.map((value) => number(value))], style)] : [];
  });
  const table = element(
    "table",
    { class: "numbers" },
    element("caption", {}, state.measure),
    element("thead", {}, row("th", ["system", ...EXPLORER_VIEWS])),
    element("tbody", {}, ...rows),
  );
  $("query").replaceChildren(
    element("h3", {}, labelOf(query)),
    element("div", { class: "scroll", role: "region", "aria-label": "All systems", tabindex: 0 }, table),
    ...rankedList(chosen, query),
  );
}

/* The ranked list of a query: tie groups in boxes, the cutoff as a line. */
function rankedList(system, query) {
  const hint = (text) => element("p", { class: "hint" }, text);
  if (!system.lists) return [hint(`${system.name}: the ranked list is not part of this page.`)];
  const [retrieved, rest, restRelevant, missing, groups] = system.lists[query];
  if (!groups.length) return [hint("The run has no documents for this query.")];
  const k = here.cutoffs[state.measure],
    items = [];
  let shown = 0;
  for (const [above, size, documents] of groups) {
    const lines = documents.flatMap((each) => {
      shown += 1;
      const line = documentLine(each, above + 1 + (size > 1 ? "=" : ""));
      if (shown !== k || shown === retrieved) return [line];
      const inside = above + size > k ? " inside the tie" : "";
      return [line, element("li", { class: "cutoff" }, `cutoff ${k}${inside}`)];
    });
    if (size === 1) items.push(...lines);
    else {
      const label = `tie of ${size}, ranks ${above + 1}–${above + size}, in any order`;
      items.push(
        element("li", { class: "tie" }, element("span", { class: "label" }, label), element("ol", {}, ...lines)),
      );
    }
  }
  const facts = [
    rest && `${rest} more with the last score${restRelevant ? `, ${restRelevant} of them relevant` : ""}.`,
    retrieved > shown + rest && `${(retrieved - shown - rest).toLocaleString("en")} more documents follow.`,
    missing && `Relevant but not retrieved: ${missing}.`,
    k > shown && shown < retrieved && `The cutoff ${k} is below the last document shown.`,
  ];
  const head = ["rank", "grade", "document", "score"].map((text) => element("span", { class: text }, text));
  return [
    element("h4", {}, `Ranked list of ${system.name}`),
    element("div", { class: "ranked-head", "aria-hidden": "true" }, ...head),
    element("ol", { class: "ranked" }, ...items),
    ...facts.filter(Boolean).map(hint),
  ];
}

function documentLine([place, grade, score], rank) {
  const relevant = grade > 0;
  const judged = grade == null ? "not judged" : `${relevant ? "relevant" : "judged not relevant"}, grade ${grade}`;
  const shown = grade == null ? "–" : String(grade).replace("-", "−");
  const text = here.documentTexts?.[place];
  return element(
    "li",
    { class: "line" + (relevant ? " relevant" : ""), title: judged },
    element("span", { class: "rank" }, rank),
    element("span", { class: "grade", role: "img", "aria-label": judged }, shown),
    element("span", { class: "document" }, here.documents[place]),
    element("span", { class: "score" }, String(score)),
    text ? element("span", { class: "text" }, text) : null,
  );
}

/* What the page shows, by name, as in its links: #query=28&system=…&measure=… */

const DATA = JSON.parse($("data").textContent);
let here = null; // the collection that is shown
let state = {};

/* Return what a link names, and names that are not on the page. The default system is the one that
   ties move most. */
function read(link) {
  const given = new URLSearchParams(link),
    unknown = [];
  const find = (key, names, otherwise) => {
    if (names.includes(given.get(key))) return given.get(key);
    if (given.has(key)) unknown.push(`${key} ${given.get(key)}`);
    return otherwise;
  };
  const namesOf = (named) => named.map(({ name }) => name);
  const name = find("collection", namesOf(DATA.collections), DATA.collections[0].name);
  const { cutoffs, systems, queries, first } = DATA.collections.find((each) => each.name === name);
  const measures = Object.keys(cutoffs);
  const found = {
    query: find("query", queries, null),
    system: find("system", namesOf(systems), first),
    measure: find("measure", measures, measures[0]),
    collection: name,
  };
  return [found, unknown];
}

function offer(id, names) {
  $(id).replaceChildren(...names.map((name) => element("option", {}, name)));
  $(id).value = state[id];
}

function show(next) {
  const other = ["collection", "measure", "system"].some((key) => next[key] !== state[key]);
  state = next;
  here = DATA.collections.find(({ name }) => name === state.collection);
  for (const part of document.querySelectorAll("[data-collection]")) {
    const { collection, measure = state.measure } = part.dataset;
    part.hidden = collection !== state.collection || measure !== state.measure;
  }
  $("collection").value = state.collection;
  offer("measure", Object.keys(here.cutoffs));
  offer("system", here.systems.map(({ name }) => name));
  if (other) drawQueries();
  drawQuery();
}

/* Show a choice of the reader, and add its link to the history. */
function choose(change) {
  show({ ...state, ...change });
  const named = Object.entries(state).filter(
    ([key, value]) => value != null && (key !== "collection" || DATA.collections.length > 1),
  );
  history.pushState(null, "", "#" + new URLSearchParams(named));
  if (change.query && matchMedia("(max-width: 60rem)").matches) $("query").scrollIntoView();
}

function follow() {
  const link = location.hash.slice(1);
  if (link && !link.includes("=")) return; // a section
  const [found, unknown] = read(link);
  show(found);
  if (unknown.length) $("count").textContent = `Not on this page: ${unknown.join(", ")}.`;
  if (link) $(state.query == null ? "queries" : "query").scrollIntoView();
}

$("queries").hidden = false;
for (const id of ["measure", "system"]) $(id).onchange = () => choose({ [id]: $(id).value });
$("collection").onchange = () => choose(read(new URLSearchParams({ collection: $("collection").value }))[0]);
$("find").oninput = drawQueries;
$("find").form.onsubmit = () => false;
$("more").onclick = () => {
  explorer.rows += STEP;
  drawQueries();
};
for (const chart of document.querySelectorAll(".chart")) {
  const curves = chart.querySelectorAll("g");
  chart.querySelectorAll(".legend input").forEach((box, i) => {
    box.onchange = () => curves[i].toggleAttribute("hidden", !box.checked);
  });
}
redraw = () => {
  drawQueries();
  drawQuery();
};
addEventListener("popstate", follow);
follow();

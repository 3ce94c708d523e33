/* What is shown now, and the link to it: #query=28&system=…&measure=… */

let here = null; // the collection that is shown
const state = { collection: null, measure: null, system: null, query: null };

/* Where a reader begins: the first measure, and the system that ties move most in it. */
function beginning(collection) {
  const { shown, systems } = DATA.collections[collection],
    measure = shown[0];
  const ranges = systems.map(({ means }) => (means[measure] ? means[measure][2] - means[measure][1] : -1));
  return { collection, measure, system: ranges.indexOf(Math.max(...ranges)), query: null };
}

/* Show something else, and draw what depends on it. */
function show(change) {
  const before = { ...state };
  if (change.collection !== undefined && change.collection !== state.collection)
    change = { ...beginning(change.collection), ...change };
  Object.assign(state, change);
  const changed = (...names) => names.some((name) => state[name] !== before[name]);
  if (changed("collection")) setup();
  $("measure").value = state.measure;
  $("system").value = state.system;
  if (changed("collection", "measure")) {
    drawIntervals();
    drawCurves();
    drawComparison();
  }
  if (changed("collection", "measure", "system")) filter();
  drawQuery();
}

/* What the reader chooses can be linked to, and left by the back button. */
function choose(change) {
  show(change);
  history.pushState(null, "", "#" + link());
  if (state.query != null && "query" in change && matchMedia("(max-width: 60rem)").matches)
    $("query").scrollIntoView();
}

function link() {
  const named = new URLSearchParams();
  if (state.query != null) named.set("query", here.queries[state.query]);
  named.set("system", here.systems[state.system].name);
  named.set("measure", state.measure);
  if (DATA.collections.length > 1) named.set("collection", here.name);
  return named.toString();
}

/* Read the link; what this page does not have stays as it is, and is named. */
function follow() {
  const hash = location.hash.slice(1);
  if (hash && !hash.includes("=")) return; // a section
  const named = new URLSearchParams(hash),
    unknown = [];
  const find = (key, names, otherwise) => {
    const place = named.has(key) ? names.indexOf(named.get(key)) : -1;
    if (named.has(key) && place < 0) unknown.push(`${key} ${named.get(key)}`);
    return place < 0 ? otherwise : place;
  };
  const namesOf = (named) => named.map(({ name }) => name);
  const collection = find("collection", namesOf(DATA.collections), hash ? state.collection : 0);
  const { shown, systems, queries } = DATA.collections[collection];
  show({
    collection,
    measure: shown[find("measure", shown, 0)],
    system: find("system", namesOf(systems), beginning(collection).system),
    query: find("query", queries, null),
  });
  if (unknown.length)
    $("count").textContent = `Not on this page: ${unknown.join(", ")}.`;
  if (explorer.rows.includes(state.query)) turn(explorer.rows.indexOf(state.query));
  if (hash) (state.query == null ? $("queries") : $("query")).scrollIntoView();
}

/* Systems as the leaderboard begins with them: colours, curves and their legend follow that order. */
function ordered({ systems, shown }) {
  const expected = ({ means }) => means[shown[0]]?.[0] ?? -1;
  const order = [...systems.keys()].sort((a, b) => expected(systems[b]) - expected(systems[a]));
  return { order, place: systems.map((_, index) => order.indexOf(index)) };
}

/* Everything that is the same for all measures of a collection. */
function setup() {
  here = { ...DATA.collections[state.collection], ...ordered(DATA.collections[state.collection]) };
  document.querySelectorAll("section").forEach((section) => {
    [...section.querySelectorAll(".of-collection")].forEach((part, index) => {
      part.hidden = index !== state.collection;
    });
  });
  $("collection").value = state.collection;
  $("measure").replaceChildren(...here.shown.map((name) => element("option", { value: name }, name)));
  setupCurves();
  setupQueries();
}

function drawAll() {
  drawIntervals();
  drawCurves();
  drawComparison();
  drawBounds();
  drawRows();
  drawQuery();
}

$("collection").replaceChildren(
  ...DATA.collections.map((each, index) => element("option", { value: index }, each.name)),
);
$("collection").onchange = () => choose({ collection: Number($("collection").value) });
$("measure").onchange = () => choose({ measure: $("measure").value });
$("query-table").tBodies[0].addEventListener("keydown", moveInQueries);
document
  .querySelectorAll("#leaderboard > .of-collection")
  .forEach((area, index) => makeCopied(area, DATA.copies[index]));
if ($("chart")) {
  $("chart").onpointermove = pointAt;
  $("chart").onpointerleave = () => {
    const tip = $("chart").querySelector(".tip");
    if (tip) tip.hidden = true;
  };
  new ResizeObserver(() => {
    if (!printing) drawCurves();
  }).observe($("chart"));
}
redraw = drawAll;
addEventListener("popstate", follow);
show({ collection: 0 });
if (location.hash) follow();

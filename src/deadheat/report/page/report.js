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

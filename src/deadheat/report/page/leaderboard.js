"use strict";

/* The tables are in the page; this sorts and filters their rows, and shows one measure at a time. */

const RANKS = new Set(["official", "rank", "ranks"]);

for (const board of document.querySelectorAll(".board")) {
  const controls = board.querySelector(".controls");
  const tables = [...board.querySelectorAll(".ranking")];
  const search = board.querySelector(".search");
  const measure = board.querySelector(".measure");
  const facets = [...board.querySelectorAll("select.facet")];

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    tables.forEach((table, index) => {
      table.hidden = index !== Number(measure.value);
      let shown = 0;
      const rows = table.querySelectorAll("tbody tr");
      for (const row of rows) {
        const words = [...row.querySelectorAll(".word")].map((cell) => cell.textContent);
        words.push(...Object.values(row.dataset));
        const hit = words.map((text) => text.toLowerCase()).some((text) => text.includes(wanted)) && facets.every((facet) =>
          !facet.value || row.getAttribute(`data-facet-${facet.dataset.column}`) === facet.value);
        row.hidden = !hit;
        shown += hit;
      }
      if (!table.hidden) board.querySelector(".count").textContent = `${shown} of ${rows.length} runs`;
    });
  }

  /* Empty cells come last whichever way; numbers start with the highest, ranks and words do not. */
  function sort(head, column, body) {
    const before = head.getAttribute("aria-sort");
    const numeric = body.rows[0]?.cells[column].dataset.value !== undefined;
    const first = numeric && !RANKS.has(head.textContent) ? "descending" : "ascending";
    const other = first === "descending" ? "ascending" : "descending";
    const direction = before === first ? other : first;
    const key = (row) => numeric ? row.cells[column].dataset.value : row.cells[column].textContent;
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      return sign * (numeric ? Number(x) - Number(y) : x.localeCompare(y));
    });
    for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction);
    body.replaceChildren(...rows);
  }

  for (const table of tables) {
    const body = table.querySelector("tbody");
    [...table.querySelector("thead tr").cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.onclick = () => sort(head, column, body);
      head.replaceChildren(button);
    });
  }
  search.oninput = filter;
  for (const box of [measure, ...facets]) box.onchange = filter;
  controls.hidden = false;
  filter();
}

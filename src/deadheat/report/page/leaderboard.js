/* Leaderboards: the tables are in the page; this filters their rows, and shows one measure at a time. */

function setupBoard(board) {
  const tables = [...board.querySelectorAll(".ranking")];
  const search = board.querySelector(".search");
  const measure = board.querySelector(".measure");

  function isWanted(row) {
    const words = [...row.querySelectorAll(".word")].map((cell) => cell.textContent.toLowerCase());
    return words.some((text) => text.includes(search.value.trim().toLowerCase()));
  }

  function filter() {
    tables.forEach((table, index) => {
      table.hidden = index !== Number(measure.value);
      const rows = [...table.querySelectorAll("tbody tr")];
      for (const row of rows) row.hidden = !isWanted(row);
      const shown = rows.filter((row) => !row.hidden).length;
      if (!table.hidden) board.querySelector(".count").textContent = `${shown} of ${rows.length} runs`;
    });
  }

  search.oninput = measure.onchange = filter;
  board.querySelector(".choices").hidden = false;
  filter();
}

document.querySelectorAll(".board").forEach(setupBoard);

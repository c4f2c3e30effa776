"use strict";
// Tables sort by the column whose head is clicked, numbers as numbers; plots are drawn.
(function () {
  function key(row, column) {
    const cell = row.cells[column];
    const number = cell.dataset.sort;
    return number === undefined ? cell.textContent : Number(number);
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      head.querySelector("button").addEventListener("click", function () {
        const down = head.getAttribute("aria-sort") === "descending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "ascending" : "descending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows);
        rows.sort(function (a, b) { return compare(key(a, column), key(b, column)); });
        if (!down) rows.reverse();
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
  }
  for (const place of document.querySelectorAll("div.plot")) {
    const figure = JSON.parse(place.querySelector("script").textContent);
    const options = { responsive: true, displaylogo: false };
    window.Plotly.newPlot(place, figure.data, figure.layout, options);
  }
})();

"use strict";
// Tables sort by the column whose head is clicked, numbers as numbers, and can be searched; plots
// are drawn in the colours of the page, which are light on paper.
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
  for (const search of document.querySelectorAll("p.search")) {
    const rows = Array.from(search.nextElementSibling.querySelectorAll("tbody tr"));
    const texts = rows.map(function (row) { return row.textContent.toLowerCase(); });
    const input = search.querySelector("input");
    input.addEventListener("input", function () {
      const words = input.value.toLowerCase();
      let shown = 0;
      rows.forEach(function (row, i) {
        row.hidden = !texts[i].includes(words);
        if (!row.hidden) shown += 1;
      });
      search.querySelector("output").textContent = words ? shown + " of " + rows.length : "";
    });
  }
  function colors() {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    const line = style.getPropertyValue("--line").trim();
    const chosen = { "font.color": ink };
    chosen.paper_bgcolor = chosen.plot_bgcolor = chosen["modebar.bgcolor"] = "rgba(0,0,0,0)";
    chosen["modebar.color"] = line;
    chosen["modebar.activecolor"] = ink;
    for (const axis of ["xaxis", "yaxis"]) {
      for (const part of ["gridcolor", "zerolinecolor", "linecolor"]) {
        chosen[axis + "." + part] = line;
      }
    }
    return chosen;
  }
  // Without a pointer that hovers, the buttons would always lie over the plot.
  const hovers = window.matchMedia("(hover: hover)").matches ? "hover" : false;
  const plots = Array.from(document.querySelectorAll("div.plot"));
  function recolor() {
    for (const place of plots) window.Plotly.relayout(place, colors());
  }
  for (const place of plots) {
    const figure = JSON.parse(place.querySelector("script").textContent);
    const options = { responsive: true, displaylogo: false, displayModeBar: hovers };
    const layout = figure.layout;
    for (const [name, color] of Object.entries(colors())) {
      const [part, field] = name.split(".");
      if (field) layout[part] = Object.assign({}, layout[part], { [field]: color });
      else layout[part] = color;
    }
    window.Plotly.newPlot(place, figure.data, layout, options);
  }
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", recolor);
  function setPrinted(printed) {
    if (!dark.matches) return;
    document.documentElement.classList.toggle("printed", printed);
    recolor();
  }
  window.addEventListener("beforeprint", function () { setPrinted(true); });
  window.addEventListener("afterprint", function () { setPrinted(false); });
})();

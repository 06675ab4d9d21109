"use strict";
(() => {
  const value = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.v;
    if (number === undefined) return cell.textContent.trim();
    return number === "" ? null : Number(number);
  };
  const compare = (a, b) =>
    typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
  const sort = (table, header, column) => {
    const descending = header.getAttribute("aria-sort") === "ascending";
    const sign = descending ? -1 : 1;
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [value(row, column), row]);
    rows.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : sign * compare(a, b)));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const header of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, header, header.cellIndex));
    }
  }
})();

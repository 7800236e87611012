// Tables: figures stay on one line, and on a phone the columns that differ from row to row in figures come first, behind the
// names of the rows; then words, then what is the same in all rows.
(function () {
  "use strict";
  const phone = matchMedia("(max-width: 44.9em)");
  const text = cell => (cell ? cell.textContent.trim() : "");
  const isShape = words => /\d x \d/.test(words);  // 4096 x 16384 x 4096
  const isFigure = words => !isShape(words) && /^[-+x]?\.?\d[\d.,x %()]*( ?[^\s\d]{1,5})?$|^(-|not run|see below)?$/.test(words);

  function arrange(table) {
    const rows = Array.from(table.rows), cells = rows.map(row => Array.from(row.cells));
    cells.slice(1).flat().forEach(cell => cell.classList.toggle("figure", /\d/.test(text(cell)) && isFigure(text(cell))));
    const order = cells[0].map((_, column) => column), below = column => cells.slice(1).map(row => text(row[column]));
    const words = order.filter(column => !below(column).every(isFigure));
    const names = words.find(column => cells[1][column].querySelector("code")) ?? words[0] ?? 0;
    const kind = column => column === names ? 0 : rows.length > 2 && new Set(below(column)).size === 1 ? 3 : words.includes(column) ? 2 : 1;
    const moved = order.slice().sort((one, other) => kind(one) - kind(other) || one - other);
    const place = () => rows.forEach((row, at) => row.append(...(phone.matches ? moved : order).map(column => cells[at][column]).filter(Boolean)));
    phone.addEventListener("change", place);
    place();
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("article table").forEach(arrange));
})();

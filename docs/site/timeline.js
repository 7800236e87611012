// Zoom and details for a timeline of tools/pages/draw_timeline.py, inside the picture itself: tools/pages/build_site.py puts this script
// into the site's copies. Only time is stretched, so that words keep their size. Without the script, and on paper, the picture
// stays as it is.
(function () {
  "use strict";
  const NS = "http://www.w3.org/2000/svg", LEFT = 152, LETTER = 7;
  const svg = document.documentElement, right = svg.viewBox.baseVal.width - 24;
  let from = LEFT, to = right;

  function make(name, attributes, parent) {
    const element = document.createElementNS(NS, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return parent.appendChild(element);
  }
  function value(element, name) { return parseFloat(element.getAttribute(name)); }

  const bars = Array.from(svg.querySelectorAll("g > rect.bar")).map(function (rect) {
    const group = rect.parentNode, title = group.querySelector("title");
    const details = title.textContent.split("\n");
    group.setAttribute("role", "img");
    group.setAttribute("aria-label", details.join(", "));
    group.setAttribute("tabindex", -1);
    title.remove();  // the box below says the same, at once
    const words = group.querySelector("text") || make("text", {class: "in", "font-size": 12, y: value(rect, "y") + 13}, group);
    return {group: group, rect: rect, words: words, details: details, x: value(rect, "x"), width: value(rect, "width")};
  });
  const lines = Array.from(svg.querySelectorAll("line")).map(function (line) { return {line: line, x: value(line, "x1")}; });
  const ticks = Array.from(svg.querySelectorAll('text.note[text-anchor="middle"]')).map(function (text) {
    return {text: text, x: value(text, "x")};
  });

  function place(x) { return LEFT + (x - from) / (to - from) * (right - LEFT); }
  function show(element, visible) { element.style.display = visible ? "" : "none"; }

  function draw() {
    bars.forEach(function (bar) {
      const begin = Math.max(LEFT, place(bar.x)), end = Math.min(right, place(bar.x + bar.width));
      show(bar.group, end > begin);
      bar.rect.setAttribute("x", begin);
      bar.rect.setAttribute("width", Math.max(0, end - begin));
      const name = bar.details[0], fitting = [name, name.split(": ").pop()].find(function (words) {
        return words.length * LETTER + 6 <= end - begin;
      });
      bar.words.textContent = fitting || "";
      bar.words.setAttribute("x", (begin + end) / 2);
    });
    lines.forEach(function (each) {
      const x = place(each.x);
      show(each.line, x >= LEFT - 0.5 && x <= right + 0.5);
      each.line.setAttribute("x1", x);
      each.line.setAttribute("x2", x);
    });
    ticks.forEach(function (tick) {
      const x = place(tick.x);
      show(tick.text, x >= LEFT - 0.5 && x <= right + 0.5);
      tick.text.setAttribute("x", x);
    });
  }

  function look(begin, end) {  // between these places of the whole picture
    const span = Math.min(right - LEFT, Math.max(2, end - begin));
    from = Math.min(Math.max(LEFT, begin), right - span);
    to = from + span;
    draw();
  }
  function zoom(factor, at) { look(at - (at - from) * factor, at + (to - at) * factor); }
  function middle() { return (from + to) / 2; }

  make("style", {}, svg).textContent = ":root { color-scheme: light dark; }" +
    " g:focus-visible { outline: none; } g:focus-visible > rect { stroke: #0969da; stroke-width: 2; } .button { cursor: pointer; } .button rect, .box rect { fill: #ffffff; stroke: #8c959f; }" +
    " .button text { text-anchor: middle; } .box { pointer-events: none; } @media print { .button, .box { display: none; } }" +
    " @media (prefers-color-scheme: dark) { .button rect, .box rect { fill: #21262d; } }";
  [["\u2212", "show more time", function () { zoom(2, middle()); }], ["+", "show less time", function () { zoom(0.5, middle()); }],
    ["all", "show all", function () { look(LEFT, right); }]].forEach(function (each, number) {
    const x = right - 110 + 38 * number;
    const button = make("g", {class: "button", tabindex: 0, role: "button", "aria-label": each[1]}, svg);
    make("rect", {x: x, y: 12, width: 34, height: 22, rx: 4}, button);
    make("text", {x: x + 17, y: 28, "font-size": 13}, button).textContent = each[0];
    button.addEventListener("click", each[2]);
    button.addEventListener("keydown", function (event) {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();  // the page stays where it is
      each[2]();
    });
  });

  const box = make("g", {class: "box", style: "display: none"}, svg);
  const frame = make("rect", {rx: 4}, box);
  function point(event) { return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()); }
  function tell(bar, at) {
    box.querySelectorAll("text").forEach(function (text) { text.remove(); });
    const width = LETTER * Math.max.apply(null, bar.details.map(function (line) { return line.length; })) + 16;
    const height = 17 * bar.details.length + 10;
    const x = Math.max(4, Math.min(at.x + 12, right + 20 - width));
    const y = Math.max(4, at.y + 16 + height > svg.viewBox.baseVal.height ? at.y - height - 8 : at.y + 16);
    frame.setAttribute("x", x);
    frame.setAttribute("y", y);
    frame.setAttribute("width", width);
    frame.setAttribute("height", height);
    bar.details.forEach(function (line, number) {
      make("text", {x: x + 8, y: y + 18 + 17 * number, "font-size": 12}, box).textContent = line;
    });
    show(box, true);
  }
  function untell() { show(box, false); }
  svg.addEventListener("pointerdown", untell, {capture: true});  // before a bar hears of it: a finger has no way to leave
  bars.forEach(function (bar) {
    ["pointermove", "pointerdown"].forEach(function (type) {
      bar.group.addEventListener(type, function (event) { tell(bar, point(event)); });
    });
    bar.group.addEventListener("pointerleave", function (event) { if (event.pointerType !== "touch") untell(); });
    bar.group.addEventListener("focus", function () {
      if (bar.group.matches(":focus-visible")) tell(bar, {x: place(bar.x + bar.width / 2), y: value(bar.rect, "y")});
    });
    bar.group.addEventListener("blur", untell);
  });

  // By keyboard the first bar is reached as a button is, and the others from there, also those that are not shown now.
  bars[0].group.setAttribute("tabindex", 0);
  svg.addEventListener("keydown", function (event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    const next = bars[bars.findIndex(function (bar) { return bar.group === event.target; }) + step];
    if (next === undefined || event.target.classList.contains("button")) return;
    event.preventDefault();
    const centre = next.x + next.width / 2, half = (to - from) / 2;
    if (next.x + next.width <= from || next.x >= to) look(centre - half, centre + half);
    next.group.focus();
  });

  let held = null;  // where a drag began, and what was shown then
  svg.addEventListener("pointerdown", function (event) { held = {x: point(event).x, from: from, to: to}; });
  svg.addEventListener("pointermove", function (event) {
    if (held === null || event.buttons === 0) return;
    const by = (held.x - point(event).x) * (held.to - held.from) / (right - LEFT);
    look(held.from + by, held.to + by);
  });
  svg.addEventListener("pointerup", function () { held = null; });
  svg.addEventListener("wheel", function (event) {
    if (!event.ctrlKey) return;  // the page scrolls
    event.preventDefault();
    const at = from + (point(event).x - LEFT) / (right - LEFT) * (to - from);
    zoom(event.deltaY < 0 ? 0.8 : 1.25, Math.max(from, Math.min(to, at)));
  }, {passive: false});
})();

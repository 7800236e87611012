// What Doxygen's pages lack: on a narrow screen, a button that shows the list of pages; behind each heading, a link to it; below
// each page, the ones before and after it in that list. No network, no library.
(function () {
  "use strict";

  function addContentsButton() {
    const button = document.createElement("button");
    button.id = "contents-button";
    button.type = "button";
    button.textContent = "Contents";
    button.setAttribute("aria-controls", "side-nav");
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", function () {
      const open = document.documentElement.classList.toggle("contents-open");
      button.setAttribute("aria-expanded", String(open));
    });
    document.getElementById("titlearea").appendChild(button);
  }

  function addHeadingLinks() {
    document.querySelectorAll(".textblock :is(h1, h2, h3) > .anchor[id]").forEach(function (anchor) {
      const link = document.createElement("a");
      link.className = "heading-link";
      link.href = "#" + anchor.id;
      link.textContent = "#";
      link.setAttribute("aria-label", "link to this heading");
      anchor.parentElement.appendChild(link);
    });
  }

  // NAVTREE is Doxygen's: [[title, first page, [[title, page, children], ...]]]; behind the pages come its lists of types.
  function pages() {
    const all = NAVTREE[0][2].map(function (entry) { return {title: entry[0], target: entry[1] || ""}; });
    const end = all.findIndex(function (page) { return /^(annotated|namespaces|files|usergroup)/.test(page.target); });
    return end < 0 ? all : all.slice(0, end);
  }

  function addNeighbours() {
    const contents = document.querySelector("#doc-content .contents");
    const here = location.pathname.split("/").pop() || "index.html";
    const list = pages();
    const at = list.findIndex(function (page) { return page.target === here; });
    if (at < 0 || contents === null) return;
    const line = document.createElement("p");
    line.id = "neighbours";
    [[list[at - 1], "\u2190 ", ""], [list[at + 1], "", " \u2192"]].forEach(function (each) {
      if (each[0] === undefined) return;
      const link = document.createElement("a");
      link.href = each[0].target;
      link.textContent = each[1] + each[0].title + each[2];
      line.appendChild(link);
    });
    contents.appendChild(line);
  }

  document.addEventListener("DOMContentLoaded", function () {
    if (document.getElementById("titlearea") === null) return;
    addContentsButton();
    addHeadingLinks();
    addNeighbours();
  });
})();

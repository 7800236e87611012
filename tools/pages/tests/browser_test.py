#!/usr/bin/python3
"""Tests of the built site in a browser: browser_test.py FOLDER, after ./lab docs. .ci/run --full runs it with Debian's chromium,
chromium-driver and python3-selenium; no network is used but the loopback.

Pages are loaded in the light and in the dark mode, wide and as narrow as a phone. Each must have no error on the console, no
request to another host, no missing picture and no raw Markdown; only code, tables and pictures may scroll sideways.
(tools/pages/build_site.py has checked the links.) A few templates make the pages of the reference and of files, so only each
tenth of them is loaded.
"""
import functools
import http.server
import pathlib
import re
import sys
import tempfile
import threading
import time
import unittest
from typing import Any, Dict, List

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

NARROW, WIDE = (390, 844), (1300, 900)
LEAST_PARAGRAPH = 300  # pixels, on a phone
LEAST_CONTRAST = 4.5  # WCAG 2, of text and its background
SITE = pathlib.Path()
PAGE = "chapters/05_two_streams/index.html"  # with timelines, tables, code and folds

# A script that finds the errors of the page in which it runs.
INSPECT = """
const wide = [], pictures = [], width = document.documentElement.clientWidth;
const article = document.querySelector('article') || document.querySelector('.contents');
const scrolls = element => ['auto', 'scroll', 'hidden'].includes(getComputedStyle(element).overflowX);
if (arguments[0]) for (const element of document.querySelectorAll('article *, .md-header *, .contents *, .header *')) {
  const box = element.getBoundingClientRect();
  if (box.width === 0 || box.right <= width + 1) continue;
  let parent = element;
  while (parent !== document.body && !scrolls(parent)) parent = parent.parentElement;
  if (parent === document.body || parent.id === 'doc-content') wide.push(element.tagName + '.' + element.className);
}
for (const image of document.images)
  if (image.getClientRects().length > 0 && !(image.complete && image.naturalWidth > 0)) pictures.push(image.src);
for (const object of document.querySelectorAll('object'))
  if (object.contentDocument === null || object.contentDocument.querySelector('.button') === null) pictures.push(object.data);
const colour = element => { while (element && getComputedStyle(element).backgroundColor === 'rgba(0, 0, 0, 0)')
  element = element.parentElement; return element ? getComputedStyle(element).backgroundColor : 'rgb(255, 255, 255)'; };
const unread = [], walk = document.createTreeWalker(document.querySelector('article, .textblock') || document.createElement('p'), 4);
for (let text = walk.nextNode(); text; text = walk.nextNode())
  if (!text.parentElement.closest('code, pre, .fragment, .compoundTemplParams') &&
      /`|\\]\\(|\\*\\*|[\\\\@][a-z]+|<\\/?[a-z]|\\{#|[?!]{3}/.test(text.data)) unread.push(text.data.trim());
for (const fold of document.querySelectorAll('details'))
  if (fold.querySelector('summary') === null || fold.textContent.trim() === fold.querySelector('summary').textContent.trim())
    unread.push(fold.outerHTML);
const foreign = performance.getEntriesByType('resource').map(entry => entry.name).filter(name => !name.startsWith(location.origin));
const words = article.querySelector('p') || article, links = article.querySelector('p a') || words;
const paragraphs = Array.from(document.querySelectorAll('article > p')).map(p => p.getBoundingClientRect().width);
return {wide: wide.slice(0, 3), pictures: pictures, unread: unread.slice(0, 3), foreign: foreign, text: getComputedStyle(words).color,
        link: getComputedStyle(links).color, page: colour(words), narrowest: paragraphs.length ? Math.min(...paragraphs) : null};
"""


def luminance(colour: str) -> float:
    """The luminance of a colour such as "rgb(21, 24, 28)", as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, format: str, *args: Any) -> None:  # pylint: disable=redefined-builtin
        pass


class BrowserTest(unittest.TestCase):
    browser: webdriver.Chrome

    @classmethod
    def setUpClass(cls) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.address = f"http://127.0.0.1:{server.server_port}"
        profile = tempfile.TemporaryDirectory()
        cls.addClassCleanup(profile.cleanup)
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         f"--user-data-dir={profile.name}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.addClassCleanup(cls.browser.quit)

    def look(self, size: Any, mode: str = "light") -> None:
        """Sets the window's size and the colours that the system prefers, and clears the choice that the site has stored."""
        width, height = size
        self.browser.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": self.address, "storageTypes": "local_storage"})
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == NARROW})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": mode}]})

    def load(self, page: str) -> None:
        self.browser.get(f"{self.address}/{page}")

    def errors(self) -> List[str]:
        """The console's messages since the last call."""
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"
                and "favicon.ico" not in entry["message"]]

    def until(self, script: str) -> Any:
        """The result of a script, once it is not empty."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = self.browser.execute_script(script)
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def inspect(self, page: str, narrow: bool) -> Dict[str, Any]:
        self.load(page)
        self.until("return Array.from(document.images).every(image => image.complete)")  # scripts add more after the page's own
        self.assertEqual(self.errors(), [], page)
        return self.browser.execute_script(INSPECT, narrow)

    def check(self, page: str, narrow: bool, mode: str) -> None:
        found = self.inspect(page, narrow)
        self.assertEqual((found["wide"], found["pictures"], found["unread"], found["foreign"]), ([], [], [], []), page)
        self.assertGreater(contrast(found["text"], found["page"]), LEAST_CONTRAST, page)
        self.assertGreater(contrast(found["link"], found["page"]), LEAST_CONTRAST, page)
        self.assertEqual(luminance(found["page"]) < 0.2, mode == "dark", page)

    def test_every_page(self) -> None:
        """All pages of the course, and some of the reference and of files, in both widths and both modes."""
        pages = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
        made = [page for page in pages if re.match("files/|reference/(?!search/)", page)]
        course = [page for page in pages if not re.match("files/|reference/", page)]
        self.assertGreater(len(course), 50)
        self.assertGreater(len(made), 500)
        for size, mode, chosen in ((NARROW, "light", course + made[::10]), (NARROW, "dark", course + made[5::50]),
                                   (WIDE, "dark", course), (WIDE, "light", course)):
            self.look(size, mode)
            for page in chosen:
                with self.subTest(page, size=size, mode=mode):
                    self.check(page, size == NARROW, mode)

    def test_paragraphs_on_a_phone(self) -> None:
        self.look(NARROW)
        for page in ("index.html", "chapters/03_ring_all_gather/index.html", "docs/articles/async_tensor_parallelism.html"):
            found = self.inspect(page, True)
            self.assertGreaterEqual(found["narrowest"], LEAST_PARAGRAPH, page)

    def test_pictures_and_tables_on_a_phone(self) -> None:
        """They scroll in a frame of their own, so that their text stays readable and names are not broken. Plots of notebooks
        are shown whole: their titles say whether times are measured."""
        self.look(NARROW)
        self.assertEqual(self.inspect(PAGE, True)["wide"], [])
        widths = self.browser.execute_script("return Array.from(document.querySelectorAll('.frame > *')).map(p => p.clientWidth)")
        self.assertGreaterEqual(len(widths), 2)
        self.assertGreaterEqual(min(widths), 600)
        plots = "return Array.from(document.querySelectorAll('.frame > img')).map(p => p.getBoundingClientRect().right)"
        self.inspect("notebooks/1_speed_up_and_copies.html", True)
        self.assertLessEqual(max(self.browser.execute_script(plots)), NARROW[0])
        self.load("docs/calls.html")
        height = "return Array.from(document.querySelectorAll('td code')).find(c => c.textContent === '{}').offsetHeight"
        self.assertEqual(*(self.browser.execute_script(height.format(name)) for name in ("cudaFree", "cudaMemcpy2DAsync")))

    def test_tables_show_their_figures_first_on_a_phone(self) -> None:
        """The columns of figures follow the names of the rows; when the phone is turned, the usual order returns."""
        for page, section, mark, name, figures, wide in (
                ("index.html", "dense-hide-the-transfers-behind-the-gemm", "chapter", "chapter", "x GEMM only", ["chapter", "idea"]),
                (PAGE, "measured", "HBM3", "variant", "2 x H100", ["variant", "2 x H100 80GB HBM3: 2048 x 8192 x 4096"]),
                (PAGE, "measured", "exposed", "variant", "time, us", ["M x N x K", "GPUs"]),
                ("chapters/08_sparse_baselines/index.html", "measured", "variant", "variant", "ms", ["table, rows of each GPU", "GPUs"])):
            self.look(NARROW)
            self.load(page)
            self.browser.execute_script("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
            table = f"Array.from(document.querySelectorAll('#{section} ~ * table')).find(t => t.rows[0].textContent.includes('{mark}'))"
            head = f"return Array.from({table}.rows[0].cells).slice(0, 2).map(cell => cell.textContent.trim())"
            self.assertRegex(" | ".join(self.browser.execute_script(head)), rf"^{name} \| .*{figures}")
            self.assertLess(self.browser.execute_script(f"return {table}.rows[1].cells[1].getBoundingClientRect().right"), NARROW[0])
            self.look(WIDE)
            self.assertEqual(self.browser.execute_script(head), wide)

    def test_figures_are_not_broken(self) -> None:
        self.look(WIDE)
        self.load(PAGE)
        heights = self.browser.execute_script("const range = document.createRange(); return Array.from(document.querySelectorAll("
                                              "'td.figure')).map(cell => { range.selectNodeContents(cell); "
                                              "return range.getBoundingClientRect().height; })")
        self.assertGreater(len(heights), 50)
        self.assertLess(max(heights), 30)

    def test_what_is_wrong_is_found(self) -> None:
        self.look(NARROW)
        self.load("index.html")
        self.browser.execute_script("const wide = document.createElement('div'); wide.style.width = '900px'; wide.className = 'odd';"
                                    "wide.textContent = 'x'; document.querySelector('article').appendChild(wide);"
                                    "const image = document.createElement('img'); image.src = 'none.png'; image.width = 9;"
                                    "document.querySelector('article').appendChild(image); console.error('oh');"
                                    "const other = image.cloneNode(); other.src = 'http://localhost:1/other.png'; image.after(other);"
                                    "document.querySelector('article').append('a `b', document.createElement('details'));")
        self.until("return Array.from(document.images).every(image => image.complete)")
        found = self.browser.execute_script(INSPECT, True)
        self.assertEqual(found["wide"], ["DIV.odd"])
        self.assertEqual(found["unread"], ["a `b", "<details></details>"])
        self.assertEqual(len(found["pictures"]), 2)
        self.assertEqual(found["foreign"], ["http://localhost:1/other.png"])
        self.assertRegex(" ".join(self.errors()), "none.png")
        self.assertLess(contrast("rgb(120, 120, 120)", "rgb(90, 90, 90)"), LEAST_CONTRAST)

    def test_sidebar_shows_whole_titles(self) -> None:
        self.look(WIDE)
        self.load(PAGE)
        titles, cut = self.browser.execute_script(
            "const shown = Array.from(document.querySelectorAll('.md-nav--primary .md-nav__link')).filter(a => a.getClientRects().length > 0);"
            "const side = document.querySelector('.md-sidebar--primary').getBoundingClientRect().right;"
            "return [shown.length, shown.filter(a => a.getBoundingClientRect().right > side || a.scrollWidth > a.clientWidth + 1)"
            ".map(a => a.textContent)]")
        self.assertGreater(titles, 10)
        self.assertEqual(cut, [])

    def test_order_of_pages(self) -> None:
        """The order of reading: a chapter before its experiments, a page that lists other pages before them."""
        self.look(WIDE)
        self.load("index.html")
        pages = self.browser.execute_script("return Array.from(document.querySelectorAll('.md-nav--primary a[href]'))"
                                            ".map(a => a.getAttribute('href')).filter(href => /^[^#.][^#]*$/.test(href))")
        self.assertGreater(len(pages), 50)
        self.assertEqual(pages[0], "index.html")
        for first, second in ((PAGE, "chapters/05_two_streams/experiments/index.html"),
                              ("chapters/05_two_streams/experiments/index.html", "chapters/06_reduce_scatter/index.html"),
                              ("notebooks/index.html", "notebooks/1_speed_up_and_copies.html"),
                              ("docs/articles/index.html", "docs/articles/async_tensor_parallelism.html")):
            self.assertEqual(pages.index(first) + 1, pages.index(second))

    def test_headings_can_be_linked_to(self) -> None:
        self.look(WIDE)
        self.load(PAGE)
        self.browser.execute_script("document.querySelector('.headerlink[href=\"#run-it\"]').click()")
        self.assertTrue(self.browser.current_url.endswith(f"{PAGE}#run-it"))

    def test_contents_on_a_phone(self) -> None:
        self.look(NARROW)
        self.load(PAGE)
        right = "return document.querySelector('.md-sidebar--primary').getBoundingClientRect().right"
        self.assertLessEqual(self.browser.execute_script(right), 0)
        self.browser.find_element(By.CSS_SELECTOR, ".md-header label[for=__drawer]").click()
        self.until(f"{right} > 200")

    def test_pages_before_and_after(self) -> None:
        self.look(WIDE)
        self.load(PAGE)
        links = self.browser.execute_script("return Array.from(document.querySelectorAll('.md-footer__link')).map(a => a.href)")
        self.assertEqual([link.partition("/chapters/")[2] for link in links],
                         ["04_copy_engine/experiments/index.html", "05_two_streams/experiments/index.html"])

    def test_code_can_be_copied(self) -> None:
        self.look(WIDE)
        self.load(PAGE)
        blocks = self.browser.find_elements(By.CSS_SELECTOR, "pre > code")
        self.assertGreater(len(blocks), 5)
        for number, block in enumerate(blocks):  # the theme adds a block's button when it becomes visible
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", block)
            self.until(f"return document.querySelectorAll('pre > code')[{number}].parentElement.querySelector('.md-clipboard') !== null")

    def test_colours_can_be_switched(self) -> None:
        """Pictures stay readable: their background has the colours that the system prefers, like the pictures."""
        self.look(WIDE)
        self.load(PAGE)
        page, picture = (f"return getComputedStyle(document.querySelector('{one}')).backgroundColor" for one in ("body", ".frame > img"))
        self.assertGreater(luminance(self.browser.execute_script(page)), 0.8)
        self.browser.find_element(By.CSS_SELECTOR, "label[title='Dark colours']").click()
        self.until("return document.body.dataset.mdColorScheme === 'slate'")
        self.assertLess(luminance(self.browser.execute_script(page)), 0.2)
        self.assertGreater(luminance(self.browser.execute_script(picture)), 0.8)
        self.look(WIDE, "dark")
        self.load(PAGE)
        self.assertLess(luminance(self.browser.execute_script(picture)), 0.2)

    def test_links_to_the_repository_and_the_reference(self) -> None:
        """.ci/run builds the site with an address."""
        self.look(WIDE)
        self.load("index.html")
        self.assertEqual(self.browser.execute_script("return document.querySelector('.md-header a.md-source').href"), "https://repository.invalid/")
        self.browser.execute_script("document.querySelector('.md-nav--primary a[href=\"reference/index.html\"]').click()")
        self.until("return document.querySelector('#projectname') !== null")
        self.until("return Array.from(document.querySelectorAll('#main-menu a')).find(a => a.textContent.includes('Pages'))").click()
        self.until("return document.querySelector('.md-header') !== null && location.pathname === '/index.html'")

    def look_for(self, words: str) -> List[str]:
        """Types words into the search; returns the targets of the results, once there are any."""
        self.browser.find_element(By.CSS_SELECTOR, ".md-search__input").send_keys(words)
        return self.until("const found = Array.from(document.querySelectorAll('a.md-search-result__link')).map(a => a.href);"
                          "return found.length ? found : null")

    def test_search_finds_terms(self) -> None:
        """It finds headings and words of the text, but no solution of a task and no file."""
        self.look(WIDE)
        for words, place in (("wave quantization", r"docs/glossary\.html.*#wave-quantization"), ("cudaMemcpyAsync", r"docs/calls\.html"),
                             ("rotating accumulators", "chapters/06_reduce_scatter/")):
            self.load("index.html")
            self.browser.execute_script("document.querySelector('.md-search__input').focus()")
            found = self.look_for(words)
            self.assertRegex(" ".join(found), place, words)
            self.assertNotRegex(" ".join(found), "/files/|assignment")

    def test_search_can_be_read(self) -> None:
        """The input and the results are readable, in both modes and on a phone, where the list fits the screen."""
        for mode in ("light", "dark"):
            self.look(NARROW, mode)
            self.load("index.html")
            self.browser.find_element(By.CSS_SELECTOR, ".md-header label[for=__search]").click()
            self.until("return document.querySelector('.md-search__input').getBoundingClientRect().width > 200")
            self.look_for("wave")
            typed, box, link, listed, right = self.browser.execute_script(
                "const css = getComputedStyle, find = name => document.querySelector('.md-search' + name);"
                "return [css(find('__input')).color, css(find('__form')).backgroundColor, css(find('-result__title')).color,"
                " css(find('__scrollwrap')).backgroundColor, find('-result__link').getBoundingClientRect().right]")
            self.assertGreater(contrast(typed, box), LEAST_CONTRAST, mode)
            self.assertGreater(contrast(link, listed), LEAST_CONTRAST, mode)
            self.assertGreater(luminance(listed) if mode == "light" else 1 - luminance(listed), 0.8)
            self.assertLessEqual(right, NARROW[0])

    def test_timelines_stretch(self) -> None:
        self.look(WIDE)
        self.load(PAGE)
        timeline = "document.querySelector('object.timeline').contentDocument"
        self.until(f"return {timeline} && {timeline}.querySelectorAll('.button').length === 3")
        width = f"return Math.max(...Array.from({timeline}.querySelectorAll('g > rect.bar')).map(r => +r.getAttribute('width')))"
        shown = f"return Array.from({timeline}.querySelectorAll('g > rect.bar')).filter(r => r.parentNode.style.display !== 'none').length"
        before, bars = self.browser.execute_script(width), self.browser.execute_script(shown)
        click = f"{timeline}.querySelectorAll('.button')[{{}}].dispatchEvent(new Event('click'))"
        self.browser.execute_script(click.format(1))
        self.browser.execute_script(click.format(1))
        self.assertLess(self.browser.execute_script(shown), bars)
        self.browser.execute_script(click.format(2))
        self.assertEqual((self.browser.execute_script(width), self.browser.execute_script(shown)), (before, bars))
        self.browser.execute_script(f"const bar = {timeline}.querySelector('g > rect.bar').parentNode; bar.dispatchEvent("
                                    "new PointerEvent('pointermove', {clientX: 300, clientY: 60}))")
        self.assertRegex(self.browser.execute_script(f"return {timeline}.querySelector('.box').textContent"), r"\d µs: \d")
        self.assertEqual(self.errors(), [])

    def test_timelines_by_keyboard_and_finger(self) -> None:
        self.look(WIDE)
        for page in (PAGE, "chapters/14_sparse_v6_tiled/index.html", "chapters/18_ring_in_kernel/index.html"):
            self.load(page)
            timeline = "document.querySelector('object.timeline').contentDocument"
            self.until(f"return {timeline} && {timeline}.querySelector('.button') !== null")
            tell = f"const box = {timeline}.querySelector('.box'); return box.style.display === 'none' ? null : box.textContent"
            self.assertEqual(self.browser.execute_script(f"return getComputedStyle({timeline}.documentElement).colorScheme"), "light dark",
                             "else its corners are white on a dark page")
            act = (f"const bars = Array.from({timeline}.querySelectorAll('g > rect.bar')).map(rect => rect.parentNode);"
                   "const event = (type, name, values) => new bars[0].ownerDocument.defaultView[type](name, {bubbles: true, ...values});")
            for _ in range(3):  # until the last bars are outside of the view; the arrow keys reach them nevertheless
                self.browser.execute_script(f"{timeline}.querySelectorAll('.button')[1].dispatchEvent(new Event('click'))")
            self.browser.execute_script(act + "bars.at(-2).style.display = ''; bars.at(-2).focus();"
                                        "bars.at(-2).dispatchEvent(event('KeyboardEvent', 'keydown', {key: 'ArrowRight'}));")
            self.assertEqual(self.browser.execute_script(act + "return bars.at(-1).ownerDocument.activeElement === bars.at(-1)"), True)
            touch = "{pointerType: 'touch', clientX: 300, clientY: 60}"
            self.browser.execute_script(act + f"bars[0].dispatchEvent(event('PointerEvent', 'pointerdown', {touch}));"
                                        f"bars[0].dispatchEvent(event('PointerEvent', 'pointerleave', {touch}));")
            self.assertRegex(self.browser.execute_script(tell), r"\d µs: \d", page)
            self.browser.execute_script(act + f"bars[0].ownerDocument.documentElement.dispatchEvent(event('PointerEvent', 'pointerdown', {touch}))")
            self.assertIsNone(self.browser.execute_script(tell), page)
            self.assertEqual(self.errors(), [])

    def test_paper(self) -> None:
        """On paper there is the picture, without buttons and frame."""
        self.look(WIDE)
        self.load(PAGE)
        self.until("const timeline = document.querySelector('object.timeline').contentDocument;"
                   "return timeline && timeline.querySelector('.button') !== null")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        try:
            shown = self.browser.execute_script(
                "const timeline = document.querySelector('object.timeline').contentDocument; return [..."
                "['.md-sidebar', '.md-header', '.headerlink', '.md-footer__link'].map(name => document.querySelector(name)),"
                " timeline.querySelector('.button'), timeline.querySelector('rect.bar')].map(one => one.getClientRects().length > 0)")
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        self.assertEqual(shown, [False] * 5 + [True])


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (pathlib.Path(sys.argv[1]) / "index.html").is_file():
        sys.exit("usage: browser_test.py FOLDER (of the built site: build/docs/html)")
    SITE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

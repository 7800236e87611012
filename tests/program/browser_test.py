#!/usr/bin/python3
"""Tests of the built site in a browser: browser_test.py FOLDER, after ./lab docs. .ci/run --full runs it with Debian's chromium,
chromium-driver and python3-selenium; no network is used but the loopback.

Pages are loaded in the light and in the dark mode, wide and as narrow as a phone: no error on the console, no picture that is
missing, no Markdown that Doxygen has not understood, nothing that scrolls sideways but code, tables and pictures. (That links
lead somewhere, tools/build_site.py has checked.) Files that are only listed with their line numbers are made by one template:
each tenth of them is loaded.
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

# What may be wrong with a page, found by the page itself.
INSPECT = """
const wide = [], pictures = [], width = document.documentElement.clientWidth;
const scrolls = element => ['auto', 'scroll', 'hidden'].includes(getComputedStyle(element).overflowX);
if (arguments[0]) for (const element of document.querySelectorAll('.contents *, .header *, body.plain > *')) {
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
const body = document.querySelector('.contents') || document.body, text = body.querySelector('p') || body;
const colour = element => { while (element && getComputedStyle(element).backgroundColor === 'rgba(0, 0, 0, 0)')
  element = element.parentElement; return element ? getComputedStyle(element).backgroundColor : 'rgb(255, 255, 255)'; };
const unread = [], walk = document.createTreeWalker(document.querySelector('.textblock') || document.createElement('p'), 4);
for (let text = walk.nextNode(); text; text = walk.nextNode())
  if (!text.parentElement.closest('code, pre, .fragment, .compoundTemplParams') &&
      /`|\\]\\(|\\*\\*|[\\\\@][a-z]+|<\\/?[a-z]/.test(text.data)) unread.push(text.data.trim());
for (const fold of document.querySelectorAll('.textblock details'))
  if (fold.querySelector('summary') === null || fold.textContent.trim() === fold.querySelector('summary').textContent.trim())
    unread.push(fold.outerHTML);
const paragraphs = Array.from(document.querySelectorAll('.textblock > p')).map(p => p.getBoundingClientRect().width);
return {wide: wide.slice(0, 3), pictures: pictures, unread: unread.slice(0, 3), text: getComputedStyle(text).color, page: colour(text),
        narrowest: paragraphs.length ? Math.min(...paragraphs) : null};
"""


def luminance(colour: str) -> float:
    """Of "rgb(21, 24, 28)", as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word."""

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
        """The window's size, and what the system prefers."""
        width, height = size
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == NARROW})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": mode}]})

    def load(self, page: str) -> None:
        self.browser.get(f"{self.address}/{page}")

    def errors(self) -> List[str]:
        """What the console has said since it was asked last."""
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"
                and "favicon.ico" not in entry["message"]]

    def until(self, script: str) -> Any:
        """What a script gives, as soon as it is something."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = self.browser.execute_script(script)
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def inspect(self, page: str, narrow: bool) -> Dict[str, Any]:
        self.load(page)
        self.until("return Array.from(document.images).every(image => image.complete)")  # scripts add some behind the page's own
        self.assertEqual(self.errors(), [], page)
        return self.browser.execute_script(INSPECT, narrow)

    def check(self, page: str, narrow: bool) -> None:
        found = self.inspect(page, narrow)
        self.assertEqual((found["wide"], found["pictures"], found["unread"]), ([], [], []), page)
        self.assertGreater(contrast(found["text"], found["page"]), LEAST_CONTRAST, page)

    def test_every_page(self) -> None:
        """Pages of the course in both widths and both modes, what Doxygen makes of sources and names in one of each."""
        pages = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if path.parent.name != "search")
        listed = [page for page in pages if page.startswith("files/")]
        pages = [page for page in pages if page not in listed] + listed[::10]
        self.assertGreater(len(pages), 100)
        course = [page for page in pages if re.match(r"(index|chapters_|docs_|notebooks|common_virtual|examples|CONTRIBUTING)", page)
                  and not re.search(r"_8|-members|struct|class", page)]
        self.assertGreater(len(course), 25)
        for size, mode, chosen in ((NARROW, "light", pages), (NARROW, "dark", course), (WIDE, "dark", course), (WIDE, "light", course)):
            self.look(size, mode)
            for page in chosen:
                with self.subTest(page, size=size, mode=mode):
                    self.check(page, size == NARROW)

    def test_paragraphs_on_a_phone(self) -> None:
        self.look(NARROW)
        for page in ("index.html", "chapters_03_ring_all_gather.html", "docs_articles_async_tensor_parallelism.html"):
            found = self.inspect(page, True)
            self.assertGreaterEqual(found["narrowest"], LEAST_PARAGRAPH, page)

    def test_pictures_and_tables_on_a_phone(self) -> None:
        """They scroll in a frame of their own, so that their words keep a size that can be read, and names stay whole. Plots of
        notebooks are shown whole: their titles say whether times are measured."""
        self.look(NARROW)
        found = self.inspect("chapters_05_two_streams.html", True)
        self.assertEqual(found["wide"], [])
        widths = self.browser.execute_script("return Array.from(document.querySelectorAll('.picture > *')).map(p => p.clientWidth)")
        self.assertGreaterEqual(len(widths), 2)
        self.assertGreaterEqual(min(widths), 600)
        plots = "return Array.from(document.querySelectorAll('.picture > img')).map(p => p.getBoundingClientRect().right)"
        self.inspect("notebooks_1_speed_up_and_copies.html", True)
        self.assertLessEqual(max(self.browser.execute_script(plots)), NARROW[0])
        self.load("docs_calls.html")
        height = "return Array.from(document.querySelectorAll('td code')).find(c => c.textContent === '{}').offsetHeight"
        self.assertEqual(*(self.browser.execute_script(height.format(name)) for name in ("cudaFree", "cudaMemcpy2DAsync")))

    def test_figures_are_not_broken(self) -> None:
        self.look(WIDE)
        self.load("chapters_05_two_streams.html")
        heights = self.browser.execute_script("const range = document.createRange(); return Array.from(document.querySelectorAll("
                                              "'td.figure')).map(cell => { range.selectNodeContents(cell); "
                                              "return range.getBoundingClientRect().height; })")
        self.assertGreater(len(heights), 50)
        self.assertLess(max(heights), 30)

    def test_what_is_wrong_is_found(self) -> None:
        self.look(NARROW)
        self.load("index.html")
        self.browser.execute_script("const wide = document.createElement('div'); wide.style.width = '900px'; wide.className = 'odd';"
                                    "wide.textContent = 'x'; document.querySelector('.contents').appendChild(wide);"
                                    "const image = document.createElement('img'); image.src = 'none.png'; image.width = 9;"
                                    "document.querySelector('.contents').appendChild(image); console.error('oh');"
                                    "document.querySelector('.textblock').append('a `b', document.createElement('details'));")
        self.until("return Array.from(document.images).every(image => image.complete)")
        found = self.browser.execute_script(INSPECT, True)
        self.assertEqual(found["wide"], ["DIV.odd"])
        self.assertEqual(found["unread"], ["a `b", "<details></details>"])
        self.assertEqual(len(found["pictures"]), 1)
        self.assertRegex(" ".join(self.errors()), "none.png")
        self.assertLess(contrast("rgb(120, 120, 120)", "rgb(90, 90, 90)"), LEAST_CONTRAST)

    def test_sidebar_shows_whole_titles(self) -> None:
        self.look(WIDE)
        self.load("chapters_05_two_streams.html")
        self.until("return document.querySelectorAll('#nav-tree .label a').length > 10")
        cut = self.browser.execute_script(
            "const side = document.querySelector('#side-nav').getBoundingClientRect().right;"
            "return Array.from(document.querySelectorAll('#nav-tree .label a')).filter(a => a.getClientRects().length > 0 &&"
            " (a.getBoundingClientRect().right > side || a.scrollWidth > a.clientWidth + 1 && a.clientWidth > 0)).map(a => a.textContent)")
        self.assertEqual(cut, [])

    def test_order_of_pages(self) -> None:
        """As they are read: a chapter before its experiments, what lists other pages before them."""
        self.look(WIDE)
        self.load("chapters_05_two_streams.html")
        pages = self.until("return NAVTREE[0][2].length > 40 && NAVTREE[0][2].map(entry => entry[1])")
        for first, second in (("chapters_05_two_streams.html", "chapters_05_two_streams_experiments.html"),
                              ("notebooks.html", "notebooks_1_speed_up_and_copies.html"),
                              ("docs_articles.html", "docs_articles_async_tensor_parallelism.html")):
            self.assertEqual(pages.index(first) + 1, pages.index(second))

    def test_headings_can_be_linked_to(self) -> None:
        self.look(WIDE)
        self.load("chapters_05_two_streams.html")
        self.until("return document.querySelector('.heading-link') !== null")
        self.browser.execute_script("document.querySelector('.heading-link[href$=\"--run-it\"]').click()")
        self.assertTrue(self.browser.current_url.endswith("chapters_05_two_streams.html#chapters_05_two_streams--run-it"))

    def test_contents_on_a_phone(self) -> None:
        self.look(NARROW)
        self.load("chapters_05_two_streams.html")
        self.until("return document.querySelectorAll('#nav-tree .label a').length > 10")
        side = self.browser.find_element(By.ID, "side-nav")
        self.assertFalse(side.is_displayed())
        self.browser.find_element(By.ID, "contents-button").click()
        self.assertTrue(side.is_displayed())

    def test_pages_before_and_after(self) -> None:
        self.look(WIDE)
        self.load("chapters_05_two_streams.html")
        links = self.until("return Array.from(document.querySelectorAll('#neighbours a')).map(a => a.getAttribute('href'))")
        self.assertEqual(len(links), 2)
        for link in links:
            self.assertTrue((SITE / link).is_file())

    def test_search_finds_terms(self) -> None:
        self.look(WIDE)
        for words, place in (("wave quantization", "docs_glossary--wave-quantization"), ("cudaMemcpyAsync", "docs_calls")):
            self.load("index.html")
            self.until("return document.getElementById('MSearchField')").send_keys(words)
            link = self.until(
                "const results = document.getElementById('MSearchResults').contentDocument;"
                "return results && Array.from(results.querySelectorAll('.SRResult')).filter(e => e.getClientRects().length > 0)"
                f".flatMap(e => Array.from(e.querySelectorAll('a[href]')).map(a => a.href)).filter(href => href.includes('{place}'))[0]")
            self.assertIn(place, link, words)

    def test_search_can_be_read(self) -> None:
        """What is typed, and what is found, in both modes and on a phone, where the list is inside the screen."""
        for mode in ("light", "dark"):
            self.look(NARROW, mode)
            self.load("index.html")
            field = self.browser.find_element(By.ID, "MSearchField")
            field.click()
            field.send_keys("wave")
            self.until("const results = document.getElementById('MSearchResults').contentDocument;"
                       "return results && Array.from(results.querySelectorAll('.SRResult')).some(e => e.getClientRects().length > 0)")
            typed, box, link, listed, right = self.browser.execute_script(
                "const list = document.getElementById('MSearchResults'), page = list.contentDocument, css = getComputedStyle;"
                "return [css(document.getElementById('MSearchField')).color, css(document.getElementById('MSearchBox')).backgroundColor,"
                " css(page.querySelector('a.SRSymbol')).color, css(page.body).backgroundColor, list.getBoundingClientRect().right]")
            self.assertGreater(contrast(typed, box), LEAST_CONTRAST, mode)
            self.assertGreater(contrast(link, listed), LEAST_CONTRAST, mode)
            self.assertGreater(luminance(listed) if mode == "light" else 1 - luminance(listed), 0.8)
            self.assertLessEqual(right, NARROW[0])

    def test_timelines_stretch(self) -> None:
        self.look(WIDE)
        self.load("chapters_05_two_streams.html")
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
        for page in ("chapters_05_two_streams.html", "chapters_14_sparse_v6_tiled.html", "chapters_18_ring_in_kernel.html"):
            self.load(page)
            timeline = "document.querySelector('object.timeline').contentDocument"
            self.until(f"return {timeline} && {timeline}.querySelector('.button') !== null")
            tell = f"const box = {timeline}.querySelector('.box'); return box.style.display === 'none' ? null : box.textContent"
            self.assertEqual(self.browser.execute_script(f"return getComputedStyle({timeline}.documentElement).colorScheme"), "light dark",
                             "else its corners are white on a dark page")
            act = (f"const bars = Array.from({timeline}.querySelectorAll('g > rect.bar')).map(rect => rect.parentNode);"
                   "const event = (type, name, values) => new bars[0].ownerDocument.defaultView[type](name, {bubbles: true, ...values});")
            for _ in range(3):  # until the last bars are out of sight, to which the arrows lead all the same
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
        """The picture without buttons, and nothing of the frame."""
        self.look(WIDE)
        self.load("chapters_05_two_streams.html")
        self.until("const timeline = document.querySelector('object.timeline').contentDocument;"
                   "return document.querySelector('#neighbours') !== null && timeline && timeline.querySelector('.button') !== null")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        try:
            shown = self.browser.execute_script(
                "const timeline = document.querySelector('object.timeline').contentDocument;"
                "return [document.querySelector('#side-nav'), document.querySelector('#top'), document.querySelector('.heading-link'),"
                " document.querySelector('#neighbours'), timeline.querySelector('.button'), timeline.querySelector('rect.bar')]"
                ".map(element => element.getClientRects().length > 0)")
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        self.assertEqual(shown, [False] * 5 + [True])


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (pathlib.Path(sys.argv[1]) / "index.html").is_file():
        sys.exit("usage: browser_test.py FOLDER (of the built site: build/docs/html)")
    SITE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

#!/usr/bin/env python3
"""Tests of tools/pages/page_limits.py: its counts, and pages that it must refuse. (.ci/run checks our own pages.)"""
import sys
import pathlib
import unittest
from typing import List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402
from tools.pages import page_limits  # noqa: E402

MUTANT = "<!-- mutant 01 wrong -->\n```\n$ ./lab run 01\n9 elements are wrong\n```\n<!-- /mutant -->\n"


FIRST = "![A picture](a.svg)\n\n*It takes 7 ms.*<!-- shown 7 ms -->\n"
THREE = "- One.\n- Two.\n  More of it.\n- Three.\n"


def page(first: str = FIRST, **sections: str) -> str:
    """A page that keeps all limits, except in the given sections: What_is_new="text"."""
    texts = {"Predict": "How many? <!-- predicted 12 us -->\n", "Run it": output("12 us"), "A bug to see": MUTANT,
             "Measured": output("7 ms"), "What to remember": THREE, **{name.replace("_", " "): text for name, text in sections.items()}}
    return f"# 01 A page\n\n{first}" + "".join(f"\n## {title}\n\n{texts.get(title, 'Words.')}\n" for title in page_limits.SECTIONS)


def output(text: str) -> str:
    """A generated block of a program's output."""
    return f"<!-- output 01 -->\n```\n{text}\n```\n<!-- /output -->\n"


class LineTest(unittest.TestCase):
    def test_one_sentence(self) -> None:
        for line in ("One sentence, with A and B.", "- An item.", "12. An item: what is C?", "> Quoted text.", "See e.g. CUDA's guide.",
                     "It ends with a letter, x = A.", "It is 1.5 x GEMM only.", "Steps 0, 1, ... P - 1 follow.", "Version v1.2. of it",
                     "**Needs.** None.", "1. *No GPU, 20 min, easy.* **Side by side.** Make one group.", "`a. B. C.` is code",
                     "[a](b. C.md) is a link.", "<details><summary>Answer.</summary> Two.", "see `run()`, then `wait()`.",
                     "<!-- A. B. --> a comment", "![A. B.](c.svg)", "what it says ... and so on."):
            with self.subTest(line):
                self.assertEqual(list(page_limits.bad_lines(line)), [])

    def test_several_sentences(self) -> None:
        for line in ("One. Two.", "- One. Two.", "Is it? No.", "Stop! Then go.", "A product of A by B. Then C.", "(In brackets.) Two.",
                     "It says *one.* Two.", "One. `two()` follows.", "One. **Two** follow.", "One. (Two.)", 'He says "one." Two.',
                     "**Needs.** One. Two.", "See [it](x.md). Then go.", "1. *Easy.* One. Two.", "One.  Two.", "One. [lower.py](a.py) is two."):
            with self.subTest(line):
                self.assertEqual(list(page_limits.bad_lines(f"First.\n{line}\n")), ["2: 2 sentences in a line"])

    def test_what_is_no_prose(self) -> None:
        for text in ("# One. Two.", "| One. Two. |", "```\nOne. Two.\n```", "<!-- output 01 -->\nOne. Two.\n<!-- /output -->",
                     "~~~\n```\nOne. Two.\n~~~", "<!-- One.\nTwo. Three. -->", "## Sources\n\n- A. Author: Title. Place. 2020."):
            with self.subTest(text):
                self.assertEqual(list(page_limits.bad_lines(text)), [])
                self.assertEqual(len(list(page_limits.bad_lines(f"{text}\n\n## Next\n\nOne. Two."))), 1)

    def test_length(self) -> None:
        most = page_limits.LONGEST_LINE
        for line, wrong in (("x" * most, False), ("x" * (most + 1), True), ("| " + "x" * most + " |", False),
                            ("x" * most + "<!-- line a b --><!-- /line -->", False), ("x" * (most - 3) + "[a](" + "b" * 99 + ")", False),
                            ("x" * most + "[a](b)", True), ("- `" + "x" * most + "`", True)):
            self.assertEqual(len(list(page_limits.bad_lines(line))), int(wrong), line)


class CountTest(unittest.TestCase):
    def test_words_of_prose(self) -> None:
        """Words are counted as `wc -w` counts the remaining text of a page."""
        for text, words in (("One two, three.", 3), ("a - b", 3), ("`f(a, b)` is", 3), ("[two words](a/b.md#c)", 2), ("![a b](c.svg)", 0),
                            ("# A heading", 3), ("| a | table |", 0), ("- *an* item", 3), ("<!-- a\ncomment --> word", 1),
                            ("```\na b\n```", 0), (output("a b c"), 0), ("<br>a<br/>b", 2)):
            with self.subTest(text):
                self.assertEqual(page_limits.numbers_of(text).prose, words)

    def test_folds(self) -> None:
        text = "one\n<details><summary>Two three</summary>\n\nfour\n\n| five |\n</details>\nsix\n<details>seven</details>\neight\n"
        numbers = page_limits.numbers_of(text)
        self.assertEqual((numbers.prose, numbers.folds), (3, {2: 3, 9: 1}))

    def test_code_and_output(self) -> None:
        code = "<!-- code a.cuh f( -->\n```cpp\nint f() {\n\n}\n```\n<!-- /code -->\n"
        numbers = page_limits.numbers_of(f"{code}```\nmake\n```\n{output('a')}<details>\n{output('b')}{code}</details>\n{MUTANT}")
        self.assertEqual((numbers.code, numbers.output, numbers.prose), (7, 2, 0))


class PageTest(unittest.TestCase):
    def problems(self, text: str) -> List[str]:
        return [problem.partition(": ")[2] for problem in page_limits.bad_chapter_page(text)]

    def test_good(self) -> None:
        self.assertEqual(self.problems(page()), [])
        self.assertEqual(self.problems(page(The_idea="word " * 1800)), [])

    def test_the_first_screen(self) -> None:
        for first in (FIRST, FIRST + "More.\n", "*7 ms*<!-- shown 7 ms -->\n\n![A picture](a.svg)\n"):
            self.assertEqual(self.problems(page(first)), [], first)
        for first, sentence in (("*7 ms*<!-- shown 7 ms -->\n", "no picture before the first section"),
                                ("![A picture](a.svg)\n\n7 ms\n", "no <!-- shown TEXT --> before the first section"),
                                (FIRST.replace("7 ms -->", "8 ms -->"), "'8 ms' stands in no generated block further down")):
            self.assertEqual(self.problems(page(first)), [sentence], first)
        self.assertEqual(self.problems(page("7 ms\n", The_idea=FIRST)), ["no picture before the first section",
                                                                         "no <!-- shown TEXT --> before the first section"])

    def test_three_lines_to_remember(self) -> None:
        for text in (THREE, "1. One.\n2. Two.\n3. Three.\n"):
            self.assertEqual(self.problems(page(What_to_remember=text)), [], text)
        for text, count in (("- One.\n- Two.\n", 2), (THREE + "- Four.\n", 4), ("Words.", 0), ("- One.\n  - Two.\n  - Three.\n", 1)):
            self.assertEqual(self.problems(page(What_to_remember=text)), [f"{count} lines to remember; 3 wanted"], text)

    def test_too_much(self) -> None:
        most = {"prose": "word " * 2000, "fold": "<details>\n" + "word " * 601 + "\n</details>",
                "code": "```\n" + "x\n" * 121 + "```", "output": output("x\n" * 60)}
        for text, sentence in zip(most.values(), ("20.. words of prose; 2000 at most", "a fold of 601 words; 600 at most",
                                                  "121 lines of code; 120 at most", "63 lines of output; 60 at most")):
            found = self.problems(page(The_idea=text))
            self.assertEqual(len(found), 1, found)
            self.assertRegex(found[0], sentence)

    def test_sections(self) -> None:
        good = page()
        for old, new, sentence in (("## Recap", "## Summary", "'Recap' belongs here, not 'Summary'"), ("## Recap\n", "", "'Recap' belongs here, not 'What"),
                                   ("## Run it", "## More\n\n## Run it", "'Run it' belongs here, not 'More'"),
                                   ("## Sources\n", "", "'Sources' belongs here$"), ("## Cost card", "### Cost card", "'Cost card' belongs"),
                                   ("## Sources", "## Sources\n\n## More", "no section 'More' belongs behind 'Sources'")):
            found = self.problems(good.replace(old, new))
            self.assertEqual(len(found), 1, new)
            self.assertRegex(found[0], sentence)
        self.assertEqual(self.problems(good.replace("## Recap\n", "## Recap\n\n### More\n")), [])

    def test_predictions(self) -> None:
        def found(answer: str, shown: str) -> List[str]:
            return self.problems(page(Predict=answer, Run_it=output(shown)))
        mark = "<!-- predicted {} -->"
        for text, shown in (("12 us", "it took 12 us."), ("4.0", "a 4.0 b"), ("1.5 x", "| 1.5 x |"), ("0.276", "0.276"), ("%", "99 %")):
            self.assertEqual(found(mark.format(text), shown), [], text)
        for text, shown in (("12 us", "112 us"), ("4", "4.5"), ("4", "14"), ("5", "4.5"), ("ring", "rings"), ("A", "b")):
            self.assertEqual(found(mark.format(text), shown), [f"'{text}' stands in no generated block further down"])
        self.assertEqual(found("How many? Two.", "2"), ["no <!-- predicted TEXT --> under 'Predict'"])
        self.assertEqual(found(output("12 us") + mark.format("12 us"), ""), ["'12 us' stands in no generated block further down"])
        self.assertEqual(self.problems(page(Predict=mark.format("12 us"), Run_it="It is 12 us.")),
                         ["'12 us' stands in no generated block further down"])

    def test_a_bug(self) -> None:
        self.assertEqual(self.problems(page(A_bug_to_see=output("wrong"))), ["no generated block 'mutant' under 'A bug to see'"])
        self.assertEqual(self.problems(page(A_bug_to_see="Words.")), ["no generated block 'mutant' under 'A bug to see'"])
        self.assertEqual(self.problems(page(A_bug_to_see="Words.", Sources=MUTANT)), ["no generated block 'mutant' under 'A bug to see'"])


class MarkersTest(unittest.TestCase):
    def test_what_no_other_check_would_see(self) -> None:
        for text, wrong in (("# A\n<!-- results 21 -->\nx\n<!-- /results -->\n", []), ("# A\n`<!--results 21-->`\n", []),
                            ("#A\n", ["1: a page begins with its title"]), ("One.\n", ["1: a page begins with its title"]),
                            ("# A\n<!--results 21-->", ["2: a marker looks like <!-- results -->"]),
                            ("# A\nx < !-- / results-- >", ["2: a marker looks like <!-- results -->"])):
            with self.subTest(text):
                self.assertEqual(list(page_limits.bad_markers(text)), wrong)


class RepositoryTest(FolderTest):
    def test_which_pages(self) -> None:
        many = "# A\n" + "word " * 10 + "\n"
        texts = {"chapters/01_a/README.md": page(Recap="One. Two."), "chapters/01_a/experiments/README.md": many * 200,
                 "docs/a.md": "# A\nOne. Two. Three.\n", "build/b.md": "One. Two.", "chapters/02_b/README.md": "# B\n",
                 page_limits.LOOKED_UP[0]: many * 200}
        for name, text in texts.items():
            self.write(name, text)
        self.assertEqual(page_limits.problems(self.folder), [
            "chapters/01_a/README.md:13: 2 sentences in a line",
            "chapters/01_a/experiments/README.md:1: 2400 words of prose; 2000 at most",
            "chapters/02_b/README.md:1: no picture before the first section",
            "chapters/02_b/README.md:1: no <!-- shown TEXT --> before the first section",
            "chapters/02_b/README.md:1: the section 'What you will learn' belongs here",
            "docs/a.md:2: 3 sentences in a line"])
        table = page_limits.numbers_table([self.folder / "chapters/01_a/README.md"])
        self.assertRegex(table.splitlines()[1], r"^01_a +\d+ +0 +2 +0 +16$")

    def test_the_pattern_of_a_page(self) -> None:
        """The page of ./lab new keeps the limits, except for the answer, which is in an output that does not exist yet."""
        text = (REPOSITORY / "tools" / "new_chapter" / "page.in").read_text(encoding="utf-8")
        self.assertEqual(list(page_limits.bad_lines(text)), [])
        self.assertEqual([problem for problem in page_limits.bad_chapter_page(text) if "stands in no generated" not in problem], [])


if __name__ == "__main__":
    unittest.main()

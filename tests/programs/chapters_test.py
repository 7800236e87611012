#!/usr/bin/env python3
"""Tests of the chapters' manifests (tools/chapters.py): each error is reported in one sentence, with file and key; and this
repository's manifests agree with other files."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
from typing import Any, Dict, Sequence, Set

from support import REPOSITORY, FolderTest
from tools.chapters import OPERATIONS, ManifestError, all_chapters, read_chapters

sys.path.insert(0, str(REPOSITORY / "tests" / "peers"))
import peer  # noqa: E402

RIGHT: Dict[str, Any] = {"title": "A title", "idea": "an idea", "part": 1, "kind": "dense", "builds_on": [],
                         "needs": {"gpus": 1, "compute_capability": "8.0"}, "minutes": 30}
PLOT = {"section": "sweep", "x": "rows", "lines": {"new": "new_ms"}}


class ManifestTest(FolderTest):
    """A folder of hand-made chapters."""

    def setUp(self) -> None:
        super().setUp()
        self.chapter("01_first", RIGHT)

    def chapter(self, name: str, value: Any) -> pathlib.Path:
        """Writes a chapter `name` with this text or value as its manifest."""
        self.write(f"{name}/main.cu")
        return self.write(f"{name}/chapter.json", value if isinstance(value, str) else json.dumps(value)).parent

    def refused(self, value: Any, name: str = "02_second") -> str:
        folder = self.chapter(name, value)
        with self.assertRaises(ManifestError) as raised:
            read_chapters(self.folder)
        shutil.rmtree(folder)
        sentence = str(raised.exception)
        self.assertTrue(sentence.startswith(f"chapters/{name}/chapter.json: "), sentence)
        self.assertNotIn("\n", sentence)
        return sentence.split(": ", 1)[1]

    def test_what_may_be_left_out(self) -> None:
        chapter = read_chapters(self.folder)["01_first"]
        self.assertEqual((chapter.number, chapter.operation, chapter.experiments, chapter.measure.usual), ("01", "", [], ("",)))

    def test_wrong_manifests(self) -> None:
        for change, sentence in (
                ({"mintues": 3}, "'mintues' is not known (known: title, idea, part, "),
                ({"tests": {"race": {"schedule": 3}}}, "'tests.race.schedule' is not known (known: schedules, "),
                ({"title": 3}, "'title' is 3, not a text"),
                ({"title": " "}, "'title' is \" \", not a text"),
                ({"minutes": "30"}, "'minutes' is \"30\", not a whole number from 1 on"),
                ({"minutes": True}, "'minutes' is true, not a whole number from 1 on"),
                ({"part": 6}, "'part' is 6, none of 1, 2, 3, 4, 5"),
                ({"kind": "dence"}, "'kind' is \"dence\", none of speed_up, dense, sparse"),
                ({"operation": "sum"}, "'operation' is \"sum\", none of all_gather_matmul, "),
                ({"needs": {"gpus": 1}}, "'needs.compute_capability' is missing"),
                ({"needs": []}, "'needs' is [], not an object"),
                ({"measure": {"usual": "--m 3"}}, "'measure.usual' is \"--m 3\", not a list"),
                ({"measure": {"usual": ["--m 3", 4]}}, "'measure.usual[1]' is 4, not a text"),
                ({"measure": {"also": [{"gpus": "all", "lines": []}]}},
                 "'measure.also[0].gpus' is \"all\", neither most, several nor a number of GPUs"),
                ({"measure": {"on_all_gpus_only": 1}}, "'measure.on_all_gpus_only' is 1, not true or false"),
                ({"pictures": {"timeline": []}}, "'pictures.timeline' is [], not a text"),
                ({"plots": {"sizes": {"section": "a", "lines": {}}}}, "'plots.sizes.x' is missing"),
                ({"plots": {"sizes": PLOT}, "pictures": {"sizes": "--m 3"}}, "'plots.sizes' has the name of a picture"),
                ({"builds_on": ["00_none"]}, "'builds_on[0]' is \"00_none\", which is no chapter before this one"),
                ({"builds_on": ["01_first", "02_second"]}, "'builds_on[1]' is \"02_second\", which is no chapter before this one"),
                ({"experiments": [{"name": "sizes", "idea": "x"}]}, "'experiments[0].name' is \"sizes\", and there is no "
                                                                    "experiments/sizes.cu")):
            with self.subTest(change):
                self.assertTrue(self.refused({**RIGHT, **change}).startswith(sentence), self.refused({**RIGHT, **change}))

    def test_missing_keys(self) -> None:
        for key in RIGHT:
            self.assertEqual(self.refused({name: value for name, value in RIGHT.items() if name != key}), f"'{key}' is missing")

    def test_no_json(self) -> None:
        self.assertEqual(self.refused('{\n"title": x}'), "line 2: Expecting value")
        self.assertEqual(self.refused("[]"), "'it' is [], not an object")
        self.assertEqual(self.refused('{"title": "a", "title": "b"}'), "'title' is there twice")
        folder = self.chapter("02_second", RIGHT)
        (folder / "chapter.json").unlink()
        with self.assertRaisesRegex(ManifestError, "^chapters/02_second/chapter.json: the file is not there$"):
            read_chapters(self.folder)

    def test_experiments(self) -> None:
        folder = self.folder / "02_second" / "experiments"
        folder.mkdir(parents=True)
        (folder / "sizes.cu").touch()
        sizes = {"name": "sizes", "idea": "which sizes", "measure": {"usual": ["--m 1*P"]}}
        self.chapter("02_second", {**RIGHT, "experiments": [{**sizes, "builds_on": ["02_second"]}]})
        with self.assertRaisesRegex(ManifestError, r"'experiments\[0\]\.builds_on\[0\]' is \"02_second\", which is no chapter before"):
            read_chapters(self.folder)
        self.chapter("02_second", {**RIGHT, "experiments": [{**sizes, "builds_on": ["01_first"]}]})
        experiment, = read_chapters(self.folder)["02_second"].experiments
        self.assertEqual((experiment.program, experiment.measure.usual, experiment.builds_on), ("02_sizes", ["--m 1*P"], ["01_first"]))
        (folder / "more.cu").touch()
        with self.assertRaisesRegex(ManifestError, "'experiments' does not name experiments/more.cu"):
            read_chapters(self.folder)

    def test_the_command(self) -> None:
        tools = self.folder / "tools"
        tools.mkdir()
        shutil.copy(REPOSITORY / "tools" / "chapters.py", tools)
        shutil.copytree(self.folder / "01_first", self.folder / "chapters" / "01_first")

        def call(*options: str) -> "subprocess.CompletedProcess[str]":
            return subprocess.run([sys.executable, tools / "chapters.py", *options], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, check=False)
        self.assertEqual(call("--sanitize").stdout, "01|dense|1|0|0|||\n")
        self.assertEqual(call().returncode, 0)
        (self.folder / "chapters" / "01_first" / "chapter.json").write_text("{}")
        wrong = call()
        self.assertEqual((wrong.returncode, wrong.stdout, wrong.stderr),
                         (2, "", "chapters/01_first/chapter.json: 'title' is missing\n"))


class CMakeTest(FolderTest):
    PROJECT = """cmake_minimum_required(VERSION 3.25)
project(test LANGUAGES NONE)
include({manifest})
overlap_chapters(chapters)
message(STATUS "chapters: ${{chapters}}")
"""

    def configured(self, backend: str, cuda: str) -> str:
        """CMake's output on a folder of chapters."""
        (self.folder / "CMakeLists.txt").write_text(self.PROJECT.format(manifest=REPOSITORY / "cmake" / "Manifest.cmake"))
        done = subprocess.run(["cmake", "-G", "Ninja", "-S", self.folder, "-B", self.folder / "build",
                               f"-DOVERLAP_BACKEND={backend}", f"-DCUDAToolkit_VERSION={cuda}"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_this_cuda_is_too_old_for_is_left_out_with_a_sentence(self) -> None:
        (self.folder / "chapters").mkdir()
        for name, needs in (("01_first", {}), ("02_newer", {"cuda": "12.6"})):
            (self.folder / "chapters" / name).mkdir()
            (self.folder / "chapters" / name / "main.cu").touch()
            (self.folder / "chapters" / name / "chapter.json").write_text(
                json.dumps({**RIGHT, "needs": {**RIGHT["needs"], **needs}}))
        sentence = "02_newer is left out: it needs CUDA 12.6, and this is 12.4.131"
        old = self.configured("cuda", "12.4.131")
        self.assertIn(sentence, old)
        self.assertRegex(old, "chapters: 01_first\n")
        for backend, version in (("cuda", "12.6"), ("cuda", "13.0.48"), ("virtual", "")):
            text = self.configured(backend, version)
            self.assertNotIn("left out", text)
            self.assertIn("chapters: 01_first;02_newer\n", text)


class RepositoryTest(unittest.TestCase):
    """Manifests agree with everything that repeats their content."""

    @staticmethod
    def read_before(builds_on: Sequence[str]) -> Set[str]:
        """These chapters, and all that they build on."""
        known: Set[str] = set()
        for name in builds_on:
            known |= {name} | RepositoryTest.read_before(all_chapters()[name].builds_on)
        return known

    def test_all_folders_are_chapters(self) -> None:
        folders = {path.name for path in (REPOSITORY / "chapters").iterdir() if path.is_dir()}
        self.assertEqual(folders, set(all_chapters()))
        self.assertGreaterEqual(len(folders), 14)

    def test_operations_are_those_of_the_peers(self) -> None:
        self.assertEqual(OPERATIONS, peer.OPERATIONS)

    def test_titles_are_those_of_the_pages(self) -> None:
        for chapter in all_chapters().values():
            page = (REPOSITORY / "chapters" / chapter.name / "README.md").read_text(encoding="utf-8")
            self.assertEqual(page.splitlines()[0], f"# {chapter.number} {chapter.title}")

    def test_headers_include_only_what_they_build_on(self) -> None:
        for chapter in all_chapters().values():
            folder = REPOSITORY / "chapters" / chapter.name
            for source in sorted(path for path in folder.rglob("*") if path.suffix in (".cu", ".cuh", ".hpp")):
                included = set(re.findall(r'^#include "(\d\d_\w+)/', source.read_text(encoding="utf-8"), re.MULTILINE))
                builds_on = [*chapter.builds_on]
                if source.parent.name == "experiments":
                    builds_on += [name for experiment in chapter.experiments for name in experiment.builds_on]
                self.assertLessEqual(included, {chapter.name} | self.read_before(builds_on), source)

    def test_pictures_are_there(self) -> None:
        for chapter in all_chapters().values():
            for name in [*chapter.pictures, *chapter.plots]:
                self.assertTrue((REPOSITORY / "chapters" / chapter.name / f"{name}.svg").exists(), name)


if __name__ == "__main__":
    unittest.main()

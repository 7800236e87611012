#!/usr/bin/env python3
"""Tests of the files for contributors' tools, which run on other machines: each parses, requests no more permissions than it
needs, and agrees with the repository."""
import sys
import json
import pathlib
import re
import subprocess
import unittest
from typing import Any, Dict, Iterator, List

try:
    import yaml
except ImportError:
    yaml = None

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY  # noqa: E402


def text(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


class FilesTest(unittest.TestCase):
    def test_devcontainer(self) -> None:
        settings = json.loads(re.sub(r"^\s*//.*$", "", text(".devcontainer/devcontainer.json"), flags=re.MULTILINE))
        self.assertTrue((REPOSITORY / ".devcontainer" / settings["build"]["dockerfile"]).is_file())

    def test_containers_install_what_lab_asks_for(self) -> None:
        # Only ./lab notebook and ./lab docs need these large packages; the two commands install them.
        setup = re.sub(r"(?ms)^missing_(?:notebook|docs)_packages\(\) \{.*?^\}$", "", text("tools/lab/setup.sh"))
        wanted = set(re.findall(r"\|\| echo ([\w+.-]+)", setup))
        self.assertIn("libcli11-dev", wanted)
        for name in (".devcontainer/Dockerfile", ".devcontainer/cuda/Dockerfile"):
            self.assertEqual(wanted - {"0"} - set(text(name).split()), set(), name)

    def test_one_version_of_clang_format(self) -> None:
        wanted = re.findall(r"^readonly wanted=(\d+)$", text("tools/check_format"), re.MULTILINE)
        self.assertEqual(re.findall(r"clang-format==(\d+)\.\d+\.\d+\b", text(".pre-commit-config.yaml")), wanted)

    def test_the_readme_names_the_commands_for_a_bare_machine(self) -> None:
        """.ci/bare runs this block, and only this."""
        self.assertEqual(re.findall(r"^<!-- bare -->\n```\n(.*?)^```$", text("README.md"), re.MULTILINE | re.DOTALL),
                         ["./lab run 01\n./lab test\n"])


@unittest.skipIf(yaml is None, "python3-yaml is not here")
class YamlTest(unittest.TestCase):
    def documents(self) -> Iterator[pathlib.Path]:
        yield from (REPOSITORY / name for name in (".clangd", ".pre-commit-config.yaml", "CITATION.cff"))
        yield from (REPOSITORY / ".github").rglob("*.yml")

    def test_all_parse(self) -> None:
        found = list(self.documents())
        self.assertGreater(len(found), 5)
        for path in found:
            with self.subTest(str(path)):
                self.assertTrue(all(list(yaml.safe_load_all(path.read_text(encoding="utf-8")))))

    def test_workflows_may_only_read_and_pin_what_they_use(self) -> None:
        asked = {"ci.yml": ".ci/run", "site.yml": "./lab docs"}
        found = {path.name: path for path in (REPOSITORY / ".github" / "workflows").glob("*.yml")}
        self.assertEqual(set(found), set(asked))
        for name, path in found.items():
            workflow: Dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
            self.assertEqual(workflow["permissions"], {"contents": "read"})
            steps: List[Dict[str, str]] = [step for job in workflow["jobs"].values() for step in job["steps"]]
            self.assertTrue(any(asked[name] in step.get("run", "") for step in steps))
            for step in steps:
                self.assertRegex(step.get("uses", "a/b@v1"), r"^[\w-]+/[\w-]+@v\d+$")
                subprocess.run(["bash", "-n", "-c", step.get("run", "")], check=True)
            for job in workflow["jobs"].values():
                if "permissions" in job:  # a job that publishes must not run the repository's code
                    self.assertEqual(job["permissions"], {"pages": "write", "id-token": "write"})
                    self.assertFalse(any("run" in step for step in job["steps"]))

    def test_hooks_take_nothing_but_packages_of_one_version(self) -> None:
        for repository in yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]:
            self.assertEqual(repository["repo"], "local")
            for hook in repository["hooks"]:
                for package in hook.get("additional_dependencies", []):
                    self.assertRegex(package, r"^[\w-]+==[\d.]+$")

    def test_citation(self) -> None:
        citation = yaml.safe_load(text("CITATION.cff"))
        self.assertLessEqual({"cff-version", "message", "title", "authors"}, set(citation))
        self.assertEqual(citation["license"], "Apache-2.0")
        self.assertIn("Apache License", text("LICENSE"))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Tests of the set-up by ./lab: the packages that it installs, its questions, and that a complete toolchain is not changed."""
import os
import pathlib
import sys
import unittest

from lab_sandbox import FOR_DOCS, FOR_DOCS_ONLY, FOR_RUN, OPTIONAL, PACKAGES, Sandbox

INSTALL = "apt-get install -y --no-install-recommends "
INSTALL_ALL = INSTALL + " ".join([*FOR_RUN, OPTIONAL])


class RootTest(Sandbox):
    def test_bare_machine(self) -> None:
        self.add_apt()
        result = self.succeed("run", "01")
        self.assertEqual(self.calls("apt-get"), [INSTALL_ALL])
        self.assertTrue(result.stdout.startswith("01_first:"))

    def test_installs_exactly_what_is_missing(self) -> None:
        for missing in FOR_RUN:
            with self.subTest(missing):
                self.setUp()
                self.add_apt()
                self.install(OPTIONAL, *(package for package in FOR_RUN if package != missing))
                self.assertEqual(self.lab("run", "01").returncode, 0)
                self.assertEqual(self.calls("apt-get"), [INSTALL + missing])

    def test_google_test_is_for_test_only(self) -> None:
        self.add_apt()
        self.install(*FOR_RUN, OPTIONAL)
        self.assertEqual(self.lab("run", "01").returncode, 0)
        self.assertEqual(self.calls("apt-get"), [])
        self.assertEqual(self.lab("test").returncode, 0)
        self.assertEqual(self.calls("apt-get"), [INSTALL + "libgtest-dev"])

    def test_documentation_needs_no_compiler(self) -> None:
        self.add_apt()
        result = self.succeed("docs")
        self.assertEqual(self.calls("apt-get"), [INSTALL + " ".join(FOR_DOCS)])
        self.assertIn("needed to build the documentation, and missing: python3 ", result.stderr)
        self.assertEqual(self.lab("docs").returncode, 0)
        self.assertEqual(len(self.calls("apt-get")), 1)

    def test_some_packages_are_for_docs_only(self) -> None:
        for missing in FOR_DOCS_ONLY:
            with self.subTest(missing):
                self.setUp()
                self.add_apt()
                self.install(*(package for package in PACKAGES if package != missing))
                for command in (["run", "01"], ["test"], ["doctor"]):
                    self.assertEqual(self.lab(*command).returncode, 0)
                self.assertEqual(self.calls("apt-get"), [])
                self.assertEqual(self.lab("docs").returncode, 0)
                self.assertEqual(self.calls("apt-get"), [INSTALL + missing])

    def test_complete_toolchain_is_left_alone(self) -> None:
        self.add_apt()
        self.install(*PACKAGES)
        for command in (["run", "01"], ["run"], ["test"], ["test", "1"], ["doctor"], ["docs"]):
            self.assertEqual(self.lab(*command).returncode, 0)
        self.assertEqual(self.calls("apt-get"), [])

    def test_optional_package_alone_is_not_installed(self) -> None:
        self.add_apt()
        self.install(*(package for package in PACKAGES if package != OPTIONAL))
        for command in (["run", "01"], ["run"], ["test"], ["doctor"]):
            self.assertEqual(self.lab(*command).returncode, 0)
        self.assertEqual(self.calls("apt-get"), [])

    def test_optional_package_that_the_archive_lacks(self) -> None:
        self.add_apt()
        self.mark(f"no_{OPTIONAL}")
        result = self.succeed("run", "01")
        self.assertEqual(self.calls("apt-get")[-1], INSTALL + " ".join(FOR_RUN))
        self.assertTrue(result.stdout.startswith("01_first:"))

    def test_prefix_path_counts(self) -> None:
        self.install("g++", "cmake", "ninja-build", "python3", "nlohmann-json3-dev")
        self.assert_refused(self.lab("run", "01"), "missing: libcli11-dev")
        elsewhere = str(self.sandbox / "store" / "libcli11-dev")
        self.assertEqual(self.lab("run", "01", CMAKE_PREFIX_PATH=f"/nothing:{elsewhere}").returncode, 0)

    def test_missing_lists_are_fetched_once(self) -> None:
        self.add_apt(listed=False)
        self.assertEqual(self.lab("run", "01").returncode, 0)
        self.assertEqual(self.calls("apt-get"), ["apt-get update", INSTALL_ALL])

    def test_old_lists_are_fetched_once(self) -> None:
        self.add_apt()
        self.mark("stale")
        self.assertEqual(self.lab("run", "01").returncode, 0)
        install = INSTALL_ALL
        self.assertEqual(self.calls("apt-get"), [install, "apt-get update", install])

    def test_no_network(self) -> None:
        for listed in (False, True):
            with self.subTest(listed=listed):
                self.setUp()
                self.add_apt(listed)
                self.mark("offline")
                self.assert_refused(self.lab("run", "01"), r"installation failed .*network.*E: ", lines=2)
                self.assertEqual(self.calls("cmake"), [])

    def test_package_that_does_not_help(self) -> None:
        self.add_apt()
        (self.sandbox / "store" / "cmake" / "bin" / "cmake").unlink()
        self.assert_refused(self.lab("run", "01"), "still missing after the installation: cmake", lines=2)

    def test_no_apt(self) -> None:
        self.assert_refused(self.lab("run", "01"), "missing: " + " ".join(FOR_RUN).replace("+", r"\+"))

    def test_too_old(self) -> None:
        self.install(*PACKAGES)
        self.tool("cmake", 'echo "cmake version 3.22.1"')
        self.assert_refused(self.lab("run", "01"), r"cmake 3\.22\.1 is too old: 3\.25")
        self.install("cmake")
        self.tool("g++", "echo 11.4.0")
        self.assert_refused(self.lab("run", "01"), r"g\+\+ 11\.4\.0 is too old")
        self.tool("g++-12", "echo 12.3.0")
        self.assertEqual(self.lab("run", "01", CXX="g++-12").returncode, 0)
        self.assertEqual(self.lab("docs").returncode, 0)  # without a compiler
        self.tool("doxygen", "echo 1.9.1")
        self.assert_refused(self.lab("docs"), r"doxygen 1\.9\.1 is too old: 1\.9\.4")
        self.tool("cmake", "exit 1")
        self.assert_refused(self.lab("run", "01"), "cmake 0 is too old")


class UserTest(Sandbox):
    def setUp(self) -> None:
        super().setUp()
        self.be_user(1000)

    def test_no_terminal_prints_the_command(self) -> None:
        self.add_apt()
        self.add_sudo()
        result = self.lab("run", "01")
        self.assert_refused(result, "no terminal", lines=2)
        self.assertIn("sudo " + INSTALL_ALL, result.stderr)
        self.assertEqual(self.calls(), [])

    def test_command_with_update(self) -> None:
        self.add_apt(listed=False)
        self.add_sudo()
        self.assertIn(f"sudo apt-get update && sudo {INSTALL}", self.lab("run", "01").stderr)

    def test_yes(self) -> None:
        self.add_apt()
        self.add_sudo()
        result = self.succeed("run", "01", "--yes")
        self.assertEqual(self.calls()[:2], ["sudo", INSTALL_ALL])
        self.assertIn("sudo " + INSTALL, result.stderr)

    def test_terminal_asks(self) -> None:
        try:
            for end in os.openpty():
                os.close(end)
        except OSError as error:  # a container without /dev/pts
            self.skipTest(f"no terminal can be made here: {error}")
        self.add_apt()
        self.add_sudo()
        for answer in ("n\n", "\n"):
            result = self.lab("run", "01", answer=answer)
            self.assert_refused(result, "nothing was installed", lines=3)
            self.assertIn("sudo " + INSTALL, result.stderr)
            self.assertEqual(self.calls(), [])
        self.assertEqual(self.lab("run", "01", answer="y\n").returncode, 0)
        self.assertEqual(self.calls()[:2], ["sudo", INSTALL_ALL])

    def test_without_sudo_libraries_are_unpacked(self) -> None:
        self.add_apt()
        self.install("g++", "cmake", "ninja-build", "python3")
        self.succeed("test")
        self.assertEqual(self.calls("apt-get"), ["apt-get download libcli11-dev nlohmann-json3-dev libgtest-dev"])
        self.assertTrue((self.root / ".deps/usr/share/cmake/CLI11/CLI11Config.cmake").is_file())
        self.assertFalse((self.root / ".deps/download").exists())
        self.assertEqual(self.lab("test").returncode, 0)
        self.assertEqual(len(self.calls("apt-get")), 1)

    def test_without_sudo_tools_are_only_named(self) -> None:
        self.add_apt()
        self.assert_refused(self.lab("run", "01"), r"without root and sudo .*apt-get install g\+\+ cmake")
        self.assertEqual(self.calls(), [])

    def test_download_fails(self) -> None:
        self.add_apt()
        self.mark("offline")
        self.install("g++", "cmake", "ninja-build", "python3")
        self.assert_refused(self.lab("run", "01"), "apt-get download failed .*E: ", lines=2)


class NotebookTest(Sandbox):
    """./lab notebook, with stand-ins for Jupyter and for the Python that has it."""

    def setUp(self) -> None:
        super().setUp()
        self.install(*FOR_RUN)
        (self.root / "notebooks").mkdir()
        for name in ("1_first", "2_second"):
            (self.root / "notebooks" / f"{name}.ipynb").touch()
        # The system's Python has no Jupyter, even if that of this machine has it.
        setup = self.root / "tools" / "lab" / "setup.sh"
        self.assertIn("|| python=/usr/bin/python3", setup.read_text())
        setup.write_text(setup.read_text().replace("python=/usr/bin/python3", f"python={self.bin}/false"))
        self.tool("false", "exit 1")

    def add_environment(self) -> pathlib.Path:
        """Creates the files that python3 -m venv would create."""
        python = self.root / ".deps" / "notebooks" / "bin" / "python"
        self.script(python, 'case "$*" in *find_spec*) [ ! -e "$SANDBOX/empty" ];; *) echo "python $*" >> "$SANDBOX/calls";; esac')
        return python

    def test_opens_all_or_one(self) -> None:
        self.add_environment()
        for arguments, target in ((("notebook",), "notebooks"), (("notebook", "2"), "notebooks/2_second.ipynb")):
            self.assertEqual(self.lab(*arguments).returncode, 0)
            self.assertEqual(self.calls("python")[-1], f"python -m notebook {self.root}/{target}")

    def test_runs_all_or_one(self) -> None:
        self.add_environment()
        folder, tool = self.root / "notebooks", self.root / "tools" / "pages" / "notebooks.py"
        self.assertEqual(self.lab("notebook", "--execute").returncode, 0)
        self.assertEqual(self.lab("notebook", "1", "--update").returncode, 0)
        self.assertEqual(self.calls("python"), [f"python {tool} {folder}/1_first.ipynb {folder}/2_second.ipynb",
                                                f"python {tool} --update {folder}/1_first.ipynb"])

    def test_no_such_notebook(self) -> None:
        self.assert_refused(self.lab("notebook", "3"), "no notebook '3'; the notebooks are: 1, 2")

    def test_without_root_wheels_go_to_a_folder(self) -> None:
        self.be_user(1000)
        self.add_apt()
        prepared = self.add_environment().parent.rename(self.sandbox / "prepared")
        self.script(prepared / "pip", 'echo "pip $*" >> "$SANDBOX/calls"; [ ! -e "$SANDBOX/offline" ] || { echo "no wheel"; exit 1; }')
        self.tool("python3", f"""[ "$2" = venv ] && {{ mkdir -p "$3"; cp -r "$SANDBOX/prepared" "$3/bin"; exit; }}
            exec "{sys.executable}" "$@\"""")
        self.mark("offline")
        self.assert_refused(self.lab("notebook", "1"), "the notebooks' Python cannot be made .*: no wheel", lines=2)
        self.assertFalse((self.root / ".deps/notebooks").exists())
        (self.sandbox / "offline").unlink()
        result = self.succeed("notebook", "1")
        self.assertIn("no root needed", result.stderr)
        self.assertEqual(self.calls("apt-get"), [])
        self.assertEqual(self.calls("pip")[-1], f"pip install --only-binary :all: -r {self.root}/tools/pages/notebooks.txt")
        self.assertEqual(self.lab("notebook", "1").returncode, 0)
        self.assertEqual(len(self.calls("pip")), 2, "once it is there, nothing is installed")

    def test_with_root_packages_are_installed(self) -> None:
        self.add_apt()
        result = self.lab("notebook", "--execute")
        self.assertIn("missing: jupyter-nbconvert python3-ipykernel python3-pandas python3-matplotlib -> ", result.stderr)
        self.assert_refused(result, "still missing after the installation", lines=3)
        self.assertIn("jupyter-notebook", self.lab("notebook").stderr)


if __name__ == "__main__":
    unittest.main()

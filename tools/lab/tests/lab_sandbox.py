"""A stand-in machine for the tests of ./lab: a repository of two empty chapters, and a PATH with the tools of a bare Debian
only. All other tools are small scripts that record their calls; installing one only copies it."""
import os
import pathlib
import pty
import shutil
import subprocess
import sys
from typing import Any, Dict, List, Optional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tests.programs.support import REPOSITORY, FolderTest  # noqa: E402

BARE = ("bash sh env dirname readlink basename sort head tail paste mkdir rm cat nproc timeout grep sed uname wc"
        " cp mktemp true").split()

# The files of each package: path below the prefix -> content. A file in bin/ is a shell script.
PACKAGES = {
    "g++": {"bin/g++": "echo 12.2.0"},
    "cmake": {
        "bin/cmake": """case $1 in --version) echo "cmake version 3.25.1"; exit ;; esac
            echo "cmake $*" >> "$SANDBOX/calls"; echo "output of cmake"
            case "$*" in --build*--target*)
              while [ $# -gt 0 ]; do [ "$1" = --target ] && target=$2; [ "$1" = --build ] && folder=$2; shift; done
              [ ! -e "$SANDBOX/broken_$target" ] || { cat "$SANDBOX/broken_$target"; exit 1; }
              case $target in own_*) made=own/${target#own_} ;; *) made=bin/$target ;; esac
              mkdir -p "$folder/bin" "$folder/own"
              [ "$target" = all ] || cp "$SANDBOX/programs/$target" "$folder/$made" ;;
            esac""",
        "bin/ctest": 'echo "ctest $*" >> "$SANDBOX/calls"; exit $(cat "$SANDBOX/ctest_status")',
    },
    "ninja-build": {"bin/ninja": "echo 1.11.1"},
    # The real one, except the GPU driver's library, which the machine may or may not have.
    "python3": {"bin/python3": f"""case "$*" in *libcuda.so.1*) [ -e "$SANDBOX/libcuda" ]; exit ;; esac
        exec "{sys.executable}" "$@\""""},
    "libcli11-dev": {"share/cmake/CLI11/CLI11Config.cmake": ""},
    "nlohmann-json3-dev": {"share/cmake/nlohmann_json/nlohmann_jsonConfig.cmake": ""},
    "libgtest-dev": {"lib/x86_64-linux-gnu/cmake/GTest/GTestConfig.cmake": ""},
    "doxygen": {"bin/doxygen": "echo 1.9.4"},
    "doxygen-awesome-css": {"share/doxygen-awesome-css/doxygen-awesome.css": ""},
    "mkdocs": {"bin/mkdocs": "echo mkdocs, version 1.4.2"},
    "mkdocs-material": {"share/mkdocs/themes/material/main.html": ""},
    "libopenblas-dev": {"lib/x86_64-linux-gnu/libopenblas.so": ""},
}
OPTIONAL = "libopenblas-dev"
FOR_DOCS_ONLY = ["doxygen", "doxygen-awesome-css", "mkdocs", "mkdocs-material"]
FOR_DOCS = ["python3", *FOR_DOCS_ONLY]
FOR_RUN = [package for package in PACKAGES if package not in ("libgtest-dev", OPTIONAL, *FOR_DOCS_ONLY)]

APT = {
    "apt-cache": '[ -e "$SANDBOX/listed" ]',
    "apt-get": """echo "apt-get $*" >> "$SANDBOX/calls"
        case $1 in
          update) [ ! -e "$SANDBOX/offline" ] || { echo "E: no network"; exit 100; }; > "$SANDBOX/listed" ;;
          install | download) [ -e "$SANDBOX/listed" ] && [ ! -e "$SANDBOX/offline" ] && [ ! -e "$SANDBOX/stale" ] || {
            rm -f "$SANDBOX/stale"; echo "E: cannot fetch"; exit 100; }
            for package in "$@"; do
              [ ! -e "$SANDBOX/no_$package" ] || { echo "E: Unable to locate package $package"; exit 100; }
            done
            for package in "$@"; do
              if [ -d "$SANDBOX/store/$package" ]; then
                [ "$1" = install ] && cp -r "$SANDBOX/store/$package/." "$SANDBOX/usr/" || > "$package.deb"
              fi
            done ;;
        esac""",
    "dpkg": 'package=$(basename "$2" .deb); mkdir -p "$3/usr"; cp -r "$SANDBOX/store/$package/." "$3/usr/"',
}


class Sandbox(FolderTest):
    """Base of the tests: a fresh stand-in machine for each."""

    def setUp(self) -> None:
        super().setUp()
        self.sandbox = self.folder
        self.root = self.sandbox / "repository"
        self.bin = self.sandbox / "usr" / "bin"
        self.bin.mkdir(parents=True)
        for name in ("tools", "course", "virtual_gpu/tools"):
            shutil.copytree(REPOSITORY / name, self.root / name,
                            ignore=shutil.ignore_patterns("__pycache__", "tests", "runner", "doctor"))
        shutil.copy(REPOSITORY / "lab", self.root)
        for tool in BARE:
            # A copy, not a link: a test may overwrite it with a stand-in, and must not change the real one.
            shutil.copy(shutil.which(tool) or self.fail(f"{tool} is not here"), self.bin)
        for package, files in PACKAGES.items():
            for path, content in files.items():
                self.script(self.sandbox / "store" / package / path, content)
        for name in ("01_first", "02_second"):
            (self.root / "chapters" / name).mkdir(parents=True)
            (self.root / "chapters" / name / "main.cu").touch()
            self.program(name, f"echo {name}: $*; pwd")
        self.program("doctor", "echo GPU table")
        for target in ("quick", "chapter_01", "chapter_02"):  # of tests
            self.program(target, "exit 1")
        (self.root / "tools" / "pages" / "build_site.py").write_text("import pathlib, sys\nprint(pathlib.Path(sys.argv[1], 'html', 'index.html'))\n")
        (self.sandbox / "ctest_status").write_text("0")
        self.be_user(0)

    def tool(self, name: str, content: str) -> None:
        self.script(self.bin / name, content)

    def program(self, name: str, content: str) -> None:
        """The program that a build of the target `name` creates."""
        self.script(self.sandbox / "programs" / name, content)

    def mark(self, name: str, content: str = "") -> None:
        (self.sandbox / name).write_text(content)

    def be_user(self, number: int) -> None:
        self.tool("id", f"echo {number}")

    def install(self, *packages: str) -> None:
        """Installs packages without a package manager."""
        for package in packages:
            shutil.copytree(self.sandbox / "store" / package, self.sandbox / "usr", dirs_exist_ok=True)

    def add_apt(self, listed: bool = True) -> None:
        for name, content in APT.items():
            self.tool(name, content)
        if listed:
            self.mark("listed")

    def add_sudo(self) -> None:
        self.tool("sudo", 'echo "sudo" >> "$SANDBOX/calls"; exec "$@"')

    def add_gpu(self) -> None:
        """Adds a CUDA toolkit, a driver and one GPU that responds."""
        self.tool("nvcc", "echo Cuda compilation tools, release 12.4, V12.4.131")
        self.tool("nvidia-smi", "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'")
        self.mark("libcuda")

    def variables(self) -> Dict[str, str]:
        return {"PATH": str(self.bin), "SANDBOX": str(self.sandbox), "HOME": str(self.sandbox),
                "CUDA_HOME": str(self.sandbox / "nothing")}

    def lab(self, *arguments: str, answer: Optional[str] = None, piped: Optional[str] = None, cwd: Optional[pathlib.Path] = None,
            program: Optional[pathlib.Path] = None, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Calls ./lab: without a terminal or, if there is an answer to type, with one. `piped` comes through a pipe."""
        variables = {**self.variables(), **environment}
        terminal, stdin = pty.openpty() if answer is not None else (None, subprocess.DEVNULL)
        try:
            if terminal is not None:
                os.write(terminal, answer.encode())
            source: Dict[str, Any] = {"stdin": stdin} if piped is None else {"input": piped}
            return subprocess.run([str(program or self.root / "lab"), *arguments], **source, capture_output=True, text=True,
                                  env=variables, cwd=cwd or self.root, timeout=60, check=False)
        finally:
            if terminal is not None:
                os.close(terminal)
                os.close(stdin)

    def succeed(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Calls ./lab as lab() does, and asserts exit status 0."""
        result = self.lab(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def calls(self, tool: str = "") -> List[str]:
        """The calls of the stand-in tools, in order; only those of `tool` if it is given."""
        path = self.sandbox / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not tool or line.split()[0] == tool]

    def assert_refused(self, result: "subprocess.CompletedProcess[str]", sentence: str, lines: int = 1) -> None:
        """Asserts exit status 2, an empty standard output, and at most this number of lines on standard error."""
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, sentence)
        self.assertLessEqual(len(result.stderr.splitlines()), lines, result.stderr)


class CompleteSandbox(Sandbox):
    """A machine with all packages."""

    def setUp(self) -> None:
        super().setUp()
        self.install(*PACKAGES)

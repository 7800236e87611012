"""A stand-in machine for the tests of ./lab bench: chapters and peers are small scripts."""
import pathlib
import json
import shutil
import sys
from typing import Any, Dict, List

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from tools.lab.tests.lab_sandbox import REPOSITORY, CompleteSandbox  # noqa: E402

# A chapter, or a peer: records its command line and writes a report with the requested values. A file of the sandbox named
# after it makes it fail: it holds the exit status and the message.
PROGRAM = '''
import json, os, pathlib, sys, time
sandbox, name, words = pathlib.Path(os.environ["SANDBOX"]), sys.argv[1], sys.argv[2:]
with (sandbox / "calls").open("a") as calls:
    print(name, *words[:words.index("--json")], file=calls)
options = dict(zip((word[2:] for word in words[::2]), words[1::2]))
trouble = sandbox / f"trouble_{name}"
if trouble.exists():
    status, _, text = trouble.read_text().partition(" ")
    print("something\\n" + text)
    sys.exit(int(status))
gpus = int(options.get("gpus", 4))
real = (sandbox / "libcuda").exists()
hardware = {"gpu": "NVIDIA H200" if real else "virtual", "gpus": str(sandbox.joinpath("gpus").read_text()) if real else "4",
            "driver": "580.1", "toolkit": "13.0"}
shape = {size: int(options.get(size, 64)) for size in "mnk"}
def result(variant, role, ms):
    return {"variant": variant, "role": role, "device_ms": ms, "host_ms": ms, "tflops": 700.0, "ratio_to_gemm_only": ms / 0.4,
            "gpus": gpus}
report = {"modelled": not real, "hardware": hardware, "status": "ok", "date": "2026-11-21T10:00:00Z", "commit": "abc-dirty",
          "options": {"gpus": gpus, **shape, "type": "f16"},
          "results": [result("gemm_only", "gemm_only", 0.4), result("slow", "algorithm", 0.6),
                      result("quick", "algorithm", 0.5)]}
if name.endswith("_peer"):
    report.update(peer=name[:-5], version="9", protocol="p", results=[result("fused", "algorithm", 0.55)])
    report["hardware"] = {key: hardware[key] for key in ("gpu", "gpus", "driver")}
    report["options"]["operation"] = options["operation"]
elif name.startswith("01"):
    report["options"]["type"] = "int32"
    report["results"] = [{"variant": "one_gpu", "gpus": 1, "kernel_ms": 16.0, "end_to_end_ms": 20.0},
                         {"variant": "all_gpus", "gpus": gpus, "kernel_ms": 8.0, "end_to_end_ms": 10.0}]
if not name.endswith("_peer"):
    report["chapter"] = name
pathlib.Path(options["json"]).write_text(json.dumps(report))
'''

LADDER = "<!-- ladder dense -->\nold\n<!-- /ladder -->\n"
PYTHON = sys.executable


class BenchTest(CompleteSandbox):
    CHAPTERS = ("01_column_split", "02_gather_then_multiply", "06_reduce_scatter")

    def setUp(self) -> None:
        super().setUp()
        shutil.rmtree(self.root / "chapters")
        self.mark("program.py", PROGRAM)
        for name in self.CHAPTERS:
            manifest = json.loads((REPOSITORY / "chapters" / name / "chapter.json").read_text())
            for file, text in (("main.cu", ""), ("chapter.json", json.dumps({**manifest, "builds_on": [], "experiments": []})),
                               ("README.md", f"<!-- results {name} -->\n<!-- /results -->\n")):
                self.write(f"repository/chapters/{name}/{file}", text)
            self.program(name, f'exec {PYTHON} -IS "$SANDBOX/program.py" {name} "$@"')
        for path, text in (("README.md", LADDER), ("virtual_gpu/README.md", "<!-- output 01 -->\n<!-- /output -->\n")):
            self.write(f"repository/{path}", text)
        for name in ("pytorch_peer", "jax_peer"):
            self.write(f"repository/tests/peers/{name}.py",
                       f"import os, sys\nos.execv(sys.executable, [sys.executable, "
                       f"os.environ['SANDBOX'] + '/program.py', '{name}', *sys.argv[1:]])\n")

    def add_gpus(self, count: int) -> None:
        self.add_gpu()
        self.tool("nvidia-smi", "".join(f"echo 'GPU {i}: NVIDIA H200 (UUID: GPU-{i})'\n" for i in range(count)))
        self.mark("gpus", str(count))

    def started(self, name: str) -> List[str]:
        """The command lines with which a program was started, without its name."""
        return [call.split(" ", 1)[1] if " " in call else "" for call in self.calls(name)]

    def result_file(self, count: int) -> Dict[str, Any]:
        return dict(json.loads((self.root / "docs" / "results" / f"h200-x{count}.json").read_text()))

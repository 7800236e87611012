"""Tests of the program 01_column_split: its command line, its exit statuses and what it writes."""
import datetime
import os
import re
import subprocess
from typing import Any, Dict

import chapter_program
import counted
import program_test_case
from program_test_case import SMALL, TINY


class Program(chapter_program.ChapterProgram):
    variants = ("one_gpu", "all_gpus")
    kernels = {"one_gpu": "multiply", "all_gpus": "multiply"}  # one algorithm: bytes and times tell them apart
    counted_call = "--m 130 --n 289 --k 600 --gpus 3"  # a launch is short beside a kernel; GPU 0 has more blocks
    sections = {"one_gpu": "1 GPU", "all_gpus": "3 GPUs"}

    def assert_times_are_those_of(self, result: Dict[str, Any], call: counted.Call) -> None:
        """Each GPU's kernel, and the slowest of them, too."""
        super().assert_times_are_those_of(result, call)
        reported = {name: ms for name, ms in result.items() if name.startswith("kernel_ms_gpu")}
        ran = {f"kernel_ms_gpu{gpu}": bar["dur"] / 1000 for gpu in call.bars for bar in call.kernels(gpu)}
        self.assertEqual((set(reported), len(ran)), (set(ran), result["gpus"]))
        for name, ms in reported.items():
            self.assertAlmostEqual(ms / ran[name], 1, delta=0.1)
        self.assertEqual(result["kernel_ms"], max(reported.values()))


class HelpTest(program_test_case.ProgramTestCase):
    def test_help_lists_the_options(self) -> None:
        result = self.call("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for option in ("--gpus", "--m", "--n", "--k", "--type", "--iterations", "--warmup", "--seed", "--no-check",
                       "--json", "--timeline", "--list", "--only", "--timeout", "--help"):
            self.assertRegex(result.stdout, rf"(?m)^.*{option}\b")
        self.assertEqual("--schedule" in result.stdout, self.backend == "virtual")
        self.assertNotIn("--corrupt", result.stdout)

    def test_common_options_come_first(self) -> None:
        options = re.findall(r"^  (--[a-z]+)", self.call("--help").stdout, re.MULTILINE)
        self.assertEqual(options[:6], ["--gpus", "--m", "--n", "--k", "--iterations", "--json"])

    def test_a_variant_of_the_list_runs_alone(self) -> None:
        self.call_right("--only", self.call("--list").stdout.split()[0], *SMALL)


class BadOptionTest(program_test_case.ProgramTestCase):
    def test_table(self) -> None:
        huge = str(2**61)
        cases = {
            ("--gpus", "0"): "--gpus: 0 is not between 1 and 16",
            ("--gpus", "-1"): "--gpus: -1 is not between 1 and 16",
            ("--gpus", "17"): "--gpus: 17 is not between 1 and 16",
            ("--gpus", "two"): "--gpus: 'two' is not a whole number",
            ("--gpus", "2.5"): "--gpus: '2.5' is not a whole number",
            ("--gpus", ""): "--gpus",
            ("--gpus",): "--gpus",
            ("--m", "0"): "--m: 0 is not between",
            ("--m", "-5"): "--m: -5 is not between",
            ("--m", "abc"): "--m: 'abc' is not a whole number",
            ("--n", "0"): "--n: 0 is not between",
            ("--k", "0x10"): "--k: '0x10' is not a whole number",
            ("--m", "9" * 30): "--m: 9+ is not between",
            ("--m", huge, "--k", "2"): "--m",
            ("--k", huge, "--n", "2"): "--k",
            ("--m", "3000000000", "--n", "3000000000"): "--m",
            ("--iterations", "0"): "--iterations: 0 is not between 1 and 10000",
            ("--iterations", "10001"): "--iterations: 10001",
            ("--warmup", "-1"): "--warmup: -1",
            ("--seed", "-1"): "--seed: -1|'-1'",
            ("--timeout", "soon"): "--timeout: 'soon'",
            ("--type", "int8"): "--type: 'int8'.*int32",
            ("--type", "f16"): "--type: 'f16'.*int32",
            ("--only", "nothing"): "--only: 'nothing'",
            ("--m", "3", "--m", "3"): "--m: given more than once",
            ("--fast",): "--fast: unknown option",
            ("fast",): "'fast'",
            ("--timeline", ""): "--timeline",
            ("--timeline", "missing/x.json"): "--timeline: 'missing/x.json' cannot be written",
            ("--timeline", "x.json", "--json", "x.json"): "--timeline: 'x.json' is also the file of --json",
            ("--json", ""): "--json",
            ("--json", "missing/x.json"): "--json: 'missing/x.json' cannot be written",
            ("--json", "."): "--json: '.' cannot be written",
            ("--json", "/proc/x.json"): "--json: '/proc/x.json' cannot be written",
            ("--schedule", "x"): "--schedule: 'x'",
            ("--machine", "nothing"): "nothing|--machine",
        }
        for arguments, sentence in cases.items():
            with self.subTest(arguments):
                result = self.assert_fails(2, arguments, sentence)
                self.assertEqual(result.stdout, "", "nothing runs before the options are checked")
                self.assertTrue(result.stderr.startswith("01_column_split: "), result.stderr)

    def test_read_only_folder(self) -> None:
        closed = self.folder / "closed"
        closed.mkdir(mode=0o555)
        self.folder.chmod(0o755)
        # Root may write everywhere, so as root the program runs as nobody.
        user = {"user": 65534} if os.geteuid() == 0 else {}
        try:
            self.assert_fails(2, ("--json", "closed/x.json"), "--json: 'closed/x.json' cannot be written", **user)
        except PermissionError:
            self.skipTest("nobody cannot reach the program")

    def test_sizes_beyond_the_chapter(self) -> None:
        self.assert_fails(2, ("--m", "1048561", "--n", "1", "--k", "1", "--gpus", "1"), "--m: .* at most 1048560 rows")
        self.assert_fails(2, ("--m", "1", "--n", "1", "--k", "40000000", "--gpus", "1"), "--k: .* would not fit an int")

    def test_more_memory_than_any_machine_has(self) -> None:
        self.assert_fails(2, ("--m", "1", "--n", str(2**28), "--k", str(2**20)), "memory")

    def test_longer_rows_than_a_copy_takes(self) -> None:
        self.assert_fails(2, ("--m", "1", "--n", str(2**58), "--k", "1"), "--n: .* at most 536870911 columns")


class RunTest(program_test_case.ProgramTestCase):
    def test_sizes(self) -> None:
        for gpus, size in [(gpus, SMALL) for gpus in "12348"] + [("2", TINY), ("8", TINY)]:
            with self.subTest(gpus=gpus, size=size):
                self.assertTrue(self.call_right("--gpus", gpus, *size).stdout)

    def test_one_gpu_is_measured_and_told_once(self) -> None:
        for only in ((), ("--only", "all_gpus"), ("--only", "one_gpu")):
            with self.subTest(only):
                text = self.call_right("--gpus", "1", *SMALL, *only).stdout
                self.assertEqual(len(re.findall("(?m)^1 GPU$", text)), 1, text)
                self.assertEqual(len(re.findall("(?m)^1 GPU  ", text)), 1, text)
        results = self.report("--gpus", "1", *SMALL)["results"]
        self.assertEqual([(result["variant"], result["gpus"]) for result in results], [("one_gpu", 1)])
        results = self.report("--gpus", "2", *SMALL)["results"]
        self.assertEqual([(result["variant"], result["gpus"]) for result in results], [("one_gpu", 1), ("all_gpus", 2)])

    def test_no_check(self) -> None:
        self.call_right(*SMALL, "--no-check")

    def test_wrong_result(self) -> None:
        before = "an older report"
        (self.folder / "old.json").write_text(before)
        for arguments in ((), ("--gpus", "2"), ("--json", "new.json"), ("--json", "old.json")):
            with self.subTest(arguments):
                self.assert_fails(1, ("--corrupt", *SMALL, *arguments), r"wrong result.*row.*column")
        self.assertEqual((self.folder / "old.json").read_text(), before)

    def test_json(self) -> None:
        report = self.report("--m", "33", "--n", "37", "--k", "19", "--gpus", "1", "--seed", "7", "--iterations", "2")
        for field in ("chapter", "backend", "modelled", "hardware", "options", "date", "commit", "results"):
            self.assertIn(field, report)
        self.assertEqual(report["backend"], self.backend)
        self.assertIs(report["modelled"], self.backend == "virtual")
        self.assertTrue(report["hardware"])
        for name, value in {"gpus": 1, "m": 33, "n": 37, "k": 19, "seed": 7, "iterations": 2}.items():
            self.assertEqual(report["options"][name], value, name)
        written = datetime.datetime.fromisoformat(report["date"].replace("Z", "+00:00"))
        self.assertLess(abs(datetime.datetime.now(datetime.timezone.utc) - written), datetime.timedelta(minutes=10))
        self.assertTrue(report["commit"])
        self.assertTrue(report["results"])
        self.assertTrue(all(isinstance(result, dict) and result for result in report["results"]))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["report.json"])

    def test_fewer_gpus_than_asked_for(self) -> None:
        machine = self.machine(gpus=2)
        self.call_right("--machine", machine, "--gpus", "2", *SMALL)
        arguments = ("--machine", machine, "--gpus", "3", *SMALL, "--json", "x.json")
        result = self.assert_fails(77, arguments, "skipped.*3.*2")
        self.assertEqual(result.stdout, "")

    def test_not_enough_gpu_memory(self) -> None:
        machine = self.machine(memory_mib=1)
        self.call_right("--machine", machine, "--gpus", "1", *SMALL)
        large = ("--m", "1000", "--n", "1000", "--k", "3", "--json", "x.json")
        self.assert_fails(2, ("--machine", machine, "--gpus", "2", *large), "GPU 0 has not enough free memory")

    def test_bad_machine_description(self) -> None:
        machine = self.machine()
        for text in ("", "{", "[]", "{}", '{"gpus": "two"}'):
            with self.subTest(text):
                (self.folder / "machine.json").write_text(text)
                self.assert_fails(2, ("--machine", machine, *SMALL), "machine")

    def test_schedules(self) -> None:
        for seed in ("1", "2", "18446744073709551615"):
            self.assert_same_seed_same_schedule(seed)

    def test_standard_output_closed(self) -> None:
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([str(self.program), *SMALL], stdout=full, stderr=subprocess.PIPE, text=True,
                                    timeout=120, check=False)
        self.assertIn(result.returncode, (2, 77))
        self.assertEqual(len(result.stderr.splitlines()), 1)

"""Hand-made reports of measurements for tests."""
from typing import Any, Dict, List

HARDWARE = {"gpu": "NVIDIA H200", "gpus": "8", "driver": "580.1", "toolkit": "13.0", "sm_clock": "1980 MHz"}
SHAPE = {"m": 8192, "n": 32768, "k": 4096}


def result(variant: str, role: str, device_ms: float, **more: Any) -> Dict[str, Any]:
    """One variant's result in a chapter's report."""
    return {"variant": variant, "role": role, "gpus": 8, "device_ms": device_ms, "device_p99_ms": 1 / device_ms,
            "host_ms": device_ms + 0.04, "back_to_back_ms": 1 / device_ms, **more}


def run(chapter: str = "05_two_streams", gpus: int = 8, commit: str = "abc", date: str = "2026-11-21T10:00:00Z",
        ring_ms: float = 0.39, **more: Any) -> Dict[str, Any]:
    return {"chapter": chapter, "modelled": False, "hardware": dict(HARDWARE), "commit": commit, "status": "ok", "date": date,
            "options": {"gpus": gpus, **SHAPE, "type": "f16", "variants": ["pull", "ring"]},
            "results": [
                result("gemm_only", "gemm_only", 0.36, tflops=763.5, percent_of_peak=77.2, ratio_to_gemm_only=1.0),
                result("all_gather", "communication", 0.2, bus_gb_per_s=343.2),
                result("copy", "part", 0.02),
                result("pull", "algorithm", 0.44, tflops=624.7, ratio_to_gemm_only=1.2222, exposed_ms=0.08),
                result("ring", "algorithm", ring_ms, tflops=704.8, ratio_to_gemm_only=ring_ms / 0.36, exposed_ms=ring_ms - 0.36),
                {"section": "sweep", "rows": 512, "device_ms": 0.12345678, "note": "a"},
                {"section": "sweep", "rows": 1024, "device_ms": 0.2, "extra": 7},
                {"section": "waves", "tiles": 256, "role": "algorithm", "device_ms": 0.001}], **more}


def peer(name: str = "PyTorch", operation: str = "all_gather_matmul", gpus: int = 8, date: str = "2026-11-21T11:00:00Z",
         device_ms: float = 0.425) -> Dict[str, Any]:
    results = [result("gemm_only", "gemm_only", 0.37, ratio_to_gemm_only=1.0),
               result("fused", "algorithm", device_ms, tflops=647.0, ratio_to_gemm_only=1.1486, gemm_only_ms=0.37)]
    for each in results:
        del each["back_to_back_ms"]  # peers are not timed like that
    return {"peer": name, "version": "2.11", "modelled": False, "protocol": "events", "status": "ok", "date": date,
            "hardware": {name: HARDWARE[name] for name in ("gpu", "gpus", "driver")},
            "options": {"operation": operation, "gpus": gpus, **SHAPE, "type": "f16"},
            "results": [*results, {"variant": "broken", "status": "failed", "reason": "it hangs"}]}


def gradient(chapter: str, gpus: int = 8, pattern: str = "uniform", **ms: float) -> Dict[str, Any]:
    """A report on sparse gradients: the time of each variant."""
    results = [{"variant": variant, "role": "algorithm", "gpus": gpus, "host_ms": time, "host_p99_ms": 1e5 / time, "calls": 20,
                "rows_of_ranks": 400000, "global_rows": 386178, "map_ms": time / 4, "all_reduce_ms": time / 2, "fill_ms": 0.5,
                "skew_ms": 0.25} for variant, time in ms.items()]
    options = {"gpus": gpus, "rows": 5000000, "features": 2048, "entries": 50000, "duplicates": 0, "pattern": pattern,
               "index": "int32", "type": "f32", "variants": list(ms)}
    return {**run(chapter), "options": options, "results": [*results, {"section": "sweep", "rows_per_block": 8, "map_ms": 1.0}]}


def column_split(gpus: int, kernel_ms: float) -> Dict[str, Any]:
    both = [{"variant": "one_gpu", "gpus": 1, "kernel_ms": 16.0, "end_to_end_ms": 20.0},
            {"variant": "all_gpus", "gpus": gpus, "kernel_ms": kernel_ms, "end_to_end_ms": 10.0}]
    options = {"gpus": gpus, "m": 4096, "n": 8192, "k": 1024, "type": "int32", "variants": ["one_gpu", "all_gpus"]}
    return {**run("01_column_split"), "options": options, "results": both}


def file(*runs: Dict[str, Any], peers: List[Dict[str, Any]] = []) -> Dict[str, Any]:
    return {"runs": list(runs), "peers": list(peers), "profiles": []}


def rows(table: str) -> List[List[str]]:
    """The cells of a Markdown table's lines below its header."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]

#!/usr/bin/env python3
"""CUDA features that virtual GPUs lack are rejected by name, with the line of the use, and with no other error.

    unsupported_test.py INCLUDE_FOLDER"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from typing import List

INCLUDES = pathlib.Path(sys.argv.pop(1)).resolve()
GPP = os.environ.get("CXX", "g++")


def errors_of(source: str) -> List[str]:
    """g++'s errors in that source: "x.cpp:3: text", in line order."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.cpp"
        path.write_text(source, encoding="utf-8")
        done = subprocess.run([GPP, "-std=c++20", "-isystem", str(INCLUDES), "-c", path.name, "-o", "x.o"], cwd=folder,
                              capture_output=True, text=True, check=False)
    return re.findall(r"^(\S+?:\d+):(?:\d+:)? (?:fatal )?error: (.*)$", done.stderr, re.MULTILINE)


class UnsupportedTest(unittest.TestCase):
    def names_of(self, macro: str, least: int, header: str = "unsupported.h") -> List[str]:
        """What the header declares with the macro: more than `least` names."""
        text = (INCLUDES / "vgpu" / header).read_text(encoding="utf-8")
        names = re.findall(rf"^{macro}\((\w+),", text, re.MULTILINE)
        self.assertGreater(len(names), least)
        return names

    def test_each_function_is_refused_at_its_call(self) -> None:
        names = [*self.names_of("VGPU_UNSUPPORTED", 19), "__activemask"]
        calls = [f"  {name}({'' if name.startswith('_') else 'p, 1, &p'});" for name in names]
        found = errors_of("\n".join(["#include <cuda_runtime.h>", "void f(int* p) {", *calls, "}"]))
        self.assertEqual(len(found), len(names), found)
        for line, (name, (place, text)) in enumerate(zip(names, found), start=3):
            self.assertEqual(place, f"x.cpp:{line}")
            self.assertIn(f"{name} is not supported on virtual GPUs: ", text)

    def test_each_function_of_an_element_type_is_refused_at_its_call(self) -> None:
        names = self.names_of("VGPU_UNSUPPORTED_OF", 5)
        found = errors_of("\n".join(["#include <cuda_runtime.h>", "void f() {", *(f"  {name}<int>();" for name in names), "}"]))
        self.assertEqual([place for place, _ in found], [f"x.cpp:{line}" for line in range(3, 3 + len(names))])
        for name, (_, text) in zip(names, found):
            self.assertIn(f"{name} is not supported on virtual GPUs: ", text)

    def test_each_type_is_refused_where_it_is_named(self) -> None:
        names = self.names_of("VGPU_UNSUPPORTED_TYPE", 15)
        found = dict(errors_of("\n".join(["#include <cuda_runtime.h>", *(f"{name}* p{name};" for name in names), ""])))
        self.assertEqual(list(found), [f"x.cpp:{line}" for line in range(2, 2 + len(names))])
        for name, text in zip(names, found.values()):
            self.assertRegex(text, rf"{name}\b.* is unavailable: not supported on virtual GPUs: ")

    def test_each_function_of_ptx_is_refused_at_its_call(self) -> None:
        names = self.names_of("VGPU_UNSUPPORTED_PTX", 25, "ptx_unsupported.h")
        calls = [f"  {name}(1, p);" for name in names]
        forms = {"mbarrier_arrive(sem_relaxed, scope_cluster, space_cluster, b)": "mbarrier_arrive with sem_relaxed",
                 "mbarrier_arrive(sem_relaxed, scope_cta, space_shared, b, 1)": "mbarrier_arrive with sem_relaxed",
                 "mbarrier_arrive_expect_tx(sem_release, scope_cluster, space_cluster, b, 1)": "in a cluster",
                 "cp_async_bulk(space_cluster, space_global, p, p, 16, b, 3)": "multicast",
                 "cp_async_bulk(space_cluster, space_shared, p, p, 16, b)": "in a cluster",
                 "cp_async_bulk(space_shared, space_global, p, p, 16, b)": "use space_cluster",
                 "cp_async_bulk_tensor(space_shared, space_global, p, p, at, b)": "use space_cluster",
                 "cp_async_bulk_tensor(space_cluster, space_global, p, p, at4, b)": "more than three dimensions",
                 "cp_async_bulk_tensor(space_global, space_shared, p, at4, p)": "more than three dimensions",
                 "cp_reduce_async_bulk_tensor(space_global, space_shared, op_add, p, at4, p)": "more than three dimensions",
                 "cp_reduce_async_bulk_tensor(space_global, space_shared, op_max, p, at, p)": "with another operation than op_add"}
        calls += [f"  {call};" for call in forms]
        found = errors_of("\n".join(["#include <cuda/ptx>",
                                     "void f(int* p, std::uint64_t* b) { using namespace cuda::ptx;",
                                     "  std::int32_t at[2] = {}, at4[4] = {};", *calls, "}"]))
        self.assertEqual(len(found), len(calls), found)
        for line, (what, (place, text)) in enumerate(zip([*names, *forms.values()], found), start=4):
            self.assertEqual(place, f"x.cpp:{line}")
            self.assertIn(what, text)
            self.assertRegex(text, r"cuda::ptx::\w+ .*is not supported on virtual GPUs")

    def test_a_program_that_asks_for_nothing_of_it_compiles(self) -> None:
        self.assertEqual(errors_of("#include <cuda_runtime.h>\nint f() { return cudaSetDevice(0); }\n"), [])

    def test_headers_of_other_libraries_are_refused_on_use(self) -> None:
        wmma = "nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, int, nvcuda::wmma::row_major> f;"
        uses = {"thrust/device_vector.h": ("thrust::device_vector<int> v(4);", "Thrust"),
                "thrust/sort.h": ("thrust::sort(thrust::device, p, p + 4);", "Thrust"),
                "curand_kernel.h": ("curandState state; curand_init(1, 2, 3, &state);", "cuRAND"),
                "curand.h": ("curandGenerator_t g; curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT);", "cuRAND"),
                "mma.h": (wmma, "wmma"),
                "cublas_v2.h": ("cublasSgemv(p);", "only GEMMs"),
                "cufft.h": ("cufftHandle plan; cufftPlan1d(&plan, 4, CUFFT_C2C, 1);", "cuFFT"),
                "cusparse.h": ("cusparseHandle_t h; cusparseCreate(&h);", "cuSPARSE"),
                "cusolverDn.h": ("cusolverDnHandle_t h; cusolverDnCreate(&h);", "cuSOLVER"),
                "nvshmem.h": ("nvshmem_init();", "NVSHMEM"),
                "../program/include/mpi.h": ("MPI_Init(0, 0);", "MPI"),
                "cuda/barrier": ("cuda::barrier<cuda::thread_scope_block> b;", "cuda::barrier"),
                "cuda/latch": ("cuda::latch<cuda::thread_scope_block> b;", "cuda::latch"),
                "cuda/semaphore": ("cuda::counting_semaphore<cuda::thread_scope_block> b;", "cuda::counting_semaphore"),
                "cooperative_groups.h": ("cooperative_groups::this_cluster();", "cooperative_groups::this_cluster")}
        for header, (use, name) in uses.items():
            with self.subTest(header):
                program = f"#include <{header}>\nvoid f(int* p) {{\n  (void)p;\n  %s\n}}\n"
                self.assertEqual(errors_of(program % ""), [])
                self.assertRegex("\n".join(": ".join(each) for each in errors_of(program % use)),
                                 rf"{name}\b.* (is|are) (not )?supported (on virtual GPUs|in programs of one file): ")

    def test_calls_with_constants_of_mpi_are_refused_alike(self) -> None:
        found = errors_of("#include <../program/include/mpi.h>\nvoid f(int* p) {\n  MPI_Status status;\n"
                          "  MPI_Comm_rank(MPI_COMM_WORLD, p);\n"
                          "  MPI_Recv(p, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);\n}\n")
        self.assertEqual([place for place, _ in found], ["x.cpp:4", "x.cpp:5"])
        for _, text in found:
            self.assertIn("MPI is not supported in programs of one file: ", text)

    def test_headers_that_are_here(self) -> None:
        names = ["cuda_profiler_api.h", "device_launch_parameters.h", "vector_functions.h", "vector_types.h", "driver_types.h",
                 "math_constants.h", "math_functions.h", "nvToolsExt.h", "nvtx3/nvToolsExt.h", "cooperative_groups/reduce.h",
                 "cuda/std/complex", "cuda/std/array", "thrust/iterator/counting_iterator.h"]
        self.assertEqual(errors_of("".join(f"#include <{name}>\n" for name in names) + "cuda::std::array<int, 2> a;\n"
                                   "void f() { cudaProfilerStart(); nvtxRangePush(\"x\"); nvtxRangePop(); }\n"), [])


if __name__ == "__main__":
    unittest.main()

// Chapter 05: the variants that the sweep times for each m, and its table.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "05_two_streams/experiments/split_waves.hpp"
#include "05_two_streams/ring_two_streams.cuh"
#include "overlap/bench/dense_bench.hpp"
#include "overlap/bench/split_only.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"

namespace overlap::two_streams {

/// The variants that are timed for each m beside GEMM only: its parts and the ring, each on one stream and on
/// two, and the transfers alone.
template <Floating T>
void add_variants(DenseBench& bench, GatherProblem<T>& problem) {
  bench.add("split_one", product<SplitOnly<T>>(1), problem);
  bench.add("split_two", product<SplitOnly<T>>(2), problem);
  bench.add("copy_engine_ring", algorithm<copy_engine::CopyEngineRing<T>>(), problem);
  bench.add("ring_two_streams", algorithm<RingTwoStreams<T>>(), problem);
  const auto push = [](auto& ring, auto& data, cudaStream_t stream) { ring.run(data.a(), stream); };
  bench.add("transfers", part<copy_engine::RingPush<T>>(Role::kCommunication, push), problem);
}

/// The empty table.
inline ResultTable sweep_table() {
  return ResultTable({{"m", "m"},
                      {"waves", "waves"},
                      {"on 1 stream", "waves_one_stream"},
                      {"on 2", "waves_two_streams"},
                      {"GEMM only us", "gemm_only_ms", microseconds()},
                      {"split 1", "split 1"},
                      {"split 2", "split 2"},
                      {"ring 1", "ring 1"},
                      {"ring 2", "ring 2"},
                      {"2 streams", "speedup_of_two_streams", digits(2, 1, " x")},
                      {"against no overlap", "speedup_of_overlap", digits(2, 1, " x")}});
}

/// Adds the row of one m. Only rank 0 calls it.
inline void add_row(ResultTable& table, const DenseBench& bench) {
  const DenseProblem& problem = bench.problem();
  const auto [m, n, k] = problem.whole();
  const auto ms = [&](const char* name) { return bench.times_of(name)->device_ms.median; };
  const double alone = ms("gemm_only"), one = ms("copy_engine_ring"), two = ms("ring_two_streams");
  int multiprocessors = 0;
  CUDA_CHECK(
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, problem.rank().device()));
  const SplitWaves split =
      split_waves(problem.product(), problem.rank().size(), backend::product_tile(), multiprocessors);
  table.add({{"section", std::string("sweep")},
             {"gpus", std::int64_t{problem.rank().size()}},
             {"m", m},
             {"n", n},
             {"k", k},
             {"waves", split.whole},
             {"waves_one_stream", split.one_stream},
             {"waves_two_streams", split.two_streams},
             {"gemm_only_ms", alone},
             {"split_one_stream_ms", ms("split_one")},
             {"split_two_streams_ms", ms("split_two")},
             {"ring_one_stream_ms", one},
             {"ring_two_streams_ms", two},
             {"transfers_ms", ms("transfers")},
             {"speedup_of_two_streams", one / two},
             {"speedup_of_overlap", (alone + ms("transfers")) / two}},  // against transfers, then the GEMM
            {{"split 1", ms("split_one") / alone},
             {"split 2", ms("split_two") / alone},
             {"ring 1", one / alone},
             {"ring 2", two / alone}});
}

}  // namespace overlap::two_streams

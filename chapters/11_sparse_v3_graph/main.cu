// Chapter 11: the loop as a CUDA graph, beside the loops of chapters 09 and 10; first on calls of changing
// lengths, of which a graph knows nothing.
#include "11_sparse_v3_graph/graph.cuh"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "11_sparse_v3_graph/lengths.cuh"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap {
namespace {

const ChapterInfo kChapter = {
    .name = "11_sparse_v3_graph",
    .summary = "The sum of row-sparse gradients: the search for rows is one CUDA graph of fixed size.",
    .variants = {"v1_nonzero", "v2_where", "v3_graph"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 240}, .duplicates = 24},
    .on_real_gpus = {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {5'000'000, 2048, 50'000}},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {64, 8, 12}, .duplicates = 3}},
    .types = {ElementType::kF32, ElementType::kF16, ElementType::kBf16},
    .default_type = ElementType::kF32,
    .ranks_may_share_gpus = true,  // only to say why NCCL cannot: nothing is left to run then
};

/// What the recording took: no part of the table, since it is done once. Rank 0 prints and saves.
template <SparseIndex Index, Floating T>
void report_recording(Rank& rank, const GraphAllReduce<Index, T>& graph, Report& report) {
  const std::vector<double> all_ms = rank.exchange(graph.recording_ms());
  const double ms = *std::max_element(all_ms.begin(), all_ms.end());
  if (rank.id() != 0) return;
  const auto [local, global] = graph.capacity();
  std::cout << "v3_graph: room for " << local << " rows of a rank and " << global << " different ones; "
            << graph.graph_nodes() << " kernels, recorded and instantiated once in " << fixed(ms, 3) << " ms";
  if (graph.graph_bytes() > 0)  // not on virtual GPUs
    std::cout << ", which take " << fixed(static_cast<double>(graph.graph_bytes()) / (1 << 20), 0) << " MiB";
  std::cout << "\n";
  report.add_result({{"section", std::string("graph")},
                     {"gpus", std::int64_t{rank.size()}},
                     {"nodes", static_cast<std::int64_t>(graph.graph_nodes())},
                     {"local_capacity", local},
                     {"global_capacity", global},
                     {"graph_bytes", static_cast<std::int64_t>(graph.graph_bytes())},
                     {"recording_ms", ms}});
}

void run(const Options& options) {
  run_sparse_chapter(
      kChapter, options, [&]<SparseIndex Index, Floating T>(SparseBench<Index, T>& bench, Report& report) {
        bench.template add_algorithm<NonzeroAllReduce>("v1_nonzero");
        bench.template add_algorithm<WhereAllReduce>("v2_where");
        bench.add("v3_graph", [&] {
          auto graph = std::make_unique<GraphAllReduce<Index, T>>(bench.rank(), bench.data().shape());
          if (bench.settings().check) verify_lengths(bench.rank(), *graph, bench.data().shape());
          report_recording(bench.rank(), *graph, report);
          return bench.variant_of(std::move(graph));
        });
      });
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }

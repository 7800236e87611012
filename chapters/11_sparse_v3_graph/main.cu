// Chapter 11: the loop as a CUDA graph, beside the loops of chapters 09 and 10; first on calls of changing
// lengths, which a graph has to handle with fixed sizes.
#include "11_sparse_v3_graph/graph.cuh"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "09_sparse_v1_nonzero/program.hpp"
#include "overlap/data/sparse_lengths.hpp"
#include "overlap/program/sparse_chapter.hpp"

namespace overlap::sparse_graph {
namespace {

const ChapterInfo kChapter = sparse_chapter({
    .name = "11_sparse_v3_graph",
    .summary = "The sum of row-sparse gradients: the search for rows is one CUDA graph of fixed size.",
});

/// The time of the recording: not a row of the table, since it is done once. Rank 0 prints and saves.
template <SparseIndex Index, Floating T>
void report_recording(Rank& rank, const GraphWriter<Index, T>& graph, Report* report) {
  const std::vector<double> all_ms = rank.exchange(graph.recording_ms());
  const double ms = *std::max_element(all_ms.begin(), all_ms.end());
  if (rank.id() != 0) return;
  const auto [local, global] = graph.capacity();
  std::cout << "v3_graph: room for " << local << " rows of a rank and " << global << " different ones; "
            << graph.graph_nodes() << " kernels, recorded and instantiated once in " << fixed(ms, 3) << " ms";
  if (graph.graph_bytes() > 0)  // not on virtual GPUs
    std::cout << ", which take " << fixed(static_cast<double>(graph.graph_bytes()) / (1 << 20), 0) << " MiB";
  std::cout << "\n";
  report->add_result({{"section", std::string("graph")},
                      {"gpus", std::int64_t{rank.size()}},
                      {"nodes", static_cast<std::int64_t>(graph.graph_nodes())},
                      {"local_capacity", local},
                      {"global_capacity", global},
                      {"graph_bytes", static_cast<std::int64_t>(graph.graph_bytes())},
                      {"recording_ms", ms}});
}

/// The chapter's own variant, first on calls of changing lengths.
template <SparseIndex Index, Floating T>
std::unique_ptr<GraphAllReduce<Index, T>> make_graph(SparseBench<Index, T>& bench, Report* report) {
  Rank& rank = bench.rank();
  auto graph = std::make_unique<GraphAllReduce<Index, T>>(rank, bench.data().shape());
  if (bench.settings().check) {
    const auto lengths = verify_lengths<Index, T>(rank, "v3_graph", *graph, bench.data().shape());
    if (rank.id() == 0) std::cout << "v3_graph: calls of " << lengths << " rows are right, on one graph\n";
  }
  report_recording(rank, graph->find(), report);
  return graph;
}

constexpr auto kVariants = []<SparseIndex Index, Floating T>(SparseTable<Index, T>& table) {
  table.add("v1_nonzero", all_reduce<sparse_nonzero::NonzeroAllReduce<Index, T>>());
  table.add("v2_where", all_reduce<sparse_where::WhereAllReduce<Index, T>>());
  const auto capacity = SparseCapacity::of(table.sum().shape, table.sum().call.ranks);
  Plan<SparseSum> plan = sparse_nonzero::search_plan("search_by_graph", {{"nodes", 2 * capacity.local + 1}});
  plan.cost = [capacity](const SparseSum& sum) { return GraphAllReduce<Index, T>::cost(sum.call, capacity); };
  table.add(
      "v3_graph", [report = table.report()](auto& bench) { return make_graph<Index, T>(bench, report); },
      plan);
};

}  // namespace
}  // namespace overlap::sparse_graph

int main(int argc, char** argv) {
  using namespace overlap::sparse_graph;
  return overlap::sparse_chapter_main(argc, argv, kChapter, kVariants);
}

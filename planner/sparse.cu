// The chapters on sparse sums, 08 to 14. What all of them do around the search is the host's to drive: it
// waits for the GPU in between, so nothing overlaps. Chapter 15 is in sparse_beyond.cu.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "08_sparse_baselines/dense_all_reduce.cuh"
#include "09_sparse_v1_nonzero/nonzero.cuh"
#include "10_sparse_v2_where/where.cuh"
#include "11_sparse_v3_graph/graph.cuh"
#include "12_sparse_v4_broadcast_eq/broadcast_eq.cuh"
#include "13_sparse_v5_kernel/tile_search.cuh"
#include "14_sparse_v6_tiled/ordered_search.cuh"
#include "15_sparse_beyond/look_up.cuh"
#include "catalogue.hpp"
#include "schedule.hpp"
#include "sparse_beyond.hpp"

namespace overlap::planner {
namespace {

using Index = std::int32_t;
using T = float;
using sparse_nonzero::SparseCall;

/// Rank 0 merges the lists: it waits once more than the others.
constexpr int kRank = 0;

/// Steps 1, 2 and 4 of all versions: coalesce, the lists, the sum. Kernels read and write the rank's rows
/// three times to coalesce and three times to bring them to their places (once more than they must: scattered
/// rows), and fill the result's rows once.
double frame_us(const Machine& machine, const SparseProblem& problem, const Cost& frame) {
  constexpr int kLists = 4;  // collectives of a few numbers or of row numbers: records, lists, count, result
  const double local = bytes_of(problem, problem.shape.entries), global = bytes_of(problem, problem.global);
  const double kernels = (3 * local + 3 * local + global) / machine.memory_rate;
  const std::int64_t steps = problem.ranks - 1;
  return static_cast<double>(frame.host_waits) * machine.host_wait_us + kernels +
         kLists * collective_us(machine, problem.ranks, steps, 0) +
         collective_us(machine, problem.ranks, 2 * steps, static_cast<double>(frame.bytes_out));
}

/// Single numbers at scattered places of memory, which carries a sector for each.
double scattered_us(const Machine& machine, std::int64_t accesses) {
  constexpr double kSector = 32;
  return kSector * static_cast<double>(accesses) / machine.memory_rate;
}

}  // namespace

std::int64_t expected_global(std::int64_t rows, std::int64_t of_a_rank, int ranks) {
  const auto all = static_cast<double>(rows);
  // The part that no rank has, by logarithms: it may be next to all.
  return std::llround(-all * std::expm1(ranks * std::log1p(-static_cast<double>(of_a_rank) / all)));
}

Operation sparse_all_reduce(SparseProblem problem) {
  const SparseShape shape = problem.shape;
  const SparseCall call = {.ranks = problem.ranks,
                           .rank = kRank,
                           .features = shape.features,
                           .local = shape.entries,
                           .most = shape.entries,
                           .global = problem.global};
  Operation operation = {"sparse_all_reduce",
                         "the sum of " + std::to_string(shape.entries) +
                             " rows of each rank, of a table of " + std::to_string(shape.rows) + " x " +
                             std::to_string(shape.features) + "; " + std::to_string(problem.global) +
                             " different rows in all",
                         {},
                         {}};
  const Cost frame = sparse_nonzero::frame_cost<Index, T>(call);
  const auto add = [&](const char* chapter, const char* name, const Cost& cost, auto search) {
    operation.variants.push_back({chapter, name, cost, false, [=](const Machine& machine) {
                                    return frame_us(machine, problem, frame) + search(machine);
                                  }});
  };
  // What the host drives: it launches, and waits beyond what the frame waits.
  const auto driven = [](const Machine& machine, const Cost& cost) {
    return static_cast<double>(cost.launches) * machine.host_launch_us +
           static_cast<double>(cost.host_waits) * machine.host_wait_us;
  };
  const auto compared = [](const Machine& machine, const Cost& cost) {
    return static_cast<double>(cost.comparisons) / machine.compare_rate;
  };

  const Cost dense = sparse_baselines::DenseAllReduce<Index, T>::cost(shape, problem.ranks);
  operation.variants.push_back(
      {"08_sparse_baselines", "dense_nccl", dense, false, [=](const Machine& machine) {
         // Coalesce, scatter and gather rows; the table is filled before and read behind.
         const double rows = 6 * bytes_of(problem, shape.entries) + 2 * bytes_of(problem, problem.global);
         return static_cast<double>(dense.host_waits) * machine.host_wait_us +
                (rows + 2 * static_cast<double>(dense.memory)) / machine.memory_rate +
                collective_us(machine, problem.ranks, 2 * (problem.ranks - 1),
                              static_cast<double>(dense.bytes_out));
       }});
  const auto search_by_host = [=](const Cost& cost) {
    return [=](const Machine& machine) { return std::max(driven(machine, cost), compared(machine, cost)); };
  };
  const Cost v1 = sparse_nonzero::NonzeroSearch::cost(call);
  add("09_sparse_v1_nonzero", "v1_nonzero", v1, search_by_host(v1));
  const Cost v2 = sparse_where::WhereSearch::cost(call);
  add("10_sparse_v2_where", "v2_where", v2, search_by_host(v2));
  const auto capacity = sparse_graph::SparseCapacity::of(shape, problem.ranks);
  const Cost v3 = sparse_graph::GraphWriter<Index, T>::cost(call, capacity);
  add("11_sparse_v3_graph", "v3_graph", v3, [=](const Machine& machine) {
    const auto nodes = static_cast<double>(2 * capacity.local + 1);  // cost() counts a graph as one launch
    return driven(machine, v3) + std::max(nodes * machine.graph_node_us, compared(machine, v3));
  });
  const Cost v4 = sparse_broadcast_eq::BroadcastEqSearch::cost(call);
  add("12_sparse_v4_broadcast_eq", "v4_broadcast_eq", v4, [=](const Machine& machine) {
    // Each kernel visits every pair; the first writes the matrix, the second reads it.
    const double matrix = static_cast<double>(v4.memory) / machine.memory_rate;
    return driven(machine, v4) + static_cast<double>(v4.launches) * std::max(compared(machine, v4), matrix);
  });
  const auto search_by_kernel = [=](const Cost& cost) {
    return [=](const Machine& machine) { return driven(machine, cost) + compared(machine, cost); };
  };
  const Cost v5 = sparse_kernel::TileSearch::cost(call);
  add("13_sparse_v5_kernel", "v5_kernel", v5, search_by_kernel(v5));
  const Cost v6 = sparse_tiled::OrderedSearch::cost(call);
  add("14_sparse_v6_tiled", "v6_ordered", v6, search_by_kernel(v6));
  const Cost table = sparse_beyond::TableSearch::cost(call, shape.rows);
  add("15_sparse_beyond", "v6_table", table, [=](const Machine& machine) {
    return driven(machine, table) + scattered_us(machine, problem.global + 2 * shape.entries);
  });
  const Cost halves = sparse_beyond::BinarySearch::cost(call);
  add("15_sparse_beyond", "v6_binary", halves, [=](const Machine& machine) {
    return driven(machine, halves) + scattered_us(machine, halves.comparisons);
  });
  for (Variant& planned : planned_variants(problem, call)) operation.variants.push_back(std::move(planned));
  return operation;
}

}  // namespace overlap::planner

// Chapter 15, whose ranks all work out the same plan: one exchange of bitmaps or lists, one wait of the host.
// Then rows are added up by NCCL, by owners that get them from copy engines, or by owners whose kernels read
// the memory of others. Which rows which ranks share is not known here: rows at random, so equally many for
// each owner.
#include "sparse_beyond.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "15_sparse_beyond/contributor_owners.cuh"
#include "15_sparse_beyond/fixed_owners.cuh"
#include "15_sparse_beyond/narrow_owners.cuh"
#include "15_sparse_beyond/planned_all_reduce.cuh"
#include "15_sparse_beyond/range_owners.cuh"
#include "schedule.hpp"

namespace overlap::planner {
namespace {

using Index = std::int32_t;
using T = float;
using sparse_beyond::OwnedRows;
using sparse_nonzero::SparseCall;

constexpr const char* kChapter = "15_sparse_beyond";
constexpr double kPlace = sizeof(std::int32_t);

/// What comes before a row is added: coalesce, which reads and writes the rank's rows three times in all, and
/// the plan, which reads all messages twice, writes a place for each rank and row, and reads it.
double plan_us(const Machine& machine, const SparseProblem& problem, const Cost& cost) {
  const std::int64_t message = sparse_beyond::RowPlan<Index>::message_bytes(problem.shape, problem.ranks);
  const auto ranks = static_cast<double>(problem.ranks);
  const double others = ranks - 1, bytes = static_cast<double>(message);
  const double kernels = 3 * bytes_of(problem, problem.shape.entries) + 2 * ranks * bytes +
                         2 * ranks * kPlace * static_cast<double>(problem.global);
  return static_cast<double>(cost.host_waits) * machine.host_wait_us + kernels / machine.memory_rate +
         collective_us(machine, problem.ranks, problem.ranks - 1, others * bytes);
}

/// A wait of all ranks for all others, by signals.
double meet_us(const Machine& machine, int ranks) { return ranks > 1 ? machine.signal_us : 0; }

/// Everybody's kernel reads rows of others, between two meetings; then `written` bytes are read and written
/// here.
double pulled_us(const Machine& machine, const SparseProblem& problem, const Cost& sums, double written) {
  const auto moved = static_cast<double>(std::max(sums.bytes_in, sums.bytes_out));
  return 2 * meet_us(machine, problem.ranks) + static_cast<double>(sums.launches) * machine.launch_us +
         moved / machine.link_rate + written / machine.memory_rate;
}

}  // namespace

std::vector<Variant> planned_variants(SparseProblem problem, SparseCall call) {
  const SparseShape shape = problem.shape;
  const int ranks = problem.ranks;
  const std::int64_t all = ranks * shape.entries;
  // More rows than that no plan has room for.
  const int most = static_cast<int>(std::min<std::int64_t>((std::int64_t{1} << 30) / shape.entries, 1 << 20));
  std::vector<Variant> variants;
  const auto add = [&](const char* name, int most_ranks, bool peers, std::string differs, const auto& cost_of,
                       const auto& us) {
    Variant variant = {kChapter, name, {}, peers, {}, most_ranks, std::move(differs)};
    if (ranks <= most_ranks) {
      const Cost cost = cost_of();
      variant.cost = cost;
      variant.us = [=](const Machine& machine) { return plan_us(machine, problem, cost) + us(machine); };
    }
    variants.push_back(std::move(variant));
  };

  using sparse_beyond::NcclSum, sparse_beyond::PlannedAllReduce;
  const Cost by_nccl = NcclSum<Index, T>::cost(call);
  add(
      "bitmap_plan", most, false, "", [&] { return PlannedAllReduce<Index, T, NcclSum>::cost(call, shape); },
      [=](const Machine& machine) {
        const double filled = bytes_of(problem, shape.entries) + bytes_of(problem, problem.global);
        return filled / machine.memory_rate + machine.launch_us +
               collective_us(machine, ranks, 2 * (ranks - 1), static_cast<double>(by_nccl.bytes_out));
      });

  const int most_peers = std::min(most, sparse_beyond::kMostRanks);
  const auto owners = static_cast<std::size_t>(std::min(ranks, most_peers));
  const std::vector<std::vector<std::int64_t>> ranges(
      owners, std::vector<std::int64_t>(owners, shape.entries / ranks));
  const Cost by_ranges = sparse_beyond::RangeOwners<Index, T>::cost(call, ranges);
  add(
      "range_owners", most_peers, true, "",
      [&] { return PlannedAllReduce<Index, T, sparse_beyond::RangeOwners>::cost(call, shape, ranges); },
      [=](const Machine& machine) {
        // To the owners, and from them: a copy for each other rank, one behind the other.
        const double copies =
            2 * (ranks - 1) * machine.push_us + static_cast<double>(by_ranges.bytes_out) / machine.link_rate;
        const double added = bytes_of(problem, all / ranks) + bytes_of(problem, problem.global / ranks);
        return copies + 2 * meet_us(machine, ranks) + kernel_us(machine, added);
      });

  // Each row has one owner: among those that have it, which then reads one row less.
  const std::int64_t shared = (all - problem.global) / ranks;
  const OwnedRows among = {.owned = problem.global / ranks, .pulled = shared, .given = shared};
  const double widened = 0.5 * bytes_of(problem, problem.global) + bytes_of(problem, problem.global);
  const auto add_owners = [&]<template <typename, typename> typename Way>(const char* name, bool narrow) {
    using Sums = Way<Index, T>;
    const Cost sums = Sums::cost(call, among);
    add(
        name, most_peers, true, narrow ? "sums of values in 16 bits" : "",
        [&] { return PlannedAllReduce<Index, T, Way>::cost(call, shape, among); },
        [=](const Machine& machine) { return pulled_us(machine, problem, sums, narrow ? widened : 0); });
  };
  add_owners.template operator()<sparse_beyond::ContributorOwners>("contributor_owners", false);
  add_owners.template operator()<sparse_beyond::Bf16Owners>("owners_bf16", true);
  add_owners.template operator()<sparse_beyond::F16Owners>("owners_f16", true);

  // Or wherever it lives: the owner has it itself once in P times.
  const std::int64_t elsewhere = shape.entries - shape.entries / ranks;
  const OwnedRows at_home = {.owned = problem.global / ranks, .pulled = elsewhere, .given = elsewhere};
  const Cost scattered = sparse_beyond::FixedOwners<Index, T>::cost(call, at_home);
  add(
      "reduce_scatter", most_peers, true, "sums stay with their owners",
      [&] { return PlannedAllReduce<Index, T, sparse_beyond::FixedOwners>::cost(call, shape, at_home); },
      [=](const Machine& machine) { return pulled_us(machine, problem, scattered, 0); });
  const Cost fetched = sparse_beyond::FixedOwnersFetch<Index, T>::cost(call, at_home);
  add(
      "scatter_fetch", most_peers, true, "a rank gets its own rows only",
      [&] { return PlannedAllReduce<Index, T, sparse_beyond::FixedOwnersFetch>::cost(call, shape, at_home); },
      [=](const Machine& machine) { return pulled_us(machine, problem, fetched, 0); });
  return variants;
}

}  // namespace overlap::planner

#include "replayer.hpp"

#include <algorithm>
#include <exception>
#include <vgpu/control.hpp>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/peer_access.hpp"
#include "overlap/gpu/ranks.hpp"
#include "rank_replay.hpp"

namespace overlap::teaching {
namespace {

/// Of all links so far; between a GPU and itself or the host nothing counts.
std::vector<LinkCount> traffic_now(int gpus) {
  std::vector<LinkCount> links;
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      const vgpu::Traffic traffic = from == to ? vgpu::Traffic{} : vgpu::traffic(from, to);
      links.push_back(
          {from, to, static_cast<std::int64_t>(traffic.bytes), static_cast<std::int64_t>(traffic.copies)});
    }
  }
  return links;
}

/// All ranks' GPUs are idle when the first of them returns.
void settle(Rank& rank) {
  CUDA_CHECK(cudaDeviceSynchronize());
  rank.barrier();
}

}  // namespace

Replayed replay(const CallLog& log, const ReplayCase& wanted, bool counts) {
  const LogCase known = wanted.known();
  Replayed result;
  try {
    vgpu::use_gpus(wanted.gpus);
    if (wanted.schedule && !counts) vgpu::use_schedule(*wanted.schedule);
    require_peer_access(wanted.gpus);  // as before the log
    ReplayShared shared(log, known);
    for (int call = 0; call < wanted.calls; ++call)
      shared.values.push_back(call_values(wanted.entry().sharing, wanted.shape, wanted.gpus, wanted.type,
                                          wanted.seed + 2 * static_cast<std::uint64_t>(call)));
    std::vector<LinkCount> before(static_cast<std::size_t>(wanted.gpus * wanted.gpus));
    run_ranks(wanted.gpus, [&](Rank& rank) {
      RankReplay mine(rank, shared);
      mine.run([&] {
        if (!counts) return;
        settle(rank);
        if (rank.id() == 0) before = traffic_now(wanted.gpus);
        rank.barrier();
      });
      mine.finish();
      if (!counts) return;
      settle(rank);
      if (rank.id() != 0) return;
      result.links = traffic_now(wanted.gpus);
      for (std::size_t i = 0; i < before.size(); ++i) {
        result.links[i].bytes -= before[i].bytes;
        result.links[i].messages -= before[i].messages;
      }
      std::erase_if(result.links, [](const LinkCount& link) { return link.messages == 0; });
    });
    for (const Verification& own : shared.found) result.found += own;
  } catch (const std::exception& error) {
    result.failure = error.what();
    result.deadlock = vgpu::failure_reported();
  }
  return result;
}

std::vector<RankCount> counted(const CallLog& log, const std::vector<LinkCount>& links) {
  std::vector<RankCount> ranks;
  for (const auto& lines : log.ranks) {
    RankCount count{};
    bool inside = false;
    for (const LogLine& line : lines) {
      if (line.call == LogCall::kCall || line.call == LogCall::kEnd) inside = line.call == LogCall::kCall;
      if (!inside) continue;
      count.products += line.call == LogCall::kGemm;
      count.launches += line.call == LogCall::kLaunch;
      count.host_waits += line.call == LogCall::kSyncStream || line.call == LogCall::kSyncEvent ||
                          line.call == LogCall::kSyncDevice || line.call == LogCall::kCopySync;
    }
    ranks.push_back(count);
  }
  for (const LinkCount& link : links) {
    ranks[static_cast<std::size_t>(link.from)].bytes_out += link.bytes;
    ranks[static_cast<std::size_t>(link.to)].bytes_in += link.bytes;
  }
  return ranks;
}

std::vector<std::int64_t> memory_held(const CallLog& log) {
  std::vector<std::int64_t> most;
  for (const auto& lines : log.ranks) {
    std::vector<std::int64_t> bytes;  // by number of memory; 0 of a host's
    std::int64_t held = 0, peak = 0;
    bool called = false;
    for (const LogLine& line : lines) {
      called = called || line.call == LogCall::kCall;
      if (line.call == LogCall::kMalloc || line.call == LogCall::kMallocHost) {
        const bool on_gpu = line.call == LogCall::kMalloc;
        held += bytes.emplace_back(on_gpu ? static_cast<std::int64_t>(line.values[0].number) : 0);
      }
      if (line.call == LogCall::kFree) held -= bytes[static_cast<std::size_t>(line.values[0].index)];
      if (called) peak = std::max(peak, held);
    }
    most.push_back(peak);
  }
  return most;
}

std::vector<RankCount> expected(const ReplayCase& wanted) {
  const AlgorithmEntry& entry = wanted.entry();
  std::vector<RankCount> ranks;
  for (int rank = 0; rank < wanted.gpus; ++rank) {
    const Cost cost = entry.cost(wanted.shape, wanted.gpus, rank, wanted.type);
    ranks.push_back({.bytes_out = cost.bytes_out * wanted.calls,
                     .bytes_in = cost.bytes_in * wanted.calls,
                     .products = cost.products * wanted.calls,
                     .launches = cost.launches * wanted.calls,
                     .host_waits = cost.host_waits * wanted.calls});
  }
  return ranks;
}

}  // namespace overlap::teaching

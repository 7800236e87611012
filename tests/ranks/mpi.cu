// A program of several processes. It checks the results of its ranks; mpi_test.py starts it with mpirun, and
// checks how it ends.
#include <nccl.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "overlap/bench/gate.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_buffer.hpp"
#include "overlap/gpu/processes.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/signals.hpp"
#include "overlap/program/chapter.hpp"

namespace overlap {
namespace {

using namespace std::chrono_literals;

const ChapterInfo kInfo = {
    .name = "mpi",
    .summary = "Ranks in several processes.",
    .on_virtual_gpus = {.shape = {8, 8, 8}, .gpus = 4},
    .on_real_gpus = {.shape = {8, 8, 8}, .gpus = 4},
    .has_nodes = true,
};

void require(bool right, const char* what) {
  if (!right) throw WrongResult(what);
}

/// Every rank receives every rank's value, ordered by rank.
void check_exchange(Rank& rank) {
  struct Value {
    int rank;
    double third;
  };
  for (int round = 0; round < 20; ++round) {
    const auto all = rank.exchange(Value{100 * round + rank.id(), rank.id() / 3.0});
    require(all.size() == static_cast<std::size_t>(rank.size()), "exchange: as many values as ranks");
    for (int other = 0; other < rank.size(); ++other) {
      const Value& value = all[static_cast<std::size_t>(other)];
      require(value.rank == 100 * round + other && value.third == other / 3.0, "exchange: whose value");
    }
    const auto here = rank.exchange_here(rank.id());
    require(here.size() == static_cast<std::size_t>(rank.local_size()),
            "exchange_here: ranks of the process");
    for (int i = 0; i < rank.local_size(); ++i)
      require(here[static_cast<std::size_t>(i)] == rank.local_begin() + i, "exchange_here: whose value");
  }
}

/// Each rank's NCCL id arrives unchanged at every rank, in every process.
void check_nccl_id(Rank& rank) {
  ncclUniqueId id{};
  NCCL_CHECK(ncclGetUniqueId(&id));
  std::array<char, sizeof id> own{};  // nvcc 13.0 crashes on a vector of ncclUniqueId here
  std::memcpy(own.data(), &id, sizeof id);
  const auto ids = rank.exchange(own);
  require(ids[static_cast<std::size_t>(rank.id())] == own, "NCCL's id: of this rank");
  for (const auto& first : rank.exchange(ids.front())) require(first == ids.front(), "NCCL's id: of rank 0");
}

/// All ranks see after the barrier what the last rank did before it.
void check_barrier(Rank& rank, const std::string& file) {
  if (rank.id() == rank.size() - 1) {
    std::this_thread::sleep_for(200ms);  // ranks that did not wait would have left
    std::ofstream(file) << "here";
  }
  rank.barrier();
  require(std::filesystem::exists(file), "barrier: a rank went on before the last one came");
  rank.barrier();
  if (rank.id() == rank.size() - 1) std::filesystem::remove(file);
}

void check_largest(Rank& rank) {
  const double mine = rank.id();
  const std::vector<double> largest = rank.largest_of_all({mine, -mine, rank.id() == 1 ? 7.0 : 0.0});
  require(largest == std::vector<double>{rank.size() - 1.0, 0.0, 7.0}, "largest_of_all");
}

/// Memory and signals of the process; and a gate for each process.
void check_memory(Rank& rank) {
  const PeerBuffer<int> data(rank, 4, Reach::kProcess);
  for (int other = 0; other < rank.size(); ++other) {
    const bool here = other >= rank.local_begin() && other < rank.local_begin() + rank.local_size();
    require((data.on(other) != nullptr) == here, "PeerBuffer: memory of the process, and no other");
  }
  Signals arrived(rank, 1, Reach::kProcess);
  Gate gate(rank);
  const int next = rank.local_begin() + (rank.id() - rank.local_begin() + 1) % rank.local_size();
  for (int call = 0; call < 3; ++call) {
    arrived.begin_call();
    gate.close(rank.stream());
    CUDA_CHECK(cudaMemsetAsync(data.on(next), rank.id() + 1, sizeof(int), rank.stream()));
    arrived.raise(next, 0, rank.stream());
    arrived.await(0, rank.stream());
    gate.open();
    rank.synchronize(rank.stream());
    rank.barrier();
  }
  try {
    const PeerBuffer<int> everywhere(rank, 4);
    throw WrongResult("PeerBuffer: memory of another process");
  } catch (const Skip&) {
  }
}

/// All ranks get the same time: that of the slowest, the last rank.
void check_times(Rank& rank) {
  const DeviceBuffer<char> data(rank.device(), std::size_t{1} << 20);
  const auto call = [&](cudaStream_t stream) {
    const int writes = rank.id() == rank.size() - 1 ? 50 : 1;
    for (int i = 0; i < writes; ++i) CUDA_CHECK(cudaMemsetAsync(data.data(), 0, data.bytes(), stream));
  };
  const VariantTimes times = time_variants(rank, {{"call", call}}, 3, 1).front();
  for (const double other : rank.exchange(times.device_ms.median))
    require(other == times.device_ms.median, "the slowest rank's time is not everybody's");
}

void run(Rank& rank, const std::string& what, const std::string& file) {
  const bool last = rank.id() == rank.size() - 1;
  check_exchange(rank);
  if (what == "all") {
    check_nccl_id(rank);
    check_barrier(rank, file);
    check_largest(rank);
    check_memory(rank);
    check_times(rank);
  } else if (what == "throw") {
    if (last) throw std::runtime_error("planted");
  } else if (what == "wrong") {
    if (last) throw WrongResult("planted");
  } else if (what == "die") {
    if (last) std::_Exit(7);
  } else if (what == "first dies") {
    if (rank.id() == 0) std::_Exit(7);
  } else if (what == "busy") {  // the others do not even poll
    if (last) std::_Exit(7);
    std::this_thread::sleep_for(60s);
  } else if (what == "late") {  // the others wait for it in a barrier
    if (last) std::this_thread::sleep_for(60s);
  } else if (what == "all throw") {
    throw std::runtime_error("planted");
  }
  rank.barrier();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  using namespace overlap;
  const char *what = std::getenv("MPI_TEST_WHAT"), *file = std::getenv("MPI_TEST_FILE");
  return chapter_main(argc, argv, kInfo, [&](const Options& options) {
    if (what == std::string("skip")) throw Skip("for all");
    run_ranks(
        options.gpus, [&](Rank& rank) { run(rank, what, file); }, options.processes);
    if (options.is_root()) {
      std::printf("%d ranks in nodes of %d, seed %d\n", options.gpus, options.gpus_per_node,
                  static_cast<int>(options.seed));
    }
  });
}

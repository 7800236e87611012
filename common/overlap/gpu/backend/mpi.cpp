// Processes of MPI; the only source that uses MPI. It makes the target overlap_mpi, with which only programs
// of several processes are linked.
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string_view>
#include <thread>

#include "overlap/gpu/error.hpp"
#include "overlap/gpu/processes.hpp"

namespace overlap {
namespace {

using namespace std::chrono_literals;
constexpr auto kEndPatience = 1s;  // for the other processes to fail for the same reason

/// The end of a process, as sent to the others.
struct Ending {
  int status;
  std::size_t sentence;  // its hash: equal sentences are printed once
};

// MPI's default error handler ends all processes, so no call returns an error.
class MpiProcesses final : public Processes {
 public:
  MpiProcesses(int index, int count) : Processes(index, count) { MPI_Comm_dup(MPI_COMM_WORLD, &ends_); }
  ~MpiProcesses() override {
    MPI_Comm_free(&ends_);
    MPI_Finalize();
  }

  std::string broadcast(const std::string& text) override {
    std::uint64_t size = text.size();
    MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    std::string of_all = text;
    of_all.resize(size);
    MPI_Bcast(of_all.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD);
    return of_all;
  }

  void barrier(const Stopped& stopped) override {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait(request, stopped);
  }

  void all_gather(const void* own, void* all, std::size_t bytes, const Stopped& stopped) override {
    const int size = static_cast<int>(bytes);
    given_.assign(static_cast<const char*>(own), bytes);
    gathered_.resize(bytes * static_cast<std::size_t>(count()));
    MPI_Request request;
    MPI_Iallgather(given_.data(), size, MPI_BYTE, gathered_.data(), size, MPI_BYTE, MPI_COMM_WORLD, &request);
    if (wait(request, stopped)) std::memcpy(all, gathered_.data(), gathered_.size());
  }

  void largest(std::vector<double>& values, const Stopped& stopped) override {
    reduced_ = values;
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, reduced_.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                   MPI_COMM_WORLD, &request);
    if (wait(request, stopped)) values = reduced_;
  }

  void end(int status, const std::string& sentence) override {
    const Ending own{status, std::hash<std::string>()(sentence)};
    std::vector<Ending> all(static_cast<std::size_t>(count()));
    MPI_Request request;
    MPI_Iallgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, ends_, &request);
    const auto until = std::chrono::steady_clock::now() + kEndPatience;
    const bool together =
        wait(request, [&] { return status != kExitOk && std::chrono::steady_clock::now() > until; });
    if (!together) {
      std::cerr << sentence << std::flush;
      abort(status);
    }
    int first = kExitOk;
    bool told = status == kExitOk;
    for (int process = 0; process < count(); ++process) {
      const Ending& other = all[static_cast<std::size_t>(process)];
      if (first == kExitOk) first = other.status;
      if (process < index() && other.status != kExitOk && other.sentence == own.sentence) told = true;
    }
    if (!told) std::cerr << sentence << std::flush;
    if (first == kExitOk) return;
    MPI_Barrier(ends_);  // every sentence is written before the first process ends the others
    abort(first);
  }

 private:
  /// False if `stopped` was true before the request was complete. The request then stays pending, and its
  /// buffers must outlive it: they are members.
  static bool wait(MPI_Request request, const Stopped& stopped) {
    while (true) {
      int complete = 0;
      MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
      if (complete != 0) return true;
      if (stopped()) return false;
      std::this_thread::yield();
    }
  }

  [[noreturn]] static void abort(int status) {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
  }

  MPI_Comm ends_;  // for end() only: abandoned calls are still pending in MPI_COMM_WORLD
  std::string given_, gathered_;
  std::vector<double> reduced_;
};

}  // namespace

std::unique_ptr<Processes> start_processes() {
  int provided = 0, index = 0, count = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &index);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  if (provided < MPI_THREAD_FUNNELED) {
    std::fprintf(stderr, "this MPI does not allow threads (MPI_THREAD_FUNNELED)\n");
    MPI_Abort(MPI_COMM_WORLD, kExitFailed);
  }
  auto processes = std::make_unique<MpiProcesses>(index, count);
  if (count == 1) return nullptr;  // its destructor ends MPI
  return processes;
}

}  // namespace overlap

// Several processes that run one program together, one for each machine (node), started by mpirun or srun.
// Inside a process the ranks are threads, as in ranks.hpp. MPI carries what the hosts have to agree on; the
// GPUs' data goes by NCCL.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace overlap {

/// The processes of one program. All calls are collective and belong to the main thread of each process: MPI
/// is initialised for that thread alone (MPI_THREAD_FUNNELED). Ranks reach the others by Rank::barrier(),
/// Rank::exchange() and Rank::largest_of_all(), which hand the call to the main thread.
class Processes {
 public:
  /// Polled while a call waits for the other processes. Once it returns true the call returns without a
  /// result, and the only call that may follow is end().
  using Stopped = std::function<bool()>;

  Processes(int index, int count) : index_(index), count_(count) {}
  virtual ~Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  int index() const { return index_; }  ///< of this process, 0 to count() - 1
  int count() const { return count_; }  ///< how many processes there are

  /// The text of process 0.
  virtual std::string broadcast(const std::string& text) = 0;
  virtual void barrier(const Stopped& stopped) = 0;
  /// Writes `bytes` bytes of each process to `all`, in the order of the processes.
  virtual void all_gather(const void* own, void* all, std::size_t bytes, const Stopped& stopped) = 0;
  /// Replaces each value by the largest one that any process has at that place.
  virtual void largest(std::vector<double>& values, const Stopped& stopped) = 0;

  /// Returns if all processes give status 0. Otherwise every process that fails writes its `sentence` to
  /// standard error, unless a process of lower index has the same one, and all end with the status of the
  /// first that failed. A process that fails while the others still run waits 1 s for them, and then ends
  /// them (MPI_Abort).
  virtual void end(int status, const std::string& sentence) = 0;

 private:
  const int index_, count_;
};

/// The processes that were started with this one; null if it is the only one. A program that is linked with
/// overlap_mpi asks MPI; all others are one process.
std::unique_ptr<Processes> start_processes();

}  // namespace overlap

// Several processes that run one program together, one for each machine (node). Within a process the ranks
// are threads, as in ranks.hpp; this is how the processes find each other, agree, and end together.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace overlap {

/// Where processes meet, and which of them this is.
struct Meeting {
  int index = 0;          ///< of this process
  int count = 1;          ///< of all processes
  std::string host = {};  ///< of process 0, which listens there
  std::string port = {};  ///< where it listens
};

/// What the environment says: OVERLAP_RENDEZVOUS=HOST:PORT is where process 0 listens, and what started the
/// processes says who this is, by the first of these pairs that is set: OVERLAP_PROCESS and OVERLAP_PROCESSES
/// (./lab), OMPI_COMM_WORLD_RANK and _SIZE (Open MPI), PMI_RANK and _SIZE (MPICH), SLURM_PROCID and _NTASKS
/// (srun). Empty without OVERLAP_RENDEZVOUS: a job script has the others set, too, for programs of one
/// process. Throws UsageError if something is missing.
std::optional<Meeting> meeting_from_environment();

/// Another process has failed or died; what() names it.
class ProcessFailed : public std::runtime_error {
 public:
  /// `sentence` names it; `status` is the exit status that it has left.
  ProcessFailed(int status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  int status() const { return status_; }  ///< with which this process ends, too

 private:
  int status_;
};

/// The processes of one program, as one of them sees the others. They are connected by TCP, each with process
/// 0: no MPI is needed, only something that starts them. Messages are small, and few: what the GPUs send each
/// other goes by NCCL.
///
/// If a process dies, or stop() says that it fails, the run of the others is stopped (ranks.hpp), and what
/// they wait for here throws ProcessFailed. A process that has not ended some seconds later ends itself with
/// that sentence.
class Processes {
 public:
  /// Returns when all of them have met. Throws ProcessFailed if one does not come within a minute, or if they
  /// do not agree on how many they are.
  explicit Processes(const Meeting& meeting);
  /// After leave(), or once this process has failed.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  int index() const { return meeting_.index; }  ///< of this process
  int count() const { return meeting_.count; }  ///< how many they are
  /// "process 1 on HOST (process id 4711)"
  std::string name_of(int process) const;

  /// What each process gives, by number. Collective, by one thread of each.
  std::vector<std::string> exchange(const std::string& own);
  /// Waits for all processes.
  void barrier() { exchange(""); }
  /// Throws ProcessFailed if another process has failed.
  void check() const;

  /// Tells the others why this process fails, and the exit status that follows. Only the first failure
  /// counts.
  void stop(int status, const std::string& sentence);
  /// The end of a run that went well. Collective: nobody leaves while another one may still fail.
  void leave();
  /// True if process 0 can tell why the run has failed: it tells for all.
  bool first_knows() const;

 private:
  class Connections;

  const Meeting meeting_;
  std::unique_ptr<Connections> connections_;
};

}  // namespace overlap

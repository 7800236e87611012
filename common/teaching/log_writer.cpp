// Writes the log of a submission's calls, as one message, to the file descriptor that the last argument
// names:
//
//   log KEY=VALUE... FD
//
// The submission gets shapes and zeros. What this process says of itself counts for nothing: the judge makes
// the calls again, on data that this process has never seen (tools/teaching/replay).
#include <cstdlib>
#include <exception>
#include <iostream>

#include "operands.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "record_calls.hpp"
#include "submission.hpp"
#include "wire.hpp"

namespace overlap::teaching {
namespace {

/// The student's algorithm, as record_calls() makes and calls it.
class Recorded final : public AnyAlgorithm {
 public:
  Recorded(Rank& rank, const Case& which) : submission_(overlap_submission(rank, which.sizes, which.type)) {}
  void run(const void* a, const void* b, void* c, cudaStream_t stream) override {
    submission_->run({a, b, c, 0, stream});
  }

 private:
  std::unique_ptr<Submission> submission_;
};

void write(const Case& which, int fd) {
  if (which.problem == "sparse") throw std::invalid_argument("a sparse case has no log");
  const Sharing sharing = which.problem == "gather" ? Sharing::kGather : Sharing::kScatter;
  backend::configure({.schedule = which.schedule, .machine = which.machine});
  write_bytes(fd, record_calls(log_case(sharing, which.sizes, which.ranks, which.calls, which.type),
                               [&](Rank& rank) { return std::make_unique<Recorded>(rank, which); }));
}

}  // namespace
}  // namespace overlap::teaching

int main(int argc, char** argv) {
  try {
    const int fd = argc > 1 ? std::atoi(argv[argc - 1]) : -1;
    overlap::teaching::write(overlap::teaching::Case::from(overlap::teaching::words_of(argv + 1, argc - 2)),
                             fd);
    return overlap::kExitOk;
  } catch (const std::exception& error) {
    std::cerr << "submission: " << error.what() << '\n';
    return overlap::kExitFailed;
  }
}

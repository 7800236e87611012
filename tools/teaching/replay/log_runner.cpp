// The program that a student's solution is linked with: runs it on virtual GPUs, with shapes and zeros, and
// writes down what it calls (call_log.hpp). What this program says of the solution counts for nothing: the
// judge makes the calls again. Exit status 0: the log is written, whether the run ended well or not.
#include <cuda_runtime.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>
#include <vgpu/control.hpp>

#include "operands.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_access.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "recorder.hpp"
#include "replay_case.hpp"

namespace overlap::teaching {
namespace {

/// A rank's operands of a call, all zero.
struct Operands {
  DeviceBuffer<std::byte> a, b, c;
};

Operands operands_of(int rank, int call, const OperandBytes& bytes, Recorder& recorder) {
  Operands made{{rank, bytes.a}, {rank, bytes.b}, {rank, bytes.c}};
  const auto add = [&](char name, const DeviceBuffer<std::byte>& buffer) {
    if (buffer.size() > 0) CUDA_CHECK(cudaMemset(buffer.data(), 0, buffer.bytes()));
    recorder.add_operand(rank, name, call, buffer.data(), buffer.bytes());
  };
  add('a', made.a);
  add('b', made.b);
  add('c', made.c);
  return made;
}

void run(const ReplayCase& wanted, Recorder& recorder) {
  const LogCase known = wanted.known();
  require_peer_access(wanted.gpus);  // before the log: the proof copies from and to ordinary memory
  run_ranks(wanted.gpus, [&](Rank& rank) {
    std::vector<Operands> operands;
    for (int call = 0; call < wanted.calls; ++call)
      operands.push_back(
          operands_of(rank.id(), call, known.operands[static_cast<std::size_t>(rank.id())], recorder));
    CUDA_CHECK(cudaDeviceSynchronize());
    recorder.begin(rank.id());
    const std::unique_ptr<AnyAlgorithm> algorithm = wanted.entry().make(rank, wanted.shape, wanted.type);
    const cudaStream_t stream = rank.stream();
    for (int call = 0; call < wanted.calls; ++call) {
      const Operands& own = operands[static_cast<std::size_t>(call)];
      recorder.begin_call(rank.id(), call, stream);
      algorithm->run(own.a.data(), own.b.data(), own.c.data(), stream);
      recorder.end_call(rank.id(), call);
    }
    recorder.finish(rank.id());
    rank.synchronize(stream);
    rank.barrier();
  });
}

/// Returns the exit status.
int write_log(const ReplayCase& wanted) {
  vgpu::use_gpus(wanted.gpus);
  std::string text;
  {
    Recorder recorder(wanted.gpus);
    try {
      run(wanted, recorder);
    } catch (const std::exception& error) {  // how it ends says the log, to the judge
      std::cerr << "log_runner: the algorithm failed: " << error.what() << '\n';
    }
    text = recorder.text(wanted.calls);
  }
  std::ofstream file(wanted.log, std::ios::binary);
  file << text;
  if (file.close(), !file) throw std::runtime_error("cannot write '" + wanted.log + "'");
  return kExitOk;
}

}  // namespace
}  // namespace overlap::teaching

int main(int argc, char** argv) {
  try {
    const auto wanted = overlap::teaching::read_case(argc, argv, false);
    return wanted ? overlap::teaching::write_log(*wanted) : overlap::kExitOk;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return overlap::kExitFailed;
  }
}

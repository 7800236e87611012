#include "record_calls.hpp"

#include <cuda_runtime.h>

#include <exception>
#include <iostream>
#include <vector>
#include <vgpu/control.hpp>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/peer_access.hpp"
#include "overlap/gpu/stream.hpp"
#include "recorder.hpp"

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

void run(const LogCase& known, const std::function<std::unique_ptr<AnyAlgorithm>(Rank&)>& make,
         Recorder& recorder) {
  require_peer_access(known.ranks);  // before the log: the proof copies from and to ordinary memory
  run_ranks(known.ranks, [&](Rank& rank) {
    std::vector<Operands> operands;
    for (int call = 0; call < known.calls; ++call)
      operands.push_back(
          operands_of(rank.id(), call, known.operands[static_cast<std::size_t>(rank.id())], recorder));
    CUDA_CHECK(cudaDeviceSynchronize());
    recorder.begin(rank.id());
    const std::unique_ptr<AnyAlgorithm> algorithm = make(rank);
    const cudaStream_t stream = rank.stream();
    for (int call = 0; call < known.calls; ++call) {
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

}  // namespace

std::string record_calls(const LogCase& known,
                         const std::function<std::unique_ptr<AnyAlgorithm>(Rank&)>& make) {
  vgpu::use_gpus(known.ranks);
  Recorder recorder(known.ranks);
  try {
    run(known, make, recorder);
  } catch (const std::exception& error) {  // how it ends says the log, to the judge
    std::cerr << "the algorithm failed: " << error.what() << '\n';
  }
  return recorder.text(known.calls);
}

}  // namespace overlap::teaching

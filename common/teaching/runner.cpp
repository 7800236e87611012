// Runs a submission: reads a case on standard input, makes the student's algorithm on virtual GPUs, calls it,
// and writes all results as one message to the file descriptor that the first argument names. What this
// process says is not believed: the judge, a program without the student's code, compares the results with
// its own reference.
//
// Exit status as of a chapter's program: 0, 2 for a failed call, 3 for a race or a deadlock.
#include <cuda_runtime.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>
#include <vgpu/control.hpp>
#include <vgpu/timeline.hpp>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/program/chapter.hpp"
#include "submission.hpp"
#include "wire.hpp"

namespace overlap::teaching {
namespace {

/// What has gone over each link so far.
std::vector<Link> links_now(int ranks) {
  std::vector<Link> links;
  for (int from = 0; from <= ranks; ++from) {
    for (int to = 0; to <= ranks; ++to) {
      const vgpu::Traffic moved =
          vgpu::traffic(from == ranks ? vgpu::kHost : from, to == ranks ? vgpu::kHost : to);
      links.push_back(from == to ? Link{} : Link{moved.bytes, moved.copies});
    }
  }
  return links;
}

/// Bytes that nobody holds on the rank's GPU.
std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

/// Adds, by GPU, the modelled time of the kernels that have `name` in theirs, behind so many operations.
void add_kernel_times(const std::string& name, std::size_t operations,
                      std::vector<std::uint64_t>& kernel_ns) {
  const std::vector<vgpu::TimelineEntry> all = vgpu::timeline();
  for (std::size_t i = operations; i < all.size(); ++i) {
    const vgpu::TimelineEntry& entry = all[i];
    if (entry.work.kind == "kernel" && entry.work.name.find(name) != std::string::npos)
      kernel_ns[static_cast<std::size_t>(entry.device)] +=
          static_cast<std::uint64_t>(entry.end - entry.begin);
  }
}

/// One rank's buffers of one call.
struct OnGpu {
  OnGpu(const Rank& rank, const Input& input)
      : a(rank.device(), input.a.size()),
        b(rank.device(), input.b.size()),
        c(rank.device(), input.c_bytes),
        count(input.count) {
    if (a.size() > 0) CUDA_CHECK(cudaMemcpy(a.data(), input.a.data(), a.size(), cudaMemcpyHostToDevice));
    if (b.size() > 0) CUDA_CHECK(cudaMemcpy(b.data(), input.b.data(), b.size(), cudaMemcpyHostToDevice));
    if (c.size() > 0) CUDA_CHECK(cudaMemset(c.data(), 0xFF, c.size()));  // no result, in any type
  }
  DeviceBuffer<std::byte> a, b, c;
  std::int64_t count;
};

void run_rank(Rank& rank, const Case& which, const std::vector<Input>& inputs, Answer& answer) {
  const auto place = [&](int call) { return static_cast<std::size_t>(call * rank.size() + rank.id()); };
  std::vector<std::unique_ptr<OnGpu>> buffers;
  for (int call = 0; call < which.calls; ++call)
    buffers.push_back(std::make_unique<OnGpu>(rank, inputs[place(call)]));
  const std::size_t free_before = free_memory();
  {
    const std::unique_ptr<Submission> submission(overlap_submission(rank, which.sizes, which.type));
    CUDA_CHECK(cudaDeviceSynchronize());
    rank.barrier();
    const std::vector<Link> before = links_now(rank.size());
    const std::size_t operations = vgpu::timeline().size();
    rank.barrier();
    for (const auto& own : buffers)
      submission->run({own->a.data(), own->b.data(), own->c.data(), own->count, rank.stream()});
    rank.synchronize(rank.stream());
    answer.memory[static_cast<std::size_t>(rank.id())] = free_before - free_memory();
    rank.barrier();  // before anything is freed: cudaFree waits for the GPU
    if (rank.id() == 0) {
      add_kernel_times(which.kernels, operations, answer.kernel_ns);
      answer.links = links_now(rank.size());
      for (std::size_t i = 0; i < before.size(); ++i) {
        answer.links[i].bytes -= before[i].bytes;
        answer.links[i].copies -= before[i].copies;
      }
    }
    rank.barrier();
  }
  for (int call = 0; call < which.calls; ++call) {
    const OnGpu& own = *buffers[static_cast<std::size_t>(call)];
    std::vector<std::byte>& result = answer.results[place(call)];
    result.resize(own.c.size());
    if (!result.empty())
      CUDA_CHECK(cudaMemcpy(result.data(), own.c.data(), result.size(), cudaMemcpyDeviceToHost));
  }
}

void run(int fd) {
  std::vector<Input> inputs;
  const Case which = read_case(0, inputs);
  backend::configure({.schedule = which.schedule, .machine = which.machine});
  Answer answer;
  answer.results.resize(inputs.size());
  answer.memory.resize(static_cast<std::size_t>(which.ranks));
  answer.kernel_ns.resize(static_cast<std::size_t>(which.ranks));
  if (!which.kernels.empty()) vgpu::record_timeline();  // else it is empty
  run_ranks(which.ranks, [&](Rank& rank) { run_rank(rank, which, inputs, answer); });
  write_answer(fd, answer);
}

}  // namespace
}  // namespace overlap::teaching

int main(int argc, char** argv) {
  const int fd = argc == 2 ? std::atoi(argv[1]) : -1;
  return overlap::run_and_report(
      "submission", [&] { overlap::teaching::run(fd); }, std::cerr);
}

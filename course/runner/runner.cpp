// Runs a submission: reads a case from standard input, constructs the student's algorithm on virtual GPUs,
// calls it, and writes all results as one message to the file descriptor in the first argument. This process
// is not trusted: the judge, a program without the student's code, compares the results with its own
// reference.
//
// No host waits between the calls. Each call's stream first copies A and B to the GPU, runs the call, then
// fetches C and overwrites A and B. If a call does not start after its stream's copies, or does not join its
// stream at the end, it has a wrong result or a race.
//
// Exit status as of a chapter's program: 0, 2 for a failed call, 3 for a race or a deadlock.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
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

/// The index of a link in Answer::links; index `ranks` is the host.
std::size_t link_place(int from, int to, int ranks) {
  return static_cast<std::size_t>(from * (ranks + 1) + to);
}

/// Bytes and copies of each link so far.
std::vector<Link> links_now(int ranks) {
  std::vector<Link> links(links_of(ranks));
  for (int from = 0; from <= ranks; ++from) {
    for (int to = 0; to <= ranks; ++to) {
      if (from == to) continue;
      const vgpu::Traffic moved =
          vgpu::traffic(from == ranks ? vgpu::kHost : from, to == ranks ? vgpu::kHost : to);
      links[link_place(from, to, ranks)] = {moved.bytes, moved.copies};
    }
  }
  return links;
}

/// Adds the runner's own copies in all calls: inputs to the ranks, results from them.
void add_own_copies(const Case& which, const std::vector<Input>& inputs, std::vector<Link>& links) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int rank = static_cast<int>(i) % which.ranks;
    const auto add = [&](int from, int to, std::uint64_t bytes) {
      Link& link = links[link_place(from, to, which.ranks)];
      link.bytes += bytes;
      link.copies += bytes > 0;
    };
    add(which.ranks, rank, inputs[i].a.size());
    add(which.ranks, rank, inputs[i].b.size());
    add(rank, which.ranks, inputs[i].c_bytes);
  }
}

/// Free bytes of the rank's GPU.
std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

/// Adds modelled times of the operations after the first `operations`: each GPU's kernels whose name contains
/// `name`, and the time from the first begin on any GPU to this GPU's last end.
void add_times(const std::string& name, std::size_t operations, Answer& answer) {
  const std::vector<vgpu::TimelineEntry> all = vgpu::timeline();
  double first = std::numeric_limits<double>::max();
  for (std::size_t i = operations; i < all.size(); ++i) first = std::min(first, all[i].begin);
  for (std::size_t i = operations; i < all.size(); ++i) {
    const vgpu::TimelineEntry& entry = all[i];
    const auto gpu = static_cast<std::size_t>(entry.device);
    answer.elapsed_ns[gpu] = std::max(answer.elapsed_ns[gpu], static_cast<std::uint64_t>(entry.end - first));
    if (entry.work.kind == "kernel" && entry.work.name.find(name) != std::string::npos)
      answer.kernel_ns[gpu] += static_cast<std::uint64_t>(entry.end - entry.begin);
  }
}

/// One rank's data of one call: buffers on its GPU, and pinned memory for their copies.
class CallData {
 public:
  CallData(const Rank& rank, const Input& input)
      : a_(rank.device(), input.a.size()),
        b_(rank.device(), input.b.size()),
        c_(rank.device(), input.c_bytes),
        host_a_(input.a.size()),
        host_b_(input.b.size()),
        host_c_(input.c_bytes),
        count_(input.count) {
    std::ranges::copy(input.a, host_a_.begin());
    std::ranges::copy(input.b, host_b_.begin());
    for (DeviceBuffer<std::byte>* buffer : {&a_, &b_, &c_}) {
      if (buffer->size() > 0) CUDA_CHECK(cudaMemset(buffer->data(), kNoValue, buffer->size()));
    }
    // cudaMemset may return before the memory is written. If a call fails, all is freed at once: without this
    // wait the runner would race, and that report would hide the failed call.
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  /// The arguments of the algorithm.
  Buffers buffers(cudaStream_t stream) { return {a_.data(), b_.data(), c_.data(), count_, stream}; }
  /// Enqueues the copies of A and B to the GPU.
  void write_inputs(cudaStream_t stream) {
    copy(a_.data(), host_a_.data(), a_.size(), stream);
    copy(b_.data(), host_b_.data(), b_.size(), stream);
  }
  /// Enqueues the copy of C to the host, then overwrites A and B, which belong to the caller again.
  void fetch_result_and_overwrite_inputs(cudaStream_t stream) {
    copy(host_c_.data(), c_.data(), c_.size(), stream);
    for (DeviceBuffer<std::byte>* input : {&a_, &b_}) {
      if (input->size() > 0) CUDA_CHECK(cudaMemsetAsync(input->data(), kNoValue, input->size(), stream));
    }
  }
  /// C; call it after the stream is synchronised.
  std::vector<std::byte> result() const { return {host_c_.begin(), host_c_.end()}; }

 private:
  static constexpr int kNoValue = 0xFF;  // NaN in any floating type, -1 as a row number

  static void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  }

  DeviceBuffer<std::byte> a_, b_, c_;
  PinnedBuffer<std::byte> host_a_, host_b_, host_c_;
  std::int64_t count_;
};

void run_rank(Rank& rank, const Case& which, const std::vector<Input>& inputs, Answer& answer) {
  const auto id = static_cast<std::size_t>(rank.id());
  const auto place = [&](int call) { return static_cast<std::size_t>(call * rank.size() + rank.id()); };
  std::vector<std::unique_ptr<CallData>> calls;
  for (int call = 0; call < which.calls; ++call)
    calls.push_back(std::make_unique<CallData>(rank, inputs[place(call)]));
  const std::size_t free_before = free_memory();
  {
    const std::unique_ptr<Submission> submission(overlap_submission(rank, which.sizes, which.type));
    CUDA_CHECK(cudaDeviceSynchronize());
    rank.barrier();
    std::vector<Link> before = links_now(rank.size());
    const std::size_t operations = vgpu::timeline().size();
    rank.barrier();
    const std::uint64_t waits_before = vgpu::host_waits();
    for (const auto& call : calls) {
      call->write_inputs(rank.stream());
      submission->run(call->buffers(rank.stream()));
      call->fetch_result_and_overwrite_inputs(rank.stream());
    }
    answer.host_waits[id] = vgpu::host_waits() - waits_before;
    rank.synchronize(rank.stream());
    answer.memory[id] = free_before - free_memory();
    rank.barrier();  // before anything is freed: cudaFree waits for the GPU
    if (rank.id() == 0) {
      add_times(which.kernels, operations, answer);
      add_own_copies(which, inputs, before);
      answer.links = links_now(rank.size());
      for (std::size_t i = 0; i < before.size(); ++i) {
        answer.links[i].bytes -= before[i].bytes;
        answer.links[i].copies -= before[i].copies;
      }
    }
    rank.barrier();
  }
  for (int call = 0; call < which.calls; ++call)
    answer.results[place(call)] = calls[static_cast<std::size_t>(call)]->result();
}

void run(int fd) {
  std::vector<Input> inputs;
  const Case which = read_case(0, inputs);
  backend::configure({.schedule = which.schedule, .machine = which.machine});
  Answer answer;
  answer.results.resize(inputs.size());
  for (auto* counted : {&answer.memory, &answer.host_waits, &answer.kernel_ns, &answer.elapsed_ns})
    counted->resize(static_cast<std::size_t>(which.ranks));
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

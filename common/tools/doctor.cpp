// Lists the GPUs and proves that each can copy to each other one: "it says that it has peer access" is not
// proof, so a pattern is copied and every element compared. Exit status: 0 all copies are right; 1 a copy
// arrived wrong (the pair is named); 2 a CUDA call failed; 77 there is no GPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "overlap/backend.hpp"
#include "overlap/check.hpp"
#include "overlap/error.hpp"
#include "overlap/stream.hpp"

namespace {

using overlap::DeviceBuffer;
using overlap::DeviceGuard;

constexpr std::size_t kElements = std::size_t{1} << 18;  // 1 MiB: many packets on any link, yet quick
constexpr std::uint32_t kUntouched = 0xFFFFFFFFu;        // never a value of the pattern: there, bit 31 is 0

// What element `i` holds after the copy from one GPU to another. The pair is in the value, so that data of
// another pair, or of an earlier copy, cannot pass.
std::uint32_t pattern(int from, int to, std::size_t i) {
  return (static_cast<std::uint32_t>(from & 15) << 27) | (static_cast<std::uint32_t>(to & 15) << 23) |
         static_cast<std::uint32_t>(i & ((1u << 23) - 1));
}

struct PairResult {
  bool direct = false;    // the two have peer access: the copy goes over their link, not through host memory
  std::size_t wrong = 0;  // elements that did not arrive
  std::size_t first_wrong = 0;
  std::uint32_t found = 0;  // in the first wrong one
};

// Lets `device` reach the memory of `peer`, if the two can. Fine if that was done before.
bool enable_access(int device, int peer) {
  int can = 0;
  CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  if (can == 0) return false;
  const DeviceGuard guard(device);
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
  } else {
    CUDA_CHECK(error);
  }
  return true;
}

PairResult copy_and_compare(int from, int to) {
  PairResult result;
  result.direct = enable_access(from, to) && enable_access(to, from);

  std::vector<std::uint32_t> host(kElements);
  DeviceBuffer<std::uint32_t> source(from, kElements), target(to, kElements);
  for (std::size_t i = 0; i < kElements; ++i) host[i] = pattern(from, to, i);
  CUDA_CHECK(cudaMemcpy(source.data(), host.data(), source.bytes(), cudaMemcpyHostToDevice));
  std::fill(host.begin(), host.end(), kUntouched);
  CUDA_CHECK(cudaMemcpy(target.data(), host.data(), target.bytes(), cudaMemcpyHostToDevice));

  CUDA_CHECK(cudaMemcpyPeer(target.data(), to, source.data(), from, source.bytes()));
  for (const int device : {from, to}) {  // a copy between GPUs may return before it is done
    const DeviceGuard guard(device);
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  CUDA_CHECK(cudaMemcpy(host.data(), target.data(), target.bytes(), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < kElements; ++i) {
    if (host[i] == pattern(from, to, i)) continue;
    if (result.wrong++ == 0) {
      result.first_wrong = i;
      result.found = host[i];
    }
  }
  return result;
}

void print_gpus(int count) {
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    std::printf("GPU %-12d %s, %d SMs, %.1f GiB\n", device, properties.name, properties.multiProcessorCount,
                static_cast<double>(properties.totalGlobalMem) / (1024.0 * 1024.0 * 1024.0));
  }
}

// The matrix of ordered pairs. Returns one sentence for each pair whose data arrived wrong.
std::vector<std::string> print_peer_matrix(int count) {
  std::vector<std::string> wrong;
  std::printf("copies, 1 MiB each, every element compared (no access: right, but through host memory)\n");
  std::printf("%-16s", "from \\ to");
  for (int to = 0; to < count; ++to) std::printf(" %10d", to);
  std::printf("\n");
  for (int from = 0; from < count; ++from) {
    std::printf("%-16d", from);
    for (int to = 0; to < count; ++to) {
      if (from == to) {
        std::printf(" %10s", "-");
        continue;
      }
      const PairResult pair = copy_and_compare(from, to);
      std::printf(" %10s", pair.wrong != 0 ? "WRONG" : pair.direct ? "ok" : "no access");
      std::fflush(stdout);
      if (pair.wrong != 0) {
        wrong.push_back("the copy from GPU " + std::to_string(from) + " to GPU " + std::to_string(to) +
                        " is wrong in " + std::to_string(pair.wrong) + " of " + std::to_string(kElements) +
                        " elements: element " + std::to_string(pair.first_wrong) + " is " +
                        std::to_string(pair.found) + ", not " +
                        std::to_string(pattern(from, to, pair.first_wrong)));
      }
    }
    std::printf("\n");
  }
  return wrong;
}

int examine() {
  const std::string reason = overlap::backend::unavailable();
  if (!reason.empty()) {
    std::fprintf(stderr, "doctor: skipped: %s\n", reason.c_str());
    return overlap::kExitSkipped;
  }
  int count = 0;
  CUDA_CHECK(cudaGetDeviceCount(&count));
  print_gpus(count);
  if (count == 1) return overlap::kExitOk;
  const std::vector<std::string> wrong = print_peer_matrix(count);
  for (const std::string& sentence : wrong) std::fprintf(stderr, "doctor: %s\n", sentence.c_str());
  return wrong.empty() ? overlap::kExitOk : overlap::kExitWrongResult;
}

}  // namespace

int main() {
  try {
    return examine();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "doctor: %s\n", error.what());
    return overlap::kExitFailed;
  }
}

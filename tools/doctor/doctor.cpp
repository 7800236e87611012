// Lists the GPUs and proves that each can copy to each other one: "it says that it has peer access" is not
// proof, so a pattern is copied and every element compared. Exit status: 0 all copies are right; 1 a copy
// arrived wrong (the pair is named); 2 a CUDA call failed; 77 there is no GPU.
#include <cuda_runtime.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_access.hpp"

namespace {

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
  std::printf("copies, 256 KiB each, every element compared (no access: right, but through host memory)\n");
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
      const overlap::PeerCopy pair = overlap::prove_copy(from, to);
      std::printf(" %10s", pair.wrong != 0 ? "WRONG" : pair.direct ? "ok" : "no access");
      std::fflush(stdout);
      if (pair.wrong != 0) {
        wrong.push_back("the copy from GPU " + std::to_string(from) + " to GPU " + std::to_string(to) +
                        " is wrong in " + std::to_string(pair.wrong) + " of " +
                        std::to_string(pair.elements) + " elements: element " +
                        std::to_string(pair.first_wrong) + " is " + std::to_string(pair.found) + ", not " +
                        std::to_string(pair.expected));
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
  std::printf("%-16s %s\n", "products", overlap::backend::product_method().c_str());
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

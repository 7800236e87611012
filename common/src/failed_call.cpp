#include "failed_call.hpp"

#include <cuda_runtime.h>

#include <string_view>

namespace overlap {

std::string failed_call_sentence(const char* name, const char* text, const char* call, const char* file,
                                 int line, int device) {
  std::string_view path = file;
  path.remove_prefix(path.find_last_of('/') + 1);
  return std::string(path) + ":" + std::to_string(line) + ": " + call + ": " + name + " (" + text +
         "), device " + (device < 0 ? "unknown" : std::to_string(device));
}

int device_of_failure() {
  int device = -1;
  // After some errors every further call fails too; then the device stays unknown.
  return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

}  // namespace overlap

#include "overlap/gpu/failed_call.hpp"

#include <cuda_runtime.h>

#include <string_view>

#include "overlap/gpu/backend.hpp"

namespace overlap {
namespace {

std::string sentence(const char* name, const char* text, const char* call, const char* file, int line,
                     int device) {
  std::string_view path = file;
  path.remove_prefix(path.find_last_of('/') + 1);
  return std::string(path) + ":" + std::to_string(line) + ": " + call + ": " + name +
         (text == nullptr ? "" : " (" + std::string(text) + ")") + ", device " +
         (device < 0 ? "unknown" : std::to_string(device));
}

}  // namespace

FailedCall::FailedCall(const char* name, const char* text, const char* call, const char* file, int line,
                       int device)
    : std::runtime_error(sentence(name, text, call, file, line, device)),
      device_(device),
      call_(call),
      detail_(backend::error_detail()) {}

FailedCall::FailedCall(const FailedCall& error, const std::string& where)
    : std::runtime_error(where + error.what()),
      device_(error.device_),
      call_(error.call_),
      detail_(error.detail_) {}

int device_of_failure() {
  int device = -1;
  // After some errors all further calls fail, too; then the device remains unknown.
  return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

}  // namespace overlap

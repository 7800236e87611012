#include "overlap/check_nccl.hpp"

#include <string_view>

#include "overlap/backend.hpp"

namespace overlap {
namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

std::string sentence(ncclResult_t code, const char* call, const char* file, int line, int device) {
  return std::string(file_name(file)) + ":" + std::to_string(line) + ": " + call + ": " +
         ncclGetErrorString(code) + ", device " + (device < 0 ? "unknown" : std::to_string(device));
}

std::string detail_now() {
  const std::string detail = backend::error_detail();
  return detail.empty() ? ncclGetLastError(nullptr) : detail;
}

}  // namespace

NcclError::NcclError(ncclResult_t code, const char* call, const char* file, int line, int device)
    : std::runtime_error(sentence(code, call, file, line, device)),
      code_(code),
      device_(device),
      call_(call),
      detail_(detail_now()) {}

NcclError::NcclError(const NcclError& error, const std::string& where)
    : std::runtime_error(where + error.what()),
      code_(error.code_),
      device_(error.device_),
      call_(error.call_),
      detail_(error.detail_) {}

void throw_nccl_error(ncclResult_t code, const char* call, const char* file, int line) {
  int device = -1;
  // After some errors every further call fails too; then the device stays unknown.
  if (cudaGetDevice(&device) != cudaSuccess) device = -1;
  throw NcclError(code, call, file, line, device);
}

}  // namespace overlap

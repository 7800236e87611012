#include "cublas_v2.h"
#include "engine/host/code_text.hpp"

namespace {

const vgpu::CodeText& text_of(cublasStatus_t status) {
  static constexpr vgpu::CodeText kStatuses[] = {VGPU_CUBLAS_STATUSES(VGPU_CODE_TEXT)};
  static constexpr vgpu::CodeText kUnknown = {0, "unrecognized status", "unrecognized status"};
  return vgpu::find_code(kStatuses, status, kUnknown);
}

}  // namespace

const char* cublasGetStatusName(cublasStatus_t status) { return text_of(status).name; }

const char* cublasGetStatusString(cublasStatus_t status) { return text_of(status).text; }

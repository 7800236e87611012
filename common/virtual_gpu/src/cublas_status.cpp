#include "cublas_v2.h"

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define VGPU_CASE(name, value, text) \
  case name:                         \
    return #name;
    VGPU_CUBLAS_STATUSES(VGPU_CASE)
#undef VGPU_CASE
  }
  return "unrecognized status";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
#define VGPU_CASE(name, value, text) \
  case name:                         \
    return text;
    VGPU_CUBLAS_STATUSES(VGPU_CASE)
#undef VGPU_CASE
  }
  return "unrecognized status";
}

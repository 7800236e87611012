// Refused where it is used.
#pragma once

#include "vgpu/unsupported_libraries.h"

enum cusparseStatus_t { CUSPARSE_STATUS_SUCCESS };
using cusparseHandle_t = struct cusparseContext*;
using cusparseMatDescr_t = struct cusparseMatDescr*;
using cusparseSpMatDescr_t = struct cusparseSpMatDescr*;
using cusparseDnVecDescr_t = struct cusparseDnVecDescr*;
VGPU_NO_FUNCTIONS(cusparseStatus_t, "cuSPARSE is not supported on virtual GPUs: write a kernel",
                  cusparseCreate, cusparseDestroy, cusparseCreateMatDescr, cusparseCreateCsr,
                  cusparseCreateDnVec, cusparseCreateDnMat, cusparseSpMV, cusparseSpMM)

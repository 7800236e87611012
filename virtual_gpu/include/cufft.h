// Refused where it is used.
#pragma once

#include "vgpu/unsupported_libraries.h"

enum cufftResult { CUFFT_SUCCESS };
enum cufftType { CUFFT_R2C, CUFFT_C2R, CUFFT_C2C, CUFFT_D2Z, CUFFT_Z2D, CUFFT_Z2Z };
using cufftHandle = int;
using cufftReal = float;
using cufftComplex = float2;
using cufftDoubleComplex = double2;
inline constexpr int CUFFT_FORWARD = -1, CUFFT_INVERSE = 1;
VGPU_NO_FUNCTIONS(cufftResult,
                  "cuFFT is not supported on virtual GPUs: transform on the host, or write a kernel",
                  cufftPlan1d, cufftPlan2d, cufftPlan3d, cufftPlanMany, cufftCreate, cufftMakePlan1d,
                  cufftExecC2C, cufftExecR2C, cufftExecC2R, cufftExecZ2Z, cufftExecD2Z, cufftExecZ2D,
                  cufftDestroy, cufftSetStream)

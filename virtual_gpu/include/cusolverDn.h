// Refused where it is used.
#pragma once

#include "vgpu/unsupported_libraries.h"

enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS };
using cusolverDnHandle_t = struct cusolverDnContext*;
VGPU_NO_FUNCTIONS(cusolverStatus_t, "cuSOLVER is not supported on virtual GPUs: solve on the host",
                  cusolverDnCreate, cusolverDnDestroy, cusolverDnSgetrf, cusolverDnDgetrf, cusolverDnSpotrf,
                  cusolverDnDpotrf, cusolverDnDgesvd, cusolverDnSgeqrf)

// Refused where it is used.
#pragma once

#include "vgpu/unsupported_libraries.h"

VGPU_NO_FUNCTIONS(int, "NVSHMEM is not supported on virtual GPUs: use peer access, or NCCL", nvshmem_init,
                  nvshmem_finalize, nvshmem_free, nvshmem_my_pe, nvshmem_n_pes, nvshmem_barrier_all,
                  nvshmem_int_p, nvshmem_float_p)
VGPU_NO_FUNCTIONS(void*, "NVSHMEM is not supported on virtual GPUs: use peer access, or NCCL", nvshmem_malloc,
                  nvshmem_ptr)

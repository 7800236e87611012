// Refused where it is used.
#pragma once

#include "curand.h"

struct curandState {};
using curandState_t = curandState;
using curandStateXORWOW_t = curandState;
using curandStatePhilox4_32_10_t = curandState;
VGPU_NO_FUNCTIONS(unsigned int,
                  "cuRAND is not supported on virtual GPUs: make the numbers on the host, or in the kernel "
                  "from a hash of the index",
                  curand, curand_init, curand_poisson)
VGPU_NO_FUNCTIONS(float,
                  "cuRAND is not supported on virtual GPUs: make the numbers on the host, or in the kernel "
                  "from a hash of the index",
                  curand_uniform, curand_normal)
VGPU_NO_FUNCTIONS(double,
                  "cuRAND is not supported on virtual GPUs: make the numbers on the host, or in the kernel "
                  "from a hash of the index",
                  curand_uniform_double, curand_normal_double)
VGPU_NO_FUNCTIONS(float4,
                  "cuRAND is not supported on virtual GPUs: make the numbers on the host, or in the kernel "
                  "from a hash of the index",
                  curand_uniform4, curand_normal4)
VGPU_NO_FUNCTIONS(float2,
                  "cuRAND is not supported on virtual GPUs: make the numbers on the host, or in the kernel "
                  "from a hash of the index",
                  curand_normal2)

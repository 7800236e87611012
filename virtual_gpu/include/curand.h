// Refused where it is used.
#pragma once

#include "vgpu/unsupported_libraries.h"

enum curandStatus_t { CURAND_STATUS_SUCCESS };
enum curandRngType_t {
  CURAND_RNG_PSEUDO_DEFAULT,
  CURAND_RNG_PSEUDO_XORWOW,
  CURAND_RNG_PSEUDO_MTGP32,
  CURAND_RNG_PSEUDO_MT19937,
  CURAND_RNG_PSEUDO_PHILOX4_32_10
};
using curandGenerator_t = struct curandGenerator_st*;
VGPU_NO_FUNCTIONS(curandStatus_t,
                  "cuRAND is not supported on virtual GPUs: make the numbers on the host, or in the kernel "
                  "from a hash of the index",
                  curandCreateGenerator, curandCreateGeneratorHost, curandSetPseudoRandomGeneratorSeed,
                  curandGenerateUniform, curandGenerateUniformDouble, curandGenerateNormal,
                  curandGenerateNormalDouble, curandGenerate, curandDestroyGenerator, curandSetStream)

// Warp functions: votes, matches, shuffles with a width, reductions; compaction by ballots.
#include <cstdio>

__global__ void warp_functions(int* errors) {
  const unsigned full = 0xffffffffu;
  const int lane = threadIdx.x & 31;
  int bad = 0;
  bad += __ballot_sync(full, lane % 2 == 0) != 0x55555555u;
  bad += !__any_sync(full, lane == 7) || __all_sync(full, lane < 31);
  bad += __shfl_sync(full, lane, 5) != 5 || __shfl_sync(full, lane, 1, 8) != (lane & ~7) + 1;
  bad += __shfl_up_sync(full, lane, 1) != (lane == 0 ? 0 : lane - 1);
  bad += __shfl_down_sync(full, lane, 2, 16) != ((lane & 15) < 14 ? lane + 2 : lane);
  bad += __shfl_xor_sync(full, 1.5 * lane, 16) != 1.5 * (lane ^ 16);
  bad += __match_any_sync(full, lane / 4) != 0xfu << (lane / 4 * 4);
  bad += __reduce_add_sync(full, lane) != 496 || __reduce_max_sync(full, (unsigned)lane) != 31u;
  bad += __reduce_min_sync(full, -lane) != -31 || __reduce_and_sync(full, 6u | (unsigned)lane) != 6u;
  int all_equal = 0;
  bad += __match_all_sync(full, 3, &all_equal) != full || !all_equal;
  bad += __syncthreads_count(threadIdx.x < 40) != 40 || !__syncthreads_or(threadIdx.x == 3) ||
         __syncthreads_and(threadIdx.x < 3);
  if (lane < 16) {
    bad += __ballot_sync(0x0000ffffu, 1) != 0xffffu;
    __syncwarp(0x0000ffffu);
  }
  if (bad) atomicAdd(errors, bad);
}

__global__ void compact(int* out, int* count, const int* in) {
  const int lane = threadIdx.x & 31, value = in[blockIdx.x * blockDim.x + threadIdx.x];
  const unsigned votes = __ballot_sync(~0u, value > 0);
  int first = 0;
  if (lane == 0) first = atomicAdd(count, __popc(votes));
  first = __shfl_sync(~0u, first, 0);
  if (value > 0) out[first + __popc(votes & ((1u << lane) - 1))] = value;
}

int main() {
  int* p;
  cudaMallocManaged(&p, 2048 * sizeof(int));
  for (int i = 0; i < 2048; ++i) p[i] = 0;
  int *errors = p, *count = p + 1, *in = p + 512, *out = p + 1024, sum = 0, expected = 0;
  for (int i = 0; i < 512; ++i) {
    in[i] = i * 7 % 11 - 5;
    if (in[i] > 0) expected += in[i];
  }
  warp_functions<<<1, 64>>>(errors);
  compact<<<4, 128>>>(out, count, in);
  cudaDeviceSynchronize();
  for (int i = 0; i < *count; ++i) sum += out[i];
  const bool ok = *errors == 0 && sum == expected;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}

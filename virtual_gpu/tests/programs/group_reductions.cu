// Cooperative groups: a reduction for any group, tiles of several sizes, scans, coalesced threads.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>

namespace cg = cooperative_groups;
using namespace cooperative_groups;

__device__ int reduce_sum(thread_group g, int* temp, int val) {
  int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    temp[lane] = val;
    g.sync();
    if (lane < i) val += temp[lane + i];
    g.sync();
  }
  return val;
}

__global__ void sum_kernel_block(int* sum, const int* input, int n) {
  extern __shared__ int temp[];
  int mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) mine += input[i];
  auto g = this_thread_block();
  int block_sum = reduce_sum(g, temp, mine);
  if (g.thread_rank() == 0) atomicAdd(sum, block_sum);
}

template <int tile_sz>
__global__ void sum_kernel_tile(int* errors, int* sum, const int* input) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<tile_sz>(block);
  int v = input[block.thread_rank()], by_hand = v;
  for (int i = tile.size() / 2; i > 0; i /= 2) by_hand += tile.shfl_down(by_hand, i);
  int total = cg::reduce(tile, v, cg::plus<int>());
  if (tile.thread_rank() == 0 && total != by_hand) atomicAdd(errors, 1);
  if (tile.thread_rank() == 0) atomicAdd(sum, total);
  int before = cg::exclusive_scan(tile, 1), to_here = cg::inclusive_scan(tile, v);
  if (before != (int)tile.thread_rank()) atomicAdd(errors, 1);
  if (tile.thread_rank() == tile.size() - 1 && to_here != total) atomicAdd(errors, 1);
  if (tile.meta_group_size() != blockDim.x / tile_sz || tile.any(v < 0) || !tile.all(v >= 0))
    atomicAdd(errors, 1);
  auto pair = cg::tiled_partition<2>(tile);
  if (pair.shfl_xor(threadIdx.x, 1) != (threadIdx.x ^ 1)) atomicAdd(errors, 1);
  if (tile.ballot(tile.thread_rank() == 1) != 2) atomicAdd(errors, 1);
}

__device__ int add_aggregated(int* counter) {
  auto active = cg::coalesced_threads();
  int first = 0;
  if (active.thread_rank() == 0) first = atomicAdd(counter, active.size());
  return active.shfl(first, 0) + active.thread_rank();
}
__global__ void filter(int* out, int* count, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 3 == 0) out[add_aggregated(count)] = in[i];
}

int main() {
  const int n = 1024, threads = 128;
  int *data, *results;
  cudaMallocManaged(&data, 2 * n * sizeof(int));
  cudaMallocManaged(&results, 8 * sizeof(int));
  for (int i = 0; i < n; ++i) data[i] = i;
  for (int i = 0; i < 8; ++i) results[i] = 0;
  sum_kernel_block<<<n / threads, threads, threads * sizeof(int)>>>(&results[0], data, n);
  sum_kernel_tile<32><<<1, threads>>>(&results[1], &results[2], data);
  sum_kernel_tile<8><<<1, threads>>>(&results[1], &results[2], data);
  filter<<<n / threads, threads>>>(data + n, &results[3], data, n);
  cudaDeviceSynchronize();
  bool ok = results[0] == n * (n - 1) / 2 && results[1] == 0 && results[2] == threads * (threads - 1);
  int sum = 0;
  for (int i = 0; i < results[3]; ++i) sum += data[n + i];
  ok = ok && results[3] == 342 && sum == 3 * 341 * 342 / 2;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}

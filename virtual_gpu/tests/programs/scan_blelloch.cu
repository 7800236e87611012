// Prefix sums: Hillis and Steele's, and Blelloch's without bank conflicts; dynamic shared memory at file
// scope.
#include <cstdio>
#include <numeric>
#include <vector>

#define NUM_BANKS 32
#define LOG_NUM_BANKS 5
#define CONFLICT_FREE_OFFSET(n) ((n) >> LOG_NUM_BANKS)

extern __shared__ int temp[];

__global__ void hillis_steele(int* out, const int* in, int n) {
  int thid = threadIdx.x, pout = 0, pin = 1;
  temp[thid] = thid > 0 ? in[thid - 1] : 0;
  __syncthreads();
  for (int offset = 1; offset < n; offset <<= 1) {
    pout = 1 - pout;
    pin = 1 - pout;
    temp[pout * n + thid] = temp[pin * n + thid] + (thid >= offset ? temp[pin * n + thid - offset] : 0);
    __syncthreads();
  }
  out[thid] = temp[pout * n + thid];
}

__global__ void blelloch(int* out, const int* in, int n) {
  int thid = threadIdx.x, offset = 1;
  int ai = thid, bi = thid + n / 2;
  temp[ai + CONFLICT_FREE_OFFSET(ai)] = in[ai];
  temp[bi + CONFLICT_FREE_OFFSET(bi)] = in[bi];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (thid < d) {
      int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
      temp[b + CONFLICT_FREE_OFFSET(b)] += temp[a + CONFLICT_FREE_OFFSET(a)];
    }
    offset *= 2;
  }
  if (thid == 0) temp[n - 1 + CONFLICT_FREE_OFFSET(n - 1)] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
      int t = temp[a + CONFLICT_FREE_OFFSET(a)];
      temp[a + CONFLICT_FREE_OFFSET(a)] = temp[b + CONFLICT_FREE_OFFSET(b)];
      temp[b + CONFLICT_FREE_OFFSET(b)] += t;
    }
  }
  __syncthreads();
  out[ai] = temp[ai + CONFLICT_FREE_OFFSET(ai)];
  out[bi] = temp[bi + CONFLICT_FREE_OFFSET(bi)];
}

int main() {
  const int n = 256;
  std::vector<int> in(n), out(n), expected(n);
  std::iota(in.begin(), in.end(), 1);
  std::exclusive_scan(in.begin(), in.end(), expected.begin(), 0);
  int *d_in, *d_out;
  cudaMalloc(&d_in, n * sizeof(int));
  cudaMalloc(&d_out, n * sizeof(int));
  cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  hillis_steele<<<1, n, 2 * n * sizeof(int)>>>(d_out, d_in, n);
  cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost);
  bool ok = out == expected;
  blelloch<<<1, n / 2, (n + n / NUM_BANKS) * sizeof(int)>>>(d_out, d_in, n);
  cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost);
  ok = ok && out == expected;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}

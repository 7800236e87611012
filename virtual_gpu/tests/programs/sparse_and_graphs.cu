// CSR times vector by threads and by warps; a breadth-first search.
#include <climits>
#include <cstdio>
#include <vector>

__global__ void spmv_scalar(int rows, const int* row, const int* col, const float* val, const float* x,
                            float* y) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float dot = 0;
  for (int k = row[r]; k < row[r + 1]; ++k) dot += val[k] * x[col[k]];
  y[r] = dot;
}

__global__ void spmv_vector(int rows, const int* row, const int* col, const float* val, const float* x,
                            float* y) {
  int r = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize, lane = threadIdx.x % warpSize;
  if (r >= rows) return;
  float dot = 0;
  for (int k = row[r] + lane; k < row[r + 1]; k += warpSize) dot += __ldg(&val[k]) * __ldg(x + col[k]);
  for (int offset = 16; offset; offset >>= 1) dot += __shfl_xor_sync(0xffffffff, dot, offset);
  if (lane == 0) y[r] = dot;
}

__global__ void bfs(int n, int level, const int* row, const int* col, int* distance, int* changed) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n || distance[v] != level) return;
  for (int k = row[v]; k < row[v + 1]; ++k) {
    if (atomicCAS(&distance[col[k]], INT_MAX, level + 1) == INT_MAX) atomicExch(changed, 1);
  }
}

template <class T>
T* upload(const std::vector<T>& host) {
  T* device = nullptr;
  cudaMalloc(&device, host.size() * sizeof(T));
  cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

int main() {
  const int n = 300;
  std::vector<int> row{0}, col;
  std::vector<float> val, x(n), y(n), expected(n);
  for (int r = 0; r < n; ++r) {
    for (int k = 1; k <= 1 + r % 40; ++k) {
      col.push_back((r * 3 + k * k) % n);
      val.push_back(k % 5);
    }
    row.push_back(col.size());
    x[r] = r % 13;
  }
  for (int r = 0; r < n; ++r)
    for (int k = row[r]; k < row[r + 1]; ++k) expected[r] += val[k] * x[col[k]];
  int *d_row = upload(row), *d_col = upload(col);
  float *d_val = upload(val), *d_x = upload(x), *d_y = upload(y);
  spmv_scalar<<<(n + 127) / 128, 128>>>(n, d_row, d_col, d_val, d_x, d_y);
  cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost);
  bool ok = y == expected;
  spmv_vector<<<(n * 32 + 127) / 128, 128>>>(n, d_row, d_col, d_val, d_x, d_y);
  cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost);
  ok = ok && y == expected;

  std::vector<int> distance(n, INT_MAX), reference(n, INT_MAX), queue{0};
  reference[0] = distance[0] = 0;
  for (size_t head = 0; head < queue.size(); ++head) {
    for (int k = row[queue[head]]; k < row[queue[head] + 1]; ++k) {
      if (reference[col[k]] != INT_MAX) continue;
      reference[col[k]] = reference[queue[head]] + 1;
      queue.push_back(col[k]);
    }
  }
  int *d_distance = upload(distance), *d_changed, changed = 1;
  cudaMalloc(&d_changed, sizeof(int));
  for (int level = 0; changed; ++level) {
    cudaMemset(d_changed, 0, sizeof(int));
    bfs<<<(n + 127) / 128, 128>>>(n, level, d_row, d_col, d_distance, d_changed);
    cudaMemcpy(&changed, d_changed, sizeof(int), cudaMemcpyDeviceToHost);
  }
  cudaMemcpy(distance.data(), d_distance, n * sizeof(int), cudaMemcpyDeviceToHost);
  ok = ok && distance == reference;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}

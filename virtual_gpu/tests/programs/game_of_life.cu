// A game of life: unsigned char cells, periodic borders, two buffers, the same rule on the host.
#include <cstdio>
#include <cstring>

#define W 40
#define H 24

__host__ __device__ unsigned char rule(const unsigned char* cells, int x, int y) {
  int alive = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (dx || dy) alive += cells[(y + dy + H) % H * W + (x + dx + W) % W];
  return alive == 3 || (alive == 2 && cells[y * W + x]);
}

__global__ void generation(const unsigned char* cells, unsigned char* next) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < W && y < H) next[y * W + x] = rule(cells, x, y);
}

int main() {
  unsigned char cells[W * H], next[W * H], result[W * H], *d[2];
  for (int i = 0; i < W * H; ++i) cells[i] = i * i % 7 == 1;
  for (auto& buffer : d) cudaMalloc(&buffer, sizeof(cells));
  cudaMemcpy(d[0], cells, sizeof(cells), cudaMemcpyHostToDevice);
  const dim3 block(16, 8), grid((W + block.x - 1) / block.x, (H + block.y - 1) / block.y);
  for (int step = 0; step < 10; ++step) {
    generation<<<grid, block>>>(d[step % 2], d[(step + 1) % 2]);
    for (int i = 0; i < W * H; ++i) next[i] = rule(cells, i % W, i / W);
    memcpy(cells, next, sizeof(cells));
  }
  cudaMemcpy(result, d[0], sizeof(result), cudaMemcpyDeviceToHost);
  const bool ok = memcmp(result, cells, sizeof(cells)) == 0;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}

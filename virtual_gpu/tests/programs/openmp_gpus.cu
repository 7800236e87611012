// One OpenMP thread for each GPU: regions, barriers, single, critical, reductions, loops.
#include <omp.h>
#include <stdio.h>

#include <vector>

__global__ void fill(int* data, int value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = value;
}

int main() {
  int gpus = 0, n = 1000;
  cudaGetDeviceCount(&gpus);
  std::vector<int> first(gpus), doubled(gpus);
  std::vector<int*> memory(gpus);
  int total = 0, entered = 0, singles = 0, from_neighbour = 0;
  omp_set_num_threads(gpus);
#pragma omp parallel reduction(+ : total)
  {
    int thread = omp_get_thread_num();
    cudaSetDevice(thread % gpus);
    int* d;
    cudaMalloc(&d, n * sizeof(int));
    fill<<<(n + 255) / 256, 256>>>(d, thread + 1, n);
    std::vector<int> h(n);
    cudaMemcpy(h.data(), d, n * sizeof(int), cudaMemcpyDeviceToHost);
    for (int x : h) total += x;
    first[thread] = h[0];
    memory[thread] = d;
#pragma omp barrier
#pragma omp critical
    {
      ++entered;
      from_neighbour += first[(thread + 1) % omp_get_num_threads()];
    }
#pragma omp single
    ++singles;
#pragma omp atomic
    entered += 1;
    cudaFree(memory[thread]);
  }
  long sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < 1000; ++i) sum += i;
#pragma omp parallel for num_threads(gpus)
  for (int i = 0; i < gpus; ++i) {
    cudaSetDevice(i);
    int device = -1;
    cudaGetDevice(&device);
    doubled[i] = 2 * device;
  }
  bool ok = total == n * gpus * (gpus + 1) / 2 && entered == 2 * gpus && singles == 1 && sum == 499500;
  ok = ok && from_neighbour == gpus * (gpus + 1) / 2 && omp_get_num_threads() == 1 && omp_get_wtime() > 0;
  for (int i = 0; i < gpus; ++i) ok = ok && doubled[i] == 2 * i;
  printf("%s\n", ok ? "PASS" : "FAIL");
  return !ok;
}

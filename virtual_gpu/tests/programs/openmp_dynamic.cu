// A dynamic OpenMP schedule: works on real GPUs, rejected by name on virtual ones.
#include <cstdio>

int main() {
  int sum = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
  for (int i = 0; i < 100; ++i) sum += i;
  puts(sum == 4950 ? "PASS" : "FAIL");
  return sum != 4950;
}

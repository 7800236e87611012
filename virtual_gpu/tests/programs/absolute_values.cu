// Overloads that CUDA offers without an include: abs, min and max of floats and of mixed types, isnan and
// related functions.
#include <cstdio>

__global__ void compute(float* out, float x, double y, unsigned int u, int i) {
  out[0] = abs(x);
  out[1] = abs(y);
  out[2] = max(i, u);
  out[3] = min(x, y);
  out[4] = isnan(x) + 2 * isinf(x / 0.0f) + 4 * isfinite(x) + 8 * signbit(x);
  out[5] = max(x, 2.5);
  out[6] = abs(i);
  out[7] = min(1.0f, abs(-0.75f));
}

int main() {
  float *d_out, out[8];
  cudaMalloc(&d_out, sizeof(out));
  compute<<<1, 1>>>(d_out, -0.5f, -0.25, 2u, -1);
  cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost);
  const float expected[8] = {0.5f, 0.25f, 4294967295.0f, -0.5f, 14.0f, 2.5f, 1.0f, 0.75f};
  bool ok = abs(-0.5f) == 0.5f && abs(-0.25) == 0.25;
  for (int i = 0; i < 8; ++i) {
    if (out[i] != expected[i]) printf("%d: %g, expected %g\n", i, out[i], expected[i]);
    ok = ok && out[i] == expected[i];
  }
  puts(ok ? "PASS" : "FAIL");
  return ok ? 0 : 1;
}

// Intrinsics and functions of CUDA's math library.
#include <math_constants.h>

#include <cstdio>

#define EXPECT(condition) \
  if (!(condition)) printf("line %d: %s\n", __LINE__, #condition), *failures = *failures + 1

__device__ bool near(double a, double b) { return fabs(a - b) <= 1e-5 * (1 + fabs(b)); }

__global__ void test(int* failures, float x, double y, int n) {
  EXPECT(near(__sinf(x), sin(0.5)) && near(__expf(x), exp(0.5)) && near(__powf(x, 3.0f), 0.125));
  EXPECT(near(rsqrtf(x), 1 / sqrt(0.5)) && near(rcbrt(y), 0.5) && near(sinpi(y), 0.0) &&
         near(cospif(x), 0.0));
  EXPECT(near(exp10f(x), 3.16227766) && near(normcdf(0.0), 0.5) && near(rhypot(3.0, 4.0), 0.2));
  EXPECT(__fadd_rz(16777216.0f, 1.0f) == 16777216.0f && __fadd_ru(16777216.0f, 1.0f) == 16777218.0f);
  EXPECT(__fmul_rn(x, 4.0f) == 2.0f && __fmaf_rn(x, 2.0f, 1.0f) == 2.0f && __fdividef(1.0f, x) == 2.0f);
  EXPECT(__fsqrt_rn(4.0f) == 2.0f && __frcp_rn(x) == 2.0f && __saturatef(1.5f) == 1.0f);
  EXPECT(__float2int_rn(2.5f) == 2 && __float2int_rz(-2.7f) == -2 && __float2int_ru(2.1f) == 3);
  EXPECT(__float2int_rz(3e10f) == 2147483647 && __float2uint_rz(-1.0f) == 0 &&
         __double2int_rn(1e300) == 2147483647);
  EXPECT(__float_as_int(1.0f) == 0x3f800000 && __int_as_float(0x3f800000) == 1.0f);
  EXPECT(__double_as_longlong(1.0) == 0x3ff0000000000000ll && __double2hiint(1.0) == 0x3ff00000);
  EXPECT(__hiloint2double(0x3ff00000, 0) == 1.0 && __int2float_rn(16777217) == 16777216.0f);
  EXPECT(__popc(0xff) == 8 && __popcll(~0ull) == 64 && __clz(1) == 31 && __ffs(8) == 4 && __ffsll(0) == 0);
  EXPECT(__brev(1u) == 0x80000000u && __brevll(1ull) == 1ull << 63 &&
         __byte_perm(0x03020100, 0x07060504, 0x7531) == 0x07050301);
  EXPECT(__mulhi(n << 16, 1 << 16) == 8 && __umulhi(0xffffffffu, 2u) == 1 && __mul24(-3, n) == -24);
  EXPECT(__umul64hi(~0ull, 2ull) == 1 && __hadd(3, 4) == 3 && __rhadd(3, 4) == 4);
  EXPECT(__funnelshift_l(0x80000000u, 1u, 4) == 24u && __dp4a(0x01010101, 0x04030201, 5) == 15);
  float s, c;
  sincosf(x, &s, &c);
  EXPECT(near(s * s + c * c, 1.0));
  __sincosf(x, &s, &c);
  EXPECT(near(s, sin(0.5)) && near(norm3df(1.0f, 2.0f, 2.0f), 3.0) && near(fdividef(1.0f, 4.0f), 0.25));
  EXPECT(near(CUDART_PI_F, CUDART_PI) && isinf(CUDART_INF_F) && near(erff(x), 0.5204998778) &&
         near(lgamma(5.0), log(24.0)));
  EXPECT(near(fmaf(x, x, x), 0.75) && near(cbrtf(27.0f), 3.0) && near(hypot(3.0f, 4.0f), 5.0) &&
         fmodf(5.5f, 2.0f) == 1.5f);
}

int main() {
  int* failures;
  cudaMallocManaged(&failures, sizeof(int));
  *failures = 0;
  test<<<1, 1>>>(failures, 0.5f, 8.0, 8);
  const cudaError_t error = cudaDeviceSynchronize();
  const bool ok = error == cudaSuccess && *failures == 0;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}

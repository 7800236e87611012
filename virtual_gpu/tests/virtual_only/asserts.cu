// A failed assert() in a kernel stops the kernel with CUDA's error, not the process.
#include "virtual_test.hpp"

#undef NDEBUG  // this build disables assert()
#include <cassert>

namespace virtual_only {
namespace {

using AssertsTest = VirtualTest;

template <class T>
__global__ void require_small(const T* values, T* out) {
  assert(values[threadIdx.x] < 7);
  out[threadIdx.x] = values[threadIdx.x];
}

TEST_F(AssertsTest, ThatHoldChangeNothing) {
  const int* values = device_words(40, 6);
  int* out = device_words(40, 0);
  require_small<<<1, 40>>>(values, out);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(word(out), 6);
}

TEST_F(AssertsTest, ThatDoNotHoldStopTheKernelAndNameThreadAndLine) {
  int* values = device_words(40, 6);
  set<int><<<1, 1>>>(values + 33, 7);
  require_small<<<2, 40>>>(values, device_words(40, 0));
  expect_failure(cudaDeviceSynchronize(), cudaErrorAssert,
                 {"require_small", "thread (33,0,0)", "asserts.cu:14", "values[threadIdx.x] < 7"});
}

TEST_F(AssertsTest, OfTheHostEndTheProcess) {
  const int two = 2;
  EXPECT_DEATH(assert(two == 3), "Assertion `two == 3' failed");
}

}  // namespace
}  // namespace virtual_only

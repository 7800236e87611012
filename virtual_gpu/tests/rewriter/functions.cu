// Execution spaces of functions and lambdas.
#include "expect.cuh"

#include <cassert>

__device__ int plain(int x) { return x + 1; }
__host__ __device__ constexpr int both(int x) { return x + 1; }
static __device__ __forceinline__ int inlined(int x) { return x + 1; }
__device__ __noinline__ int not_inlined(int x) { return x + 1; }
__attribute__((__noinline__)) __device__ int not_inlined_by_attribute(int x) { return x + 1; }
[[nodiscard]] __device__ int with_attribute(int x) { return x + 1; }
extern __device__ int declared(int (*)[2], const char* text, ...);
template <typename T = int, bool B = (1 > 0)>
__device__ auto templated(T x) -> T {
  return x + B;
}
int __device__ type_first(int x) { return x + 1; }

struct Number {
  __host__ __device__ explicit Number(int x) : value{x} {}
  __host__ __device__ ~Number() {}
  __device__ Number& operator+=(const Number& other) {
    value += other.value;
    return *this;
  }
  __device__ operator int() const { return value; }
  __device__ int operator()(int x) const noexcept { return value + x; }
  friend __device__ bool operator<(const Number& a, const Number& b) { return a.value < b.value; }
  static __device__ int make(int x) { return x + 1; }
  Number(const Number&) = default;
  int value;
};

__global__ void call_all(int* cell) {
  assert(cell != nullptr);
  Number n(1);
  n += Number(1);
  *cell = plain(0) + both(0) + inlined(0) + not_inlined(0) + not_inlined_by_attribute(0) + with_attribute(0) +
          templated(0) + type_first(0) + Number::make(0);
  if (Number(1) < n) *cell += n + n(1);
  auto lambda = [=](int x) { return x + 100; };
  *cell += lambda(0);
}

int main() {
  Cell c;
  call_all<<<1, 1>>>(c);
  EXPECT(c.value() == 9 + 5 + 100);
  static_assert(both(1) == 2);
  return failures();
}

// Every way to declare and define a kernel.
#include "expect.cuh"

__global__ void declared_first(int* cell, int value);
template <typename T>
__global__ void declared_template(int* cell, T value);

static __global__ void static_kernel(int* cell) { *cell += 1; }
__global__ static void static_behind(int* cell) { *cell += 1; }
void __global__ void_first(int* cell) { *cell += 1; }
extern "C" __global__ void c_kernel(int* cell) { *cell += 1; }
extern "C" {
__global__ void c_block_kernel(int* cell) { *cell += 1; }
}
[[maybe_unused]] __global__ void with_attribute(int* cell) { *cell += 1; }
namespace {
__global__ void unnamed_namespace(int* cell) { *cell += 1; }
}  // namespace
namespace outer::inner {
__global__ void nested_namespace(int* cell) { *cell += 1; }
}  // namespace outer::inner

constexpr int kThreads = 64;
__global__ __launch_bounds__(kThreads) void bounds_before(int* cell) { *cell += 1; }
__global__ void __launch_bounds__(kThreads * 2, 1) bounds_behind(int* cell) { *cell += 1; }
__launch_bounds__(128) __global__ void bounds_first(int* cell) { *cell += 1; }
template <int Threads>
__global__ void __launch_bounds__(Threads > 32 ? Threads : 32, (Threads > 32 ? 1 : 2))
    bounds_template(int* cell) {
  *cell += 1;
}

template <typename T, typename = decltype(T(0) < T(1)), int N = (1 > 0)>
__global__ void many_template_parameters(int* cell) {
  *cell += N;
}
template <typename T>
requires(sizeof(T) > 1) __global__ void constrained(int* cell) { *cell += 1; }
template <typename... T>
__global__ void pack(int* cell, T... values) {
  *cell += (values + ... + 0);
}

template <typename T>
__global__ void specialised(int* cell) {
  *cell += 100;
}
template <>
__global__ void specialised<int>(int* cell) {
  *cell += 1;
}
template <typename T>
__global__ void instantiated(int* cell, T value) {
  *cell += value;
}
template __global__ void instantiated<int>(int*, int);

class Friendly {
  friend __global__ void friend_kernel(int* cell, Friendly friendly);
  template <typename T>
  friend __global__ void friend_template(int* cell, T friendly);

 private:
  int value_ = 1;
};
__global__ void friend_kernel(int* cell, Friendly friendly) { *cell += friendly.value_; }
template <typename T>
__global__ void friend_template(int* cell, T friendly) {
  *cell += friendly.value_;
}

#define MAKE_KERNEL(name, amount) \
  __global__ void name(int* cell) { *cell += amount; }
MAKE_KERNEL(made_by_macro, 1)
MAKE_KERNEL(made_beside_it, 1)

struct Limits {
  int low;
  const int high;
};

// Parameters are the kernel's own copies, as in any function; a body may return early.
__global__ void body(int* const __restrict__ cell, int value, const Limits limits, int /*unnamed*/,
                     [[maybe_unused]] int unused) {
  if (value > limits.high) return;
  const auto clamp = [=](int x) { return x < limits.low ? limits.low : x; };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    value += i;
  }
#pragma unroll 2
  for (int i = 0; i < 4; ++i) value -= i;
  static_assert(sizeof("}") == 2);
  struct Pair {
    int a, b;
  } pair{clamp(value), '}'};
  *cell += pair.a;
}

__global__ void declared_first(int* cell, int value) { *cell += value; }
template <typename T>
__global__ void declared_template(int* cell, T value) {
  *cell += value;
}

int main() {
  Cell c;
  static_kernel<<<1, 1>>>(c);
  static_behind<<<1, 1>>>(c);
  void_first<<<1, 1>>>(c);
  c_kernel<<<1, 1>>>(c);
  c_block_kernel<<<1, 1>>>(c);
  with_attribute<<<1, 1>>>(c);
  unnamed_namespace<<<1, 1>>>(c);
  outer::inner::nested_namespace<<<1, 1>>>(c);
  EXPECT(c.value() == 8);

  Cell bounds;
  bounds_before<<<1, 1>>>(bounds);
  bounds_behind<<<1, 1>>>(bounds);
  bounds_first<<<1, 1>>>(bounds);
  bounds_template<64><<<1, 1>>>(bounds);
  EXPECT(bounds.value() == 4);

  Cell templates;
  many_template_parameters<int><<<1, 1>>>(templates);
  constrained<int><<<1, 1>>>(templates);
  pack<<<1, 1>>>(templates, 1, short{2}, 3L);
  pack<<<1, 1>>>(templates);
  specialised<int><<<1, 1>>>(templates);
  specialised<char><<<1, 1>>>(templates);
  instantiated<<<1, 1>>>(templates, 1);
  EXPECT(templates.value() == 1 + 1 + 6 + 1 + 100 + 1);

  Cell others;
  friend_kernel<<<1, 1>>>(others, Friendly());
  friend_template<<<1, 1>>>(others, Friendly());
  made_by_macro<<<1, 1>>>(others);
  made_beside_it<<<1, 1>>>(others);
  declared_first<<<1, 1>>>(others, 1);
  declared_template<<<1, 1>>>(others, 1);
  EXPECT(others.value() == 6);

  Cell bodies;
  body<<<1, 1>>>(bodies, 1, {3, 9}, 0, 0);
  body<<<1, 1>>>(bodies, 10, {3, 9}, 0, 0);
  EXPECT(bodies.value() == 3);
  return failures();
}

// Every way to write a launch. `shape` stores 100 x blocks + threads, so a cell shows the configuration and
// the arguments.
#include "expect.cuh"

#include <cstddef>

// The layout of each launch is part of the case.
// clang-format off

struct Small {};
template <typename... T>
struct Box {
  static constexpr int kSize = sizeof...(T);
};
template <typename T>
int two() {
  return 2;
}
template <int N, int M>
int sum() {
  return N + M;
}

// Adds to the cell, so that a duplicate launch is noticed.
__global__ void shape(int* cell, const int* ignored = nullptr, int extra = 0) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *cell += static_cast<int>(100 * gridDim.x + blockDim.x) + extra;
  if (ignored != nullptr) *cell = -1;
}

namespace detail {
template <typename T>
__global__ void typed(int* cell, T value) {
  if (threadIdx.x == 0) *cell += static_cast<int>(sizeof(T)) * 10 + static_cast<int>(value);
}
template <bool Flag, typename T = Small>
__global__ void flagged(int* cell) {
  if (threadIdx.x == 0) *cell += Flag ? 2 : 1;
}
}  // namespace detail

using Kernel = void (*)(int*, const int*, int);
template <typename T>
Kernel kernel_for(T) {
  return shape;
}
struct Table {
  Kernel kernel = shape;
  Kernel entries[2] = {shape, shape};
  static Kernel pick(int) { return shape; }
  void launch(int* cell) { this->kernel<<<4, 1>>>(cell, 0, 0); }
};

#define LAUNCH(kernel, ...) kernel<<<__VA_ARGS__>>>
#define GRID_AND_BLOCK 3, 2
#define CHEVRONS <<<2, 2>>>
#define LAUNCH_ON(cell) shape<<<2, 3>>>(cell)

void configurations() {
  Cell c[8];
  cudaStream_t stream = nullptr;
  const int n = 3, m = 5;
  shape<<<2, 4>>>(c[0]);
  shape<<<dim3(2, 1), dim3{4, 1, 1}, 16>>>(c[1]);
  shape<<<n < m ? 2 : 1, 8 >> 1, 0, stream>>>(c[2]);
  shape<<<two<Box<Box<int, int>>>(), sum<1, 3>()>>>(c[3]);
  shape<<<(two<Box<Box<int>>>()), 2 + Box<Small, Box<Small>>::kSize>>>(c[4]);
  shape<<<[&] { return dim3(n - 1, 1); }(), 4, 0, 0>>>(c[5]);
  shape<<<two<Box<Box<Box<int>>>>(), 4>>>(c[6]);
  shape
      <<<dim3(2),
         4,
         0>>>
      (c[7],
       NULL);
  for (int i = 0; i < 7; ++i) EXPECT(c[i].value() == 204);
  EXPECT(c[7].value() == 204);
}

void arguments() {
  Cell c[6];
  shape<<<1, 1>>>(c[0], 0, 1);
  shape<<<1, 1>>>(c[1], NULL, '\'' - 38);
  shape<<<1, 1>>>(c[2], {}, sum<0, 1>());
  shape<<<1, 1>>>(c[3], nullptr, [](int a, int b) { return a < b; }(1, 2));
  shape<<<1, 1>>>(c[4], nullptr, 1'000 - 999);
  shape<<<1, 1>>>(c[5], nullptr, sizeof(R"(>>>" <<<)") == 9 && sizeof("<<<\">>>") == 8);
  for (auto& cell : c) EXPECT(cell.value() == 102);
}

void callees() {
  Cell c[12];
  Table table;
  Kernel pointer = shape;
  ::shape<<<4, 1>>>(c[0]);
  (*pointer)<<<4, 1>>>(c[1], nullptr, 0);
  pointer<<<4, 1>>>(c[2], nullptr, 0);
  table.kernel<<<4, 1>>>(c[3], nullptr, 0);
  (&table)->entries[1]<<<4, 1>>>(c[4], nullptr, 0);
  table.launch(c[5]);
  kernel_for<Box<int, Small>>({})<<<4, 1>>>(c[6], nullptr, 0);
  Table::pick(1)<<<4, 1>>>(c[7], nullptr, 0);
  (shape)<<<4, 1>>>(c[8]);
  for (int i = 0; i < 9; ++i) EXPECT(c[i].value() == 401);

  detail::typed<<<1, 1>>>(c[9], 2.0);
  detail::typed<char><<<1, 1>>>(c[9], 2);
  detail::template typed<short><<<1, 1>>>(c[9], 2);
  EXPECT(c[9].value() == 82 + 12 + 22);
  constexpr int n = 5;
  detail::flagged<(n > 4)><<<1, 1>>>(c[10]);
  detail::flagged<(n < 4), Box<Box<Small>>><<<1, 1>>>(c[10]);
  detail::flagged<n == 5, Box<int, Box<Small>>>
      <<<1, 1>>>(c[10]);
  EXPECT(c[10].value() == 2 + 1 + 2);
  detail::flagged<
      (n > 4),
      Small>
      <<<1, 1>>>(c[11]);
  EXPECT(c[11].value() == 2);
}

void returned(int* cell) { return shape<<<1, 1>>>(cell); }

template <typename T>
void in_template(int* cell, T value) {
  detail::typed<T><<<1, 1>>>(cell, value);
  if (sizeof(T) == 1) detail::typed<<<1, 1>>>(cell, value);
}

void statements() {
  Cell c[10];
  returned(c[0]);
  if (c[0]) shape<<<1, 1>>>(c[1]);
  else shape<<<2, 2>>>(c[1]);
  if (!c[0]) ::shape<<<2, 2>>>(c[2]);
  else (*shape)<<<1, 1>>>(c[2], 0, 0);
  if (Kernel k = shape; k) (*k)<<<1, 1>>>(c[3], nullptr, 0);
  switch (1) {
    case 0: shape<<<2, 2>>>(c[4]); break;
    case 1: shape<<<1, 1>>>(c[4]); break;
    default: shape<<<3, 3>>>(c[4]);
  }
  c[0] ? shape<<<1, 1>>>(c[5]) : shape<<<2, 2>>>(c[5]);
  for (int i = 0; i < 1; ++i) (*shape)<<<1, 1>>>(c[6], 0, 0);
  do shape<<<1, 1>>>(c[7]);
  while (false);
  goto label;
label:
  shape<<<1, 1>>>(c[8]), void();
  [](int* cell) { shape<<<1, 1>>>(cell); }(c[9]);
  for (auto& cell : c) EXPECT(cell.value() == 101);
}

void macros_and_templates() {
  Cell c[6];
  LAUNCH(shape, 2, 3)(c[0]);
  LAUNCH(shape, GRID_AND_BLOCK)(c[1]);
  shape CHEVRONS(c[2]);
  LAUNCH_ON(c[3]);
  in_template<double>(c[4], 1);
  in_template<char>(c[4], 1);
  EXPECT(c[0].value() == 203);
  EXPECT(c[1].value() == 302);
  EXPECT(c[2].value() == 202);
  EXPECT(c[3].value() == 203);
  EXPECT(c[4].value() == 81 + 11 + 11);
  // A launch inside another launch's kernel, configuration and arguments.
  auto pick = [&](int) { return Kernel(shape); };
  pick([&] { shape<<<1, 1>>>(c[5]); return 0; }())<<<
      [&] { shape<<<1, 1>>>(c[5]); return 3; }(), 2>>>(
      c[5], nullptr, [&] { shape<<<1, 1>>>(c[5]); return 0; }());
  EXPECT(c[5].value() == 302 + 3 * 101);
}

// __LINE__ inside a launch over several lines, and after it.
void lines() {
  Cell c[2];
  const int before = __LINE__;
  detail::flagged<(__LINE__ > 0 ||
                   __LINE__ > 0),
                  Small><<<
      1,
      dim3(NULL == nullptr ? 1 : 2)>>>(
      c[0]); const int last = __LINE__;
  shape<<<1,
          1>>>(c[1], NULL,
               __LINE__);
  const int behind_markers = __builtin_LINE();
  detail::flagged<
      (5 > 4),
      Small><<<1,
               1>>>(
      c[0]); const int behind_plain = __builtin_LINE();
  EXPECT(behind_markers == last + 4);
  EXPECT(behind_plain == behind_markers + 5);
  EXPECT(last == before + 6);
  EXPECT(c[1].value() == 101 + last + 3);
}

int main() {
  configurations();
  arguments();
  callees();
  statements();
  macros_and_templates();
  lines();
  return failures();
}

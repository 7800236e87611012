// Shared memory, static and dynamic. One thread per block writes and reads, so no barrier is needed.
#include "expect.cuh"

template <typename A, typename B>
struct Pair {
  A a;
  B b;
};
constexpr int kTile = 4;

__global__ void declarations(int* cell) {
  __shared__ int one;
  __shared__ float tile[kTile][kTile + 1], row[kTile], *into_row;
  static __shared__ int other;
  __shared__ alignas(16) int aligned[4];
  alignas(32) __shared__ int aligned_first[2];
  __shared__ __align__(16) char aligned_old[16];
  volatile __shared__ int volatile_first;
  int __shared__ type_first[2];
  __shared__ Pair<int, Pair<char, int>> pairs[2], pair;
  __shared__ const int* pointer;
  __shared__ int(*to_array)[2];
  __shared__ unsigned long long int many_words;
  __shared__ struct { int x, y; } unnamed;
  one = 1;
  tile[3][4] = 1;
  row[3] = 1;
  into_row = row;
  other = aligned[3] = aligned_first[1] = type_first[1] = 1;
  volatile_first = 1;
  aligned_old[15] = 1;
  pairs[1].b.b = pair.a = 1;
  pointer = &one;
  to_array = &type_first;
  many_words = 1;
  unnamed.y = 1;
  *cell = one + static_cast<int>(tile[3][4] + row[3] + into_row[3]) + other + aligned[3] + aligned_first[1] +
          aligned_old[15] + volatile_first + type_first[1] + pairs[1].b.b + pair.a + *pointer +
          (*to_array)[1] + static_cast<int>(many_words) + unnamed.y;
  static_assert(sizeof(tile) == kTile * (kTile + 1) * sizeof(float));
  if (reinterpret_cast<unsigned long long>(aligned) % 16 != 0) *cell = -1;
  if (reinterpret_cast<unsigned long long>(aligned_first) % 32 != 0) *cell = -2;
}

// Two declarations of one name on the same line are two variables; one declaration in a loop is one.
// clang-format off
__global__ void scopes(int* cell) {
  { __shared__ int x; x = 1; *cell = x; } { __shared__ int x; x = 2; *cell += x; }
  { __shared__ int a; __shared__ int b; a = 1; b = 2; *cell += 10 * a + b; }
  for (int i = 0; i < 2; ++i) {
    __shared__ int kept;
    kept = i == 0 ? 5 : kept + 1;
    *cell += kept;
  }
  if (*cell != 0) {
    __shared__ int in_branch;
    in_branch = 100;
    *cell += in_branch;
  }
}
// clang-format on

// A device function's variable is the same in each call, and separate in each instance of a template.
template <typename T>
__device__ T* scratch() {
  __shared__ T elements[kTile];
  return elements;
}
template <typename T, int N>
__global__ void in_template(int* cell) {
  __shared__ T elements[N];
  for (int i = 0; i < N; ++i) elements[i] = static_cast<T>(i);
  scratch<T>()[0] = 7;
  scratch<Pair<T, T>>()[0].a = 8;
  auto last = [&] { return elements[N - 1]; };
  *cell = static_cast<int>(last() + scratch<T>()[0]);
}

// clang-format off
#define TILE(type, name, size) __shared__ type name[size]
__global__ void by_macro(int* cell) {
  TILE(int, a, 2); TILE(int, b, 2);
  a[1] = 1;
  b[1] = 2;
  *cell = a[1] + b[1];
}
// clang-format on

__global__ void dynamic(int* cell) {
  extern __shared__ int elements[];
  elements[63] = 3;
  *cell += elements[63];
}
template <typename T>
__global__ void dynamic_template(int* cell) {
  alignas(16) extern __shared__ unsigned char bytes[];
  T* typed = reinterpret_cast<T*>(bytes);
  typed[1] = 4;
  *cell += static_cast<int>(typed[1]);
}
__global__ void dynamic_aligned(int* cell) {
  extern __shared__ __align__(16) volatile float floats[];
  floats[2] = 5;
  *cell += static_cast<int>(floats[2]);
}

int main() {
  Cell c[6];
  declarations<<<1, 1>>>(c[0]);
  EXPECT(c[0].value() == 16);
  scopes<<<1, 1>>>(c[1]);
  EXPECT(c[1].value() == 3 + 12 + 5 + 6 + 100);
  in_template<float, 4><<<1, 1>>>(c[2]);
  EXPECT(c[2].value() == 10);
  in_template<int, 9><<<1, 1>>>(c[3]);
  EXPECT(c[3].value() == 15);
  by_macro<<<1, 1>>>(c[4]);
  EXPECT(c[4].value() == 3);
  dynamic<<<1, 1, 64 * sizeof(int)>>>(c[5]);
  dynamic_template<double><<<1, 1, 64>>>(c[5]);
  dynamic_aligned<<<1, 1, 64>>>(c[5]);
  EXPECT(c[5].value() == 12);
  return failures();
}

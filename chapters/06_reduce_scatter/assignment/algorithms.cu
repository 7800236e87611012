// What of this chapter only enqueues, and so can be judged by its calls (tools/teaching/replay); and its
// kernels, which the judge launches in the place of a student's own.
#include <stdexcept>

#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "overlap/program/algorithms.hpp"

namespace overlap::reduce_scatter {
namespace {

template <Floating T>
using Rotating = RotatingAccumulators<T>;
template <Floating T>
using RotatingF32 = RotatingAccumulators<T, float>;

/// The baseline's cost card, which is the same for all ranks.
template <Floating T>
class Baseline : public MultiplyThenScatter<T> {
 public:
  using MultiplyThenScatter<T>::MultiplyThenScatter;
  static Cost cost(MatmulShape whole, int ranks, int /*rank*/) {
    return MultiplyThenScatter<T>::cost(whole, ranks);
  }
};

/// The cost card of rotating accumulators, but of the bytes only those that copies move.
template <template <Floating> class Algorithm>
AlgorithmEntry rotating_entry(const char* name, Start start) {
  AlgorithmEntry entry = algorithm_entry<Algorithm>(name, Sharing::kScatter, start);
  entry.cost = [start](MatmulShape whole, int ranks, int rank, ElementType type) {
    return visit_type<__half, __nv_bfloat16, float>(type, [&](auto tag) {
      using Type = Algorithm<typename decltype(tag)::type>;
      const Pass pass = ranks < 4 ? Pass::kCopy : Pass::kStore;
      Cost cost = Type::cost(whole, ranks, rank, start);
      const int previous = (rank + ranks - 1) % ranks;
      cost.bytes_out = Type::bytes_by_copy(whole, ranks, rank, start, pass);
      cost.bytes_in = Type::bytes_by_copy(whole, ranks, previous, start, pass);
      return cost;
    });
  };
  return entry;
}

// ---- Kernels: their names as virtual GPUs print them, and what they touch ---------------------------------

template <typename T>
std::string type_name() {
  if constexpr (std::same_as<T, __half>) return "__half";
  if constexpr (std::same_as<T, __nv_bfloat16>) return "__nv_bfloat16";
  if constexpr (std::same_as<T, float>) return "float";
}

/// So many elements, and packs of kWidth of them, from these addresses on.
void check_packs(std::uint64_t elements, std::uint64_t packs, std::uint64_t width,
                 std::initializer_list<std::uint64_t> offsets) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  if (elements > kMost || packs > elements / width)
    throw std::invalid_argument("it has more packs than elements");
  for (const std::uint64_t offset : offsets) {
    if (packs > 0 && offset % 16 != 0) throw std::invalid_argument("its packs are not aligned to 16 bytes");
  }
}

template <Floating Accumulator, Floating Sum>
KernelEntry add_entry() {
  return {.name = "overlap::reduce_scatter::add [with Accumulator = " + type_name<Accumulator>() +
                  "; Sum = " + type_name<Sum>() + "; int64_t = long int]",
          .parameters = "pppnn",
          .memory =
              [](const std::vector<std::uint64_t>& a) {
                check_packs(a[3], a[4], kPackWidth<Sum>, {a[0], a[1], a[2]});
                return std::vector<KernelMemory>{{0, a[3] * sizeof(Accumulator)},
                                                 {1, a[3] * sizeof(Accumulator)},
                                                 {2, a[3] * sizeof(Sum)}};
              },
          .launch =
              [](const KernelCall& call) {
                const auto& a = call.arguments;
                add<<<call.grid, call.block, 0, call.stream>>>(
                    reinterpret_cast<const Accumulator*>(a[0]), reinterpret_cast<const Accumulator*>(a[1]),
                    reinterpret_cast<Sum*>(a[2]), static_cast<std::int64_t>(a[3]),
                    static_cast<std::int64_t>(a[4]));
              }};
}

template <Floating T>
KernelEntry sum_entry() {
  return {.name = "overlap::reduce_scatter::sum_slots [with T = " + type_name<T>() + "; int64_t = long int]",
          .parameters = "pnnpnn",
          .memory =
              [](const std::vector<std::uint64_t>& a) {
                check_packs(a[4], a[5], kPackWidth<T>, {a[0], a[3], a[1] * sizeof(T)});
                constexpr std::uint64_t kMostSlots = 16, kMostPlace = std::uint64_t{1} << 40;
                if (a[2] > kMostSlots || a[1] > kMostPlace)
                  throw std::invalid_argument("it has more than 16 slots");
                const std::uint64_t last = a[2] == 0 ? 0 : (a[2] - 1) * a[1] + a[4];
                return std::vector<KernelMemory>{{0, last * sizeof(T)}, {3, a[4] * sizeof(T)}};
              },
          .launch =
              [](const KernelCall& call) {
                const auto& a = call.arguments;
                sum_slots<<<call.grid, call.block, 0, call.stream>>>(
                    reinterpret_cast<const T*>(a[0]), static_cast<std::int64_t>(a[1]), static_cast<int>(a[2]),
                    reinterpret_cast<T*>(a[3]), static_cast<std::int64_t>(a[4]),
                    static_cast<std::int64_t>(a[5]));
              }};
}

}  // namespace
}  // namespace overlap::reduce_scatter

const overlap::ChapterAlgorithms& overlap::chapter_algorithms() {
  using namespace reduce_scatter;
  static const ChapterAlgorithms known = {
      .algorithms = {algorithm_entry<Baseline>("nccl", Sharing::kScatter),
                     rotating_entry<Rotating>("rotating", Start::kFirstPartial),
                     rotating_entry<RotatingF32>("rotating_f32", Start::kFirstPartial),
                     rotating_entry<Rotating>("rotating_zero_filled", Start::kZeros),
                     algorithm_entry<AllToAllSum>("all_to_all", Sharing::kScatter)},
      .kernels = {add_entry<__half, __half>(), add_entry<__nv_bfloat16, __nv_bfloat16>(),
                  add_entry<float, float>(), add_entry<float, __half>(), add_entry<float, __nv_bfloat16>(),
                  sum_entry<__half>(), sum_entry<__nv_bfloat16>(), sum_entry<float>()}};
  return known;
}

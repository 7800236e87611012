// A chapter's algorithms on dense products by name, for programs that do not know their types: the one that
// writes down the calls of a student's solution, and the one that makes these calls again.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "overlap/data/cost.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap {

/// An algorithm that has been made for a rank, a shape and a type of elements.
class AnyAlgorithm {
 public:
  virtual ~AnyAlgorithm() = default;
  /// As the algorithm's own run(): only enqueues.
  virtual void run(const void* a, const void* b, void* c, cudaStream_t stream) = 0;
};

/// How A, B and C are shared out over the ranks.
enum class Sharing {
  kGather,   ///< rows of A, columns of B, columns of C: GatherProblem
  kScatter,  ///< columns of A, rows of B, rows of C: ScatterProblem
};

/// An algorithm of a chapter.
struct AlgorithmEntry {
  std::string name;  ///< as --only takes it
  Sharing sharing;   ///< of its operands and its result
  /// Makes it for a rank: collective, as the algorithm's constructor.
  std::function<std::unique_ptr<AnyAlgorithm>(Rank&, MatmulShape, ElementType)> make;
  /// The cost card of (shape, ranks, rank, type); of the bytes only those that copies and NCCL move, where
  /// kernels store others over the links.
  std::function<Cost(MatmulShape, int, int, ElementType)> cost;
};

/// What a kernel's launch is made with.
struct KernelCall {
  dim3 grid;                             ///< in blocks
  dim3 block;                            ///< in threads
  cudaStream_t stream;                   ///< that it goes to
  std::vector<std::uint64_t> arguments;  ///< one for each parameter: a pointer's address, a number
};

/// Memory that a kernel touches from one of its pointers on.
struct KernelMemory {
  std::size_t parameter;  ///< which pointer
  std::uint64_t bytes;    ///< from there on
};

/// A kernel of a chapter that can be launched again from its name and its arguments.
struct KernelEntry {
  std::string name;        ///< as virtual GPUs print it: "overlap::add [with T = __half]"
  std::string parameters;  ///< a letter for each: p a pointer, n a number
  /// What it touches with these arguments (of pointers: the offset from their memory's begin). Throws
  /// std::invalid_argument for numbers that it cannot be launched with.
  std::function<std::vector<KernelMemory>(const std::vector<std::uint64_t>&)> memory;
  std::function<void(const KernelCall&)> launch;  ///< enqueues it
};

/// What chapters/NN_name/assignment/algorithms.cu says of its chapter.
struct ChapterAlgorithms {
  std::vector<AlgorithmEntry> algorithms;  ///< those that only enqueue
  std::vector<KernelEntry> kernels = {};   ///< the chapter's own that these launch
};

/// Defined once in a program: by the unit of its chapter.
const ChapterAlgorithms& chapter_algorithms();

/// An Algorithm<T>(rank, whole, more...) as AnyAlgorithm, whatever T is.
template <template <Floating> class Algorithm, Floating T, typename... More>
std::unique_ptr<AnyAlgorithm> make_any(Rank& rank, MatmulShape whole, More... more) {
  class Any final : public AnyAlgorithm {
   public:
    Any(Rank& of, MatmulShape shape, More... rest) : algorithm_(of, shape, rest...) {}
    void run(const void* a, const void* b, void* c, cudaStream_t stream) override {
      algorithm_.run(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), stream);
    }

   private:
    Algorithm<T> algorithm_;
  };
  return std::make_unique<Any>(rank, whole, more...);
}

/// The entry of an algorithm Algorithm<T>(rank, whole, more...) with cost(whole, ranks, rank, more...).
template <template <Floating> class Algorithm, typename... More>
AlgorithmEntry algorithm_entry(std::string name, Sharing sharing, More... more) {
  const auto with_type = [](ElementType type, const auto& action) {
    return visit_type<__half, __nv_bfloat16, float>(type, action);
  };
  return {.name = std::move(name),
          .sharing = sharing,
          .make =
              [=](Rank& rank, MatmulShape whole, ElementType type) {
                return with_type(type, [&](auto tag) {
                  return make_any<Algorithm, typename decltype(tag)::type>(rank, whole, more...);
                });
              },
          .cost =
              [=](MatmulShape whole, int ranks, int rank, ElementType type) {
                return with_type(type, [&](auto tag) {
                  return Algorithm<typename decltype(tag)::type>::cost(whole, ranks, rank, more...);
                });
              }};
}

}  // namespace overlap

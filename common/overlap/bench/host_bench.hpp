// The bench of a program without ranks: one host thread multiplies matrices in its own memory on several
// GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "overlap/bench/bench.hpp"
#include "overlap/gpu/shape.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// C = A B in int, on different numbers of GPUs: the first variant is what the others' speed is compared
/// with. A result is compared with the CPU's, and C is poisoned before. The last timed call multiplies -A:
/// what the calls before it have left on a GPU must not pass for its result.
class HostBench final : public Bench {
 public:
  /// A and B are drawn from `seed`. Throws UsageError if sums of k products would not fit an int.
  HostBench(MatmulShape shape, std::uint64_t seed, const BenchSettings& settings);

  /// Adds the variant if it was chosen: a class with a constructor Algorithm(gpus, shape), whose run(a, b, c)
  /// enqueues one call and synchronize() waits for it, and which says of each GPU its columns() of B and C,
  /// and kernel_ms() of the last call.
  template <typename Algorithm>
  void add_algorithm(const std::string& name, int gpus) {
    add_variant(name, [&] {
      auto algorithm = std::make_shared<Algorithm>(gpus, shape_);
      Variant variant;
      variant.call = [this, algorithm](cudaStream_t) {
        algorithm->run(matrices_->a.data(), matrices_->b.data(), matrices_->c.data());
        algorithm->synchronize();
      };
      variant.phases = [algorithm] {
        std::vector<Phase> kernels;
        for (int gpu = 0; gpu < algorithm->gpus(); ++gpu)
          kernels.push_back({"kernel_ms_gpu" + std::to_string(gpu), algorithm->kernel_ms(gpu)});
        return kernels;
      };
      columns_.emplace_back();
      for (int gpu = 0; gpu < gpus; ++gpu) columns_.back().push_back(algorithm->columns(gpu));
      return completed(std::move(variant), gpus);
    });
  }

 private:
  struct Matrices {
    PinnedBuffer<int> a, b, c;
    std::vector<int> expected;
  };

  Variant completed(Variant variant, int gpus);  // by what all variants have in common
  void negate();
  void fill(Data data) override;
  std::string all_right(const std::string& names) const override;
  std::string above_table() const override;
  ResultTable table() const override;

  MatmulShape shape_;
  std::uint64_t seed_;
  std::optional<Matrices> matrices_;
  std::vector<std::vector<Range>> columns_;  // of each variant
};

/// "1 GPU", "4 GPUs".
std::string gpus_text(int gpus);

}  // namespace overlap

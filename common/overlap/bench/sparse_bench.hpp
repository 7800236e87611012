// The bench of the chapters on sparse gradients.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "overlap/bench/bench.hpp"
#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// What a SparseBench knows without the types of its numbers.
class SparseBenchBase : public Bench {
 public:
  Rank& rank() const { return ranked(); }           ///< who runs this
  const SparseData& data() const { return data_; }  ///< what is added up

 protected:
  SparseBenchBase(Rank& rank, const SparseData& data, const BenchSettings& settings, RowPattern pattern,
                  IndexType index)
      : Bench(&rank, settings),
        data_(data),
        entries_(static_cast<std::int64_t>(data.entries(rank.id()).size())),
        pattern_(pattern),
        index_(index) {}

  /// Throws WrongResult if there are any.
  static void require_no_lost_rows(const std::string& name, int lost_rows);
  /// Throws Skip if so many entries have one row that no exact sum of them is left in bf16.
  void require_exact_sums_in_16_bits() const;

  const SparseData& data_;  ///< the gradients of all ranks
  std::int64_t entries_;    ///< of this rank

 private:
  bool results_move() const override { return true; }
  std::string all_right(const std::string& names) const override;
  std::string above_table() const override;
  ResultTable table() const override;

  RowPattern pattern_;
  IndexType index_;
};

/// A sparse all-reduce of any class, as the bench calls it: so what the bench does with each is compiled
/// once, in the library.
template <SparseIndex Index, Floating T>
class SparseRunner {
 public:
  virtual ~SparseRunner() = default;
  virtual SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries,
                                   cudaStream_t stream) = 0;
  virtual std::vector<Phase> phases() const = 0;   ///< of the last call
  virtual int lost_rows(cudaStream_t stream) = 0;  ///< in all calls so far
  virtual SparsePromise promise(const SparseData& data, int rank) const = 0;
};

/// Several ways to add up one sparse gradient, timed by the host. Each is verified by its second call, on
/// exact numbers after real ones, and by its last timed call, on negated real ones: what earlier calls have
/// left behind must not pass for its result.
template <SparseIndex Index, Floating T>
class SparseBench final : public SparseBenchBase {
 public:
  /// For the variants of the settings, on `data`, which outlives it and has its rows by that pattern.
  SparseBench(Rank& rank, const SparseData& data, const BenchSettings& settings, RowPattern pattern);

  /// Adds the variant if it was chosen: `make` constructs it, on all ranks, as a std::unique_ptr to an object
  /// with run(), phases() and lost_rows() as SparseAllReduce has them. If that throws Skip, the variant is
  /// left out and the reason printed.
  template <typename Make>
  void add(const std::string& name, const Make& make) {
    using Algorithm = typename decltype(make())::element_type;
    add_runner(name, exact_values<Algorithm>(),
               [&] { return std::make_unique<RunnerOf<Algorithm>>(make()); });
  }

  /// The same for a class with a constructor Algorithm(rank, shape, more...).
  template <template <SparseIndex, Floating> class Algorithm, typename... More>
  void add_algorithm(const std::string& name, const More&... more) {
    add(name, [&] { return std::make_unique<Algorithm<Index, T>>(rank(), data_.shape(), more...); });
  }

 private:
  using Runner = SparseRunner<Index, T>;
  template <typename Algorithm>
  class RunnerOf final : public Runner {
   public:
    explicit RunnerOf(std::unique_ptr<Algorithm> algorithm) : algorithm_(std::move(algorithm)) {}
    SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries,
                             cudaStream_t stream) override {
      return algorithm_->run(indices, values, entries, stream);
    }
    std::vector<Phase> phases() const override { return algorithm_->phases(); }
    int lost_rows(cudaStream_t stream) override { return algorithm_->lost_rows(stream); }
    SparsePromise promise(const SparseData& data, int rank) const override {
      return promise_of(*algorithm_, data, rank);
    }

   private:
    std::unique_ptr<Algorithm> algorithm_;
  };

  void add_runner(const std::string& name, SparseValues exact,
                  const std::function<std::unique_ptr<Runner>()>& make);
  void fill(Data data) override;
  void poison(const SparseRows<Index, T>& result) const;
  void fill_values(SparseValues values);
  void compare(const std::string& name, const SparseRows<Index, T>& result, SparseValues values,
               const SparsePromise& promise) const;

  DeviceBuffer<Index> indices_;
  DeviceBuffer<T> values_;
};

// All there are: compiled with the library.
extern template class SparseBench<std::int32_t, float>;
extern template class SparseBench<std::int32_t, __half>;
extern template class SparseBench<std::int32_t, __nv_bfloat16>;
extern template class SparseBench<std::int64_t, float>;
extern template class SparseBench<std::int64_t, __half>;
extern template class SparseBench<std::int64_t, __nv_bfloat16>;

/// Throws UsageError if so many entries have one row that no exact sum of them is left in the settings' type:
/// then nothing could be verified.
void require_exact_sums(const SparseData& data, const BenchSettings& settings);

/// Throws UsageError if a rank's gradient, its duplicates included, is larger than the memory of GPU 0, or if
/// the rows of all ranks need more than the host has. Call it before they are drawn, which takes time in
/// proportion.
void require_room(SparseShape shape, int ranks, RowPattern pattern, std::int64_t duplicates, ElementType type,
                  IndexType index);

}  // namespace overlap

// The frame of the chapters on sparse gradients: verifies every variant, then times them all in turns, and
// prints and saves one table. A chapter's main.cu adds its variants to it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "overlap/bench/results.hpp"
#include "overlap/bench/settings.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/data/sparse_data.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/phase_clock.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// Where a variant's time goes, by the medians of its timed calls.
struct SparseTimes {
  std::string name;  ///< of the variant
  /// One call, from a barrier of the hosts until the last of them knows that its GPU is done.
  Summary host_ms;
  /// Its phases, each on the slowest rank; of the last one, "all_reduce", see below.
  std::vector<Phase> phases;
  /// How much later the last rank came to the all-reduce than the first. "all_reduce" is the shortest of any
  /// rank: that of the last one, which waits for nobody.
  double skew_ms = 0;

  /// The time of a phase; 0 if there is none of that name.
  double phase_ms(const std::string& name) const;
};

/// What a SparseBench knows without the types of its numbers.
class SparseBenchBase {
 public:
  Rank& rank() const { return rank_; }                         ///< who runs this
  const SparseData& data() const { return data_; }             ///< what is added up
  const BenchSettings& settings() const { return settings_; }  ///< what is asked for

  /// Prints sizes and table.
  void print() const;
  /// Adds one result for each variant, also for those that were left out.
  void save(Results& results) const;
  /// The times of a variant, none if it did not run.
  const SparseTimes* times_of(const std::string& name) const;

 protected:
  /// See SparseBench.
  SparseBenchBase(Rank& rank, const SparseData& data, const BenchSettings& settings);
  ~SparseBenchBase();

  /// One variant's times over all ranks: of its calls with the host, and of each call's phases. Collective.
  SparseTimes summary(const std::string& name, const std::vector<double>& host_ms,
                      const std::vector<std::vector<Phase>>& phases);

  Rank& rank_;                      ///< who measures
  const SparseData& data_;          ///< the gradients of all ranks
  const BenchSettings settings_;    ///< a copy: a caller may pass a temporary
  std::int64_t entries_;            ///< of this rank
  std::vector<SparseTimes> times_;  ///< by variant, in the order in which they were added
  Regime regime_;                   ///< in which they were taken
  std::vector<std::pair<std::string, std::string>> skipped_;  ///< variants that were left out, and why
};

/// Verifies and times several ways to add up one sparse gradient. All members are collective, and called by
/// each rank in the same order. Rank 0 prints.
template <SparseIndex Index, Floating T>
class SparseBench : public SparseBenchBase {
 public:
  /// One way to do it.
  class Variant {
   public:
    virtual ~Variant() = default;
    /// One call: a rank's entries, on its GPU, to the rows of all ranks. What is still enqueued at its end is
    /// on the stream.
    virtual SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries,
                                     cudaStream_t stream) = 0;
    /// Of the last call, after the stream was waited for.
    virtual std::vector<Phase> phases() const = 0;
    /// How many rows found no place in any call so far. Waits for the stream.
    virtual int lost_rows(cudaStream_t stream) = 0;
    /// What its result has of rows that add up to zero.
    virtual ZeroRows zero_rows() const = 0;
  };

  /// For the variants of the settings, on `data`, which outlives it.
  SparseBench(Rank& rank, const SparseData& data, const BenchSettings& settings);
  ~SparseBench();

  /// Adds the variant if it was chosen: `make` constructs it, on all ranks. If that throws Skip, the variant
  /// is left out and the reason printed.
  void add(const std::string& name, const std::function<std::unique_ptr<Variant>()>& make);

  /// The same for a class with a constructor Algorithm(rank, shape, more...) and run(), phases() and
  /// lost_rows() as SparseAllReduce has them.
  template <template <SparseIndex, Floating> class Algorithm, typename... More>
  void add_algorithm(const std::string& name, const More&... more) {
    add(name,
        [&] { return variant_of(std::make_unique<Algorithm<Index, T>>(rank_, data_.shape(), more...)); });
  }

  /// An object of such a class as a variant.
  template <typename Algorithm>
  std::unique_ptr<Variant> variant_of(std::unique_ptr<Algorithm> algorithm) const {
    return std::make_unique<VariantOf<Algorithm>>(std::move(algorithm));
  }

  /// Runs each variant on real numbers, then on exact ones, and compares every row number and every value of
  /// the second result, on every rank. Prints how many are right. Throws WrongResult; Skip if nothing is left
  /// to run. Without --check nothing is compared.
  void verify();
  /// Times all variants in turns on real numbers, and compares the result of each one's last timed call,
  /// before which the result of the call before it is poisoned. A variant whose calls take long runs less
  /// often than --iterations, at least 3 times (but not more often than that). With --timeline each variant
  /// then runs once more, as a section of it.
  void time();

 private:
  template <typename Algorithm>
  class VariantOf final : public Variant {
   public:
    explicit VariantOf(std::unique_ptr<Algorithm> algorithm) : algorithm_(std::move(algorithm)) {}
    SparseRows<Index, T> run(const Index* indices, const T* values, std::int64_t entries,
                             cudaStream_t stream) override {
      return algorithm_->run(indices, values, entries, stream);
    }
    std::vector<Phase> phases() const override { return algorithm_->phases(); }
    int lost_rows(cudaStream_t stream) override { return algorithm_->lost_rows(stream); }
    ZeroRows zero_rows() const override {
      return DropsZeroRows<Algorithm> ? ZeroRows::kDropped : ZeroRows::kKept;
    }

   private:
    std::unique_ptr<Algorithm> algorithm_;
  };

  struct Named {
    std::string name;
    std::unique_ptr<Variant> variant;
  };

  void fill(SparseValues kind);
  SparseRows<Index, T> call(const Named& variant);
  double timed_call(const Named& variant, SparseRows<Index, T>* result);
  void poison(const SparseRows<Index, T>& result);
  void compare(const Named& variant, const SparseRows<Index, T>& result, SparseValues kind);

  DeviceBuffer<Index> indices_;
  DeviceBuffer<T> values_;
  std::vector<Named> variants_;
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

}  // namespace overlap

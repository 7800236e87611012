// The one frame of all benches: verifies every variant, then times them all interleaved, and prints and saves
// one table. Each kind of bench defines the problem, the comparison of results and the rows of the table.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "overlap/bench/gpu_clocks.hpp"
#include "overlap/bench/result_table.hpp"
#include "overlap/bench/settings.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap {

/// What a variant computes: decides how it is verified and which columns it has.
enum class Role {
  kGemmOnly,       ///< the rank's product alone, which DenseBench adds itself
  kAlgorithm,      ///< the whole problem, verified
  kProduct,        ///< the same result without the transfers, verified
  kPart,           ///< a part of the work; writes no result
  kCommunication,  ///< the transfers alone; writes no result
};

/// "algorithm", "product", "part", "communication_only" or "gemm_only": as reports and --cost have it.
const char* name_of(Role role);

/// Verifies and times several ways to solve one problem. All members are collective, and called by each rank
/// in the same order. Rank 0 prints.
class Bench {
 public:
  virtual ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  const BenchSettings& settings() const { return settings_; }  ///< what is asked for

  /// Runs each variant on exact data and compares every element; then prints how many are right. Throws
  /// WrongResult; Skip if nothing is left to run that writes a result. Without --check nothing is compared.
  void verify();
  /// Times all variants interleaved on random numbers, and compares the result of each one's last timed call,
  /// before which the result of the call before is poisoned. With --timeline each variant then runs once
  /// more, as a section of it. `back_to_back`: see time_variants().
  void time(bool back_to_back = true);
  /// Runs each variant that writes a result once more, and calls `look` with its name. After time().
  void look_at_results(const std::function<void(const std::string& name)>& look);
  void print() const;
  /// Adds one result for each variant, also for those that were left out.
  void save(Results& results) const;
  /// Verifies and times. If nothing is left to verify, nothing is timed, and the results only say why.
  void measure(Results& results, bool back_to_back = true);
  void run(Results& results);

  /// The times of a variant, none if it did not run.
  const VariantTimes* times_of(const std::string& name) const;

 protected:
  /// The numbers that are added up or multiplied.
  enum class Data {
    kExact,   ///< the result has to be right to the last bit
    kRandom,  ///< random ones, which are timed
  };
  /// One way to solve the problem.
  struct Variant : TimedVariant {
    Role role = Role::kAlgorithm;                 ///< what it does
    std::function<void(Data data)> poison = {};   ///< overwrites all results of earlier calls
    std::function<void(Data data)> compare = {};  ///< throws WrongResult; empty if it writes no result
    std::string section = {};                     ///< in the timeline; empty: its name
  };

  /// Of `rank`, or of a program without ranks.
  Bench(Rank* rank, const BenchSettings& settings) : settings_(settings), rank_(rank) {}

  /// Adds what `make` returns, on all ranks, if the variant of that name was chosen. If that throws Skip, the
  /// variant is left out and the reason printed.
  void add_variant(const std::string& name, const std::function<Variant()>& make);
  /// Adds one that nobody has to choose.
  void add_always(Variant variant) { variants_.push_back(std::move(variant)); }

  /// Writes the data. Waits.
  virtual void fill(Data data) = 0;
  /// Whether a variant says only after a call where it has its result: then each has one before it is
  /// verified.
  virtual bool results_move() const { return false; }
  /// The sentence that all of these are right, without a full stop.
  virtual std::string all_right(const std::string& names) const = 0;
  /// What stands above the table, and the table.
  virtual std::string above_table() const { return "\n"; }
  virtual ResultTable table() const = 0;  ///< see above_table()

  const std::vector<Variant>& variants() const {
    return variants_;
  }  ///< in the order in which they were added
  const std::vector<VariantTimes>& times() const { return times_; }       ///< of variants(), after time()
  bool is_first() const { return rank_ == nullptr || rank_->id() == 0; }  ///< who prints
  Rank& ranked() const { return *rank_; }                                 ///< of a program with ranks

 private:
  void run_once(const Variant& variant);
  void save_skipped(Results& results) const;

  const BenchSettings settings_;  // a copy: a caller may pass a temporary
  Rank* rank_;
  std::vector<Variant> variants_;
  std::vector<VariantTimes> times_;
  GpuClocks clocks_;                                          // at which they were taken
  std::vector<std::pair<std::string, std::string>> skipped_;  // variants that were left out, and why
};

}  // namespace overlap

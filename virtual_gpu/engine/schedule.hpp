// The schedule of a run: its seed and random choices, its hash, and whether anything has happened.
#pragma once

#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace vgpu {

/// Read and written by all that takes part in steps. Scheduler runs the steps.
class Schedule {
 public:
  explicit Schedule(std::optional<std::uint64_t> seed) : seed_(seed), generator_(seed.value_or(0)) {}

  bool random() const { return seed_.has_value(); }
  /// With a seed: a random number below `bound`. Without: 0.
  std::uint64_t pick(std::uint64_t bound) { return random() && bound > 1 ? generator_() % bound : 0; }

  /// With a seed: 0 to `count` - 1 in a random order. Without: nothing, which stands for their own order.
  std::vector<std::uint32_t> random_order(std::size_t count) {
    if (!random()) return {};
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0u);
    for (std::size_t n = count; n > 1; --n) std::swap(numbers[n - 1], numbers[pick(n)]);
    return numbers;
  }

  /// Mixes a choice into the hash, FNV-1a. Modelled times stay out of it: they depend on how the compiler cut
  /// a kernel into basic blocks.
  void mix(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) hash_ = (hash_ ^ (value >> (8 * byte) & 0xff)) * 1099511628211u;
  }
  std::uint64_t hash() const { return hash_; }
  /// "schedule 17, hash 7a42e5de413b0806", or "schedule time order, ...".
  std::string describe() const {
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_));
    return "schedule " + (random() ? std::to_string(*seed_) : "time order") + ", hash " + hash;
  }

  void step_at(double time) { now_ = time; }
  /// Modelled time of the last step, ns.
  double now() const { return now_; }

  /// Something happened that a polling block may be waiting for.
  void note_progress() { ++progress_; }
  /// Grows with everything that happens but polls.
  std::uint64_t progress() const { return progress_; }
  void count_poll() {
    if (progress_ != polled_progress_) polls_ = computations_ = computed_at_ = 0;
    polled_progress_ = progress_;
    ++polls_;
  }
  /// The last poll is of a block that computes, or that waits for time to pass: it may go on without news.
  /// Not for ever: `weight` says how soon such polls, too, are called a deadlock.
  void note_computation(std::int64_t weight) {
    computations_ += weight;
    computed_at_ = polls_;
  }
  /// So many polls have seen nothing new that a block has to know whether it repeats itself.
  bool is_in_doubt() const { return polls_ > kDoubtfulPolls && progress_ == polled_progress_; }
  /// So many that they are a deadlock if all blocks that poll repeat themselves.
  bool has_only_polled() const { return polls_ > kIdlePolls && progress_ == polled_progress_; }
  /// So many that they are one in any case.
  bool has_polled_too_long() const { return polls_ - computed_at_ > kPolls || computations_ > kComputations; }

 private:
  // Polls in a row, by all blocks together, that must see nothing new before the wait is called a deadlock,
  // if each of the blocks repeats itself: one that computes for long does not.
  static constexpr std::int64_t kIdlePolls = 20000;
  // From here on blocks look whether they do. Not before: most waits are over sooner.
  static constexpr std::int64_t kDoubtfulPolls = kIdlePolls / 2;
  // The same if a block does not repeat itself, since a wait may count its looks.
  static constexpr std::int64_t kPolls = 1'000'000;
  // And if a block computes or waits for time to pass: so many times that with weight 1.
  static constexpr std::int64_t kComputations = 10'000'000;

  std::optional<std::uint64_t> seed_;
  std::mt19937_64 generator_;
  std::uint64_t hash_ = 14695981039346656037u;
  double now_ = 0;
  std::uint64_t progress_ = 0;
  std::int64_t polls_ = 0;             // since the last progress
  std::int64_t computations_ = 0;      // of those that are one, the sum of their weights
  std::int64_t computed_at_ = 0;       // the last such poll's number
  std::uint64_t polled_progress_ = 0;  // `progress_` at the last poll
};

}  // namespace vgpu

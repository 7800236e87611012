// Experiments of chapter 21: all-reduces alone by size, in graphs; lower bounds of their time; and
// all-reduce, residual and norm in one kernel beside three.
#include <array>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "07_mlp_block/mlp_kernels.cuh"
#include "21_small_all_reduce/add_and_normalise.cuh"
#include "21_small_all_reduce/experiments/floor.cuh"
#include "21_small_all_reduce/experiments/graph_timing.cuh"
#include "21_small_all_reduce/flag_in_data.cuh"
#include "21_small_all_reduce/gemm_all_reduce.cuh"
#include "21_small_all_reduce/one_shot.cuh"
#include "21_small_all_reduce/two_shot.cuh"
#include "21_small_all_reduce/word_is_flag.cuh"
#include "overlap/bench/device_data.hpp"
#include "overlap/bench/result_table.hpp"
#include "overlap/gpu/nccl_buffer.hpp"
#include "overlap/program/dense_chapter.hpp"

namespace overlap::small_all_reduce {
namespace {

const ChapterInfo kExperiment = {
    .name = "21_small_all_reduce/by_size",
    .summary =
        "All-reduces alone, by size, in graphs; lower bounds of their time; and with residual and norm of "
        "rows of n elements.",
    .variants = {"floor", "sizes", "norm"},
    .on_virtual_gpus = {.shape = {4, 512, 8}, .gpus = 4, .iterations = 1},
    .on_real_gpus = {.shape = {64, 8192, 8}, .gpus = 16, .iterations = 50, .warmup = 5},
    .types = {ElementType::kBf16, ElementType::kF16, ElementType::kF32},
};

/// Element i of rank r in that round: sums over 16 ranks are exact in all types.
double element(int rank, std::size_t i, int round) {
  return static_cast<double>((i * 7 + static_cast<std::size_t>(rank * 13 + round * 5)) % 9) - 4;
}

/// Summands and sum of one size, in memory that the NCCL mode can use: kRegistered needs a symmetric window.
template <Floating T>
class Summands {
 public:
  Summands(Rank& rank, std::size_t elements, NcclMode mode)
      : rank_(rank), elements_(elements), x_(rank, elements, mode), sum_(rank, elements, mode) {}

  const T* x() const { return x_.data(); }
  T* sum() const { return sum_.data(); }
  ncclComm* communicator() const { return x_.communicator(); }

  /// Writes new summands, and NaN to the sum.
  void write_next() {
    ++round_;
    std::vector<T> values(elements_);
    for (std::size_t i = 0; i < elements_; ++i) values[i] = from_double<T>(element(rank_.id(), i, round_));
    CUDA_CHECK(cudaMemcpyAsync(x_.data(), values.data(), elements_ * sizeof(T), cudaMemcpyHostToDevice,
                               rank_.stream()));
    CUDA_CHECK(cudaMemsetAsync(sum_.data(), 0xFF, elements_ * sizeof(T), rank_.stream()));
    rank_.synchronize(rank_.stream());
  }
  void compare(const std::string& what, bool corrupt) {
    std::vector<T> found = download(rank_, sum_.data(), static_cast<std::int64_t>(elements_));
    if (corrupt) corrupt_one_element(std::span<T>(found));
    for (std::size_t i = 0; i < elements_; ++i) {
      double right = 0;
      for (int rank = 0; rank < rank_.size(); ++rank) right += element(rank, i, round_);
      if (value_of(found[i]) == right) continue;
      throw WrongResult(what + ": element " + std::to_string(i) + " of " + std::to_string(elements_) +
                        " is " + std::to_string(value_of(found[i])) + ", and not " + std::to_string(right));
    }
  }

 private:
  Rank& rank_;
  std::size_t elements_;
  int round_ = 0;
  NcclBuffer<T> x_, sum_;
};

/// All all-reduces of one size.
template <Floating T>
class Ways {
 public:
  Ways(Rank& rank, std::int64_t bytes, const Options& options)
      : rank_(rank), elements_(bytes / std::int64_t{sizeof(T)}), options_(options) {
    if (!rank.shares_gpu()) {
      for (const NcclMode mode : nccl_modes()) {
        if (mode != NcclMode::kCopyEngine && why_not(mode).empty()) add_nccl(variant_of(mode), mode);
      }
      if (can_register_memory() && !backend::modelled_time()) add_registered();
    }
    if (summands_.empty()) summands_.push_back(make_summands(NcclMode::kPlain));
    add<OneShot<T>>("one_shot");
    add<TwoShot<T>>("two_shot");
    if ((rank.size() - 1) * bytes > kMaxFlaggedBytes) return;
    add<FlagInData<T>>("flag_in_data");
    add<WordIsFlag<T>>("word_is_flag");
  }
  const std::vector<GraphedCall>& calls() const { return calls_; }

 private:
  std::shared_ptr<Summands<T>> make_summands(NcclMode mode) {
    return std::make_shared<Summands<T>>(rank_, static_cast<std::size_t>(elements_), mode);
  }
  void add_call(const std::string& name, const std::shared_ptr<Summands<T>>& summands,
                std::function<void(cudaStream_t)> enqueue) {
    calls_.push_back(
        {name, std::move(enqueue), [summands] { summands->write_next(); },
         [summands, name, corrupt = options_.corrupt](int) { summands->compare(name, corrupt); }});
  }
  /// NCCL's plain kernels, on memory that is registered but in no window.
  void add_registered() {
    add_nccl("nccl_comm_register", NcclMode::kPlain);
    const Summands<T>& own = *summands_.back();
    const std::size_t bytes = static_cast<std::size_t>(elements_) * sizeof(T);
    registered_.push_back(
        std::make_unique<RegisteredMemory>(own.communicator(), const_cast<T*>(own.x()), bytes));
    registered_.push_back(std::make_unique<RegisteredMemory>(own.communicator(), own.sum(), bytes));
  }
  void add_nccl(const std::string& name, NcclMode mode) {
    summands_.push_back(make_summands(mode));
    const auto& own = summands_.back();
    add_call(name, own, [own, count = elements_](cudaStream_t stream) {
      NCCL_CHECK(ncclAllReduce(own->x(), own->sum(), static_cast<std::size_t>(count), nccl_type<T>(), ncclSum,
                               own->communicator(), stream));
    });
    calls_.back().calls_nccl = true;
  }
  template <typename AllReduce>
  void add(const std::string& name) {
    const auto algorithm = std::make_shared<AllReduce>(rank_, elements_);
    const auto& plain = summands_.front();
    add_call(name, plain,
             [algorithm, plain](cudaStream_t stream) { algorithm->run(plain->x(), plain->sum(), stream); });
  }

  Rank& rank_;
  std::int64_t elements_;
  const Options& options_;
  std::vector<std::shared_ptr<Summands<T>>> summands_;
  std::vector<GraphedCall> calls_;  // each holds its summands
  std::vector<std::unique_ptr<RegisteredMemory>> registered_;
};

std::vector<std::int64_t> sizes() {
  const bool modelled = backend::modelled_time();
  std::vector<std::int64_t> all;
  for (std::int64_t bytes = modelled ? 1 << 9 : 1 << 12; bytes <= (modelled ? 1 << 13 : 1 << 22); bytes *= 2)
    all.push_back(bytes);
  return all;
}

/// One result of section "sizes" (a graph of many calls) and "one_call" for each size.
template <Floating T>
void time_sizes(Rank& rank, const Options& options, Report& report) {
  for (const std::int64_t bytes : sizes()) {
    const Ways<T> ways(rank, bytes, options);
    const std::vector<GraphTimes> times = time_in_graphs(rank, ways.calls(), options);
    if (rank.id() != 0) continue;
    Results::Fields many = {{"section", std::string("sizes")}, {"bytes", bytes}};
    Results::Fields one = {{"section", std::string("one_call")}, {"bytes", bytes}};
    for (std::size_t i = 0; i < times.size(); ++i) {
      many.emplace_back(ways.calls()[i].name + "_ms", times[i].one_of_many);
      one.emplace_back(ways.calls()[i].name + "_ms", times[i].alone);
    }
    report.add_result(std::move(many));
    report.add_result(std::move(one));
    std::cout << bytes << " bytes:";
    for (std::size_t i = 0; i < times.size(); ++i) {
      std::cout << "  " << ways.calls()[i].name << " " << fixed(1e3 * times[i].one_of_many, 2) << " ("
                << fixed(1e3 * times[i].alone, 2) << ")";
    }
    std::cout << "\n";
  }
}

/// All-reduce, residual and norm of rows of n elements, in one kernel and in three.
template <Floating T>
class Norms {
 public:
  Norms(Rank& rank, std::int64_t rows, std::int64_t n)
      : rank_(rank),
        rows_(rows),
        n_(n),
        fused_(rank, rows, n, kEpsilon),
        x_(rank.device(), size()),
        gain_(rank.device(), static_cast<std::size_t>(n)),
        residual_(rank.device(), size()),
        sum_(rank.device(), size()),
        out_(rank.device(), size()) {
    if (!rank.shares_gpu()) nccl_ = std::make_unique<NcclAllReduce<T>>(rank, rows * n);
    mlp_block::warm_up_mlp_kernels<T>(rank);
    std::vector<T> gain(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < gain.size(); ++i)
      gain[i] = from_double<T>(1 + static_cast<double>(i % 4) / 4);
    upload(rank, gain, gain_);
  }

  std::vector<GraphedCall> calls(bool corrupt) {
    const auto begin = [this] { write_next(); };
    std::vector<GraphedCall> all;
    if (nccl_ != nullptr) {
      all.push_back(
          {"three kernels",
           [this](cudaStream_t stream) {
             nccl_->run(x_.data(), sum_.data(), stream);
             mlp_block::add_residual(residual_.data(), sum_.data(), residual_.data(), rows_ * n_, stream);
             mlp_block::normalise(residual_.data(), gain_.data(), out_.data(), rows_, n_, kEpsilon, stream);
           },
           begin, [this, corrupt](int calls) { compare("three kernels", calls, corrupt); }, true});
    }
    all.push_back({"one kernel",
                   [this](cudaStream_t stream) {
                     fused_.run(x_.data(), gain_.data(), residual_.data(), out_.data(), stream);
                   },
                   begin, [this, corrupt](int calls) { compare("one kernel", calls, corrupt); }});
    return all;
  }

 private:
  static constexpr float kEpsilon = 1e-5F;
  std::size_t size() const { return static_cast<std::size_t>(rows_ * n_); }
  /// What a call adds to the residual: so small that the residual is exact in T after all calls of a graph.
  double sum_of_ranks(std::size_t i) const { return static_cast<double>((i + round_) % 3) - 1; }
  double residual(std::size_t i, int calls) const {
    return element(1, i, round_) / 2 + calls * sum_of_ranks(i);
  }
  void write_next() {
    ++round_;
    std::vector<T> x(size()), before(size());
    for (std::size_t i = 0; i < size(); ++i) {
      const double value = element(0, i, round_);
      x[i] = from_double<T>(rank_.id() == 0 ? value : rank_.id() == 1 ? sum_of_ranks(i) - value : 0);
      before[i] = from_double<T>(residual(i, 0));
    }
    upload(rank_, x, x_);
    upload(rank_, before, residual_);
    fill_with_nan(rank_, out_);
  }
  void compare(const std::string& what, int calls, bool corrupt) {
    std::vector<T> out = download(rank_, out_.data(), rows_ * n_);
    if (corrupt) corrupt_one_element(std::span<T>(out));
    for (std::int64_t row = 0; row < rows_; ++row) {
      double squares = 0;
      for (std::int64_t i = row * n_; i < (row + 1) * n_; ++i) {
        const double value = residual(static_cast<std::size_t>(i), calls);
        squares += value * value;
      }
      const double scale = 1 / std::sqrt(squares / static_cast<double>(n_) + double{kEpsilon});
      // The sum of squares of halves is exact; then five roundings in f32 and one to T.
      const double u = std::same_as<T, float> ? 0 : std::same_as<T, __half> ? 0x1p-11 : 0x1p-8;
      for (std::int64_t i = row * n_; i < (row + 1) * n_; ++i) {
        const double gain = 1 + static_cast<double>((i - row * n_) % 4) / 4;
        const double right = gain * residual(static_cast<std::size_t>(i), calls) * scale;
        if (std::abs(value_of(out[static_cast<std::size_t>(i)]) - right) <= std::abs(right) * (u + 0x1p-20))
          continue;
        throw WrongResult(what + ": element " + std::to_string(i) + " is " +
                          std::to_string(value_of(out[static_cast<std::size_t>(i)])) + ", and not " +
                          std::to_string(right));
      }
    }
  }

  Rank& rank_;
  std::int64_t rows_, n_;
  int round_ = 0;
  AddAndNormalise<T> fused_;  // first: it may throw Skip
  DeviceBuffer<T> x_, gain_, residual_, sum_, out_;
  std::unique_ptr<NcclAllReduce<T>> nccl_;
};

template <Floating T>
void time_norm(Rank& rank, const Options& options, Report& report) {
  const auto [most, n, unused] = options.shape;
  for (std::int64_t rows = 1; rows <= most; rows *= 4) {
    if ((rank.size() - 1) * rows * n * std::int64_t{sizeof(T)} > kMaxFlaggedBytes) break;
    Norms<T> norms(rank, rows, n);
    const std::vector<GraphedCall> calls = norms.calls(options.corrupt);
    const std::vector<GraphTimes> times = time_in_graphs(rank, calls, options);
    if (rank.id() != 0) continue;
    Results::Fields fields = {{"section", std::string("norm")}, {"rows", rows}, {"n", n}};
    std::cout << rows << " rows:";
    for (std::size_t i = 0; i < times.size(); ++i) {
      fields.emplace_back(calls[i].name + " ms", times[i].one_of_many);
      std::cout << "  " << calls[i].name << " " << fixed(1e3 * times[i].one_of_many, 2) << " ("
                << fixed(1e3 * times[i].alone, 2) << ")";
    }
    std::cout << "\n";
    report.add_result(std::move(fields));
  }
}

void run(const Options& options, Report& report) {
  if (options.gpus < 2) throw Skip("it takes two ranks to send anything");
  run_dense_ranks<__nv_bfloat16, __half, float>(options, [&](auto tag, Rank& rank) {
    using T = typename decltype(tag)::type;
    if (options.runs("floor")) time_floor(rank, options, report);
    if (options.runs("sizes")) time_sizes<T>(rank, options, report);
    if (!options.runs("norm")) return;
    report.run_part("norm", rank.id() == 0, [&] { time_norm<T>(rank, options, report); });
  });
}

}  // namespace
}  // namespace overlap::small_all_reduce

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::small_all_reduce::kExperiment,
                               overlap::small_all_reduce::run);
}

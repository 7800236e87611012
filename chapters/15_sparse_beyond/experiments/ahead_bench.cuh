// Experiment of chapter 15: the bench of training steps that differ in when the exchange of the sparse
// gradient is planned and made.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "15_sparse_beyond/experiments/chunked_all_reduce.cuh"
#include "15_sparse_beyond/experiments/passes.cuh"
#include "15_sparse_beyond/range_owners.cuh"
#include "overlap/bench/device_data.hpp"
#include "overlap/bench/sparse_bench.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/host_copy.hpp"

namespace overlap::sparse_beyond {

/// One step on one gradient, in each order. All are timed by the host, since the plan makes it wait.
template <SparseIndex Index>
class AheadBench final : public SparseBenchBase {
 public:
  /// For the variants of the settings, on `data`, which outlives it and has its rows by that pattern.
  AheadBench(Rank& rank, const SparseData& data, const BenchSettings& settings, RowPattern pattern)
      : SparseBenchBase(rank, data, settings, pattern, index_type_of<Index>()),
        indices_(on_device(rank.device(), std::vector<Index>(data.entries(rank.id()).begin(),
                                                             data.entries(rank.id()).end()))),
        gradient_(rank.device(), data.shape().elements(entries_)),
        values_(rank.device(), gradient_.size()),
        passes_(rank, data.shape()) {
    using Lesson = RangeOwnersAllReduce<Index, float>;
    using Chunked = ChunkedAllReduce<Index, float>;
    add_part("passes", [this](cudaStream_t stream) { run_passes(stream); });
    add_sum<Lesson>("exchange", [this](Lesson& sum, cudaStream_t stream) {
      return sum.run(indices_.data(), gradient_.data(), entries_, stream);
    });
    add_sum<Lesson>("after", [this](Lesson& sum, cudaStream_t stream) {
      run_passes(stream);
      return sum.run(indices_.data(), values_.data(), entries_, stream);
    });
    add_sum<Chunked>(
        "ahead",
        [this](Chunked& sum, cudaStream_t stream) {
          sum.plan(indices_.data(), entries_, stream);
          run_passes(stream);
          sum.ready(0, stream);
          return sum.reduce(values_.data(), stream);
        },
        1);
    add_sum<Chunked>(
        "in_chunks",
        [this](Chunked& sum, cudaStream_t stream) {
          sum.plan(indices_.data(), entries_, stream);
          run_passes(stream, [&](int layer) { sum.ready(layer, stream); });
          return sum.reduce(values_.data(), stream);
        },
        kChunks);
  }

 private:
  // ---- One step -------------------------------------------------------------------------------------------
  /// As many layers as there are chunks. `after_layer` is called behind each layer of the backward pass.
  template <typename AfterLayer>
  void run_passes(cudaStream_t stream, const AfterLayer& after_layer) {
    passes_.forward(kChunks, stream);
    for (int layer = 0; layer < kChunks; ++layer) {
      const Range rows = {range_begin(data_.shape().rows, kChunks, layer),
                          range_begin(data_.shape().rows, kChunks, layer + 1)};
      passes_.backward(layer, rows, indices_.data(), gradient_.data(), entries_, values_.data(), stream);
      after_layer(layer);
    }
  }
  void run_passes(cudaStream_t stream) {
    run_passes(stream, [](int) {});
  }

  // ---- The variants ---------------------------------------------------------------------------------------
  void add_part(const std::string& name, const std::function<void(cudaStream_t)>& call) {
    add_variant(name, [&] {
      Variant variant;
      variant.role = Role::kPart;
      variant.clock = Clock::kHost;
      variant.call = call;
      return variant;
    });
  }

  /// `call(sum, stream)` makes a step with an object of that class, and returns its result.
  template <typename Sum, typename Call, typename... More>
  void add_sum(const std::string& name, const Call& call, const More&... more) {
    add_variant(name, [&] {
      auto sum = std::make_shared<Sum>(rank(), data_.shape(), more...);
      auto result = std::make_shared<SparseRows<Index, float>>();  // of the last call
      Variant variant;
      variant.clock = Clock::kHost;
      variant.call = [call, sum, result](cudaStream_t stream) { *result = call(*sum, stream); };
      variant.poison = [this, result](Data) { poison(*result); };
      variant.compare = [this, name, sum, result](Data data) {
        compare(name, *result, data == Data::kExact ? SparseValues::kExact : SparseValues::kReal);
        require_no_lost_rows(name, sum->lost_rows(rank().stream()));
      };
      return variant;
    });
  }

  // ---- Data and results -----------------------------------------------------------------------------------
  void fill(Data data) override {
    std::vector<float> values(gradient_.size());
    data_.fill<float>(rank().id(), data == Data::kExact ? SparseValues::kExact : SparseValues::kReal, values);
    upload(rank(), values, gradient_);
    rank().barrier();
  }

  /// Poisons the results of earlier calls with NaN, and the memory that the backward pass writes.
  void poison(const SparseRows<Index, float>& result) {
    const auto set = [](void* memory, std::size_t bytes) {
      if (bytes > 0) CUDA_CHECK(cudaMemset(memory, 0xFF, bytes));
    };
    set(values_.data(), values_.bytes());
    set(const_cast<Index*>(result.indices), static_cast<std::size_t>(result.count) * sizeof(Index));
    set(const_cast<float*>(result.values), data_.shape().elements(result.count) * sizeof(float));
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  void compare(const std::string& name, const SparseRows<Index, float>& result, SparseValues kind) const {
    const std::vector<Index> indices = on_host(result.indices, result.count);
    std::vector<float> values = on_host(result.values, result.count * data_.shape().features);
    if (settings().corrupt) corrupt_one_element(std::span<float>(values));
    const std::string wrong =
        data_.difference<Index, float>(kind, std::span<const Index>(indices), std::span<const float>(values));
    if (!wrong.empty()) throw WrongResult(name + ": " + wrong);
  }

  ResultTable table() const override {
    ResultTable table({{"", "variant"},
                       {modelled("ms, host-timed"), "host_ms"},
                       {"exposed", "exposed_ms"},
                       {"calls", "calls"}});
    const VariantTimes* passes = times_of("passes");
    for (const VariantTimes& one : times()) {
      Results::Fields fields = {{"variant", one.name},
                                {"section", std::string("ahead")},
                                {"gpus", std::int64_t{rank().size()}},
                                {"host_ms", one.host_ms.median},
                                {"calls", std::int64_t{one.host_ms.samples}}};
      const bool is_step = one.name != "passes" && one.name != "exchange";
      if (passes != nullptr && is_step)
        fields.emplace_back("exposed_ms", one.host_ms.median - passes->host_ms.median);
      table.add(std::move(fields));
    }
    return table;
  }

  DeviceBuffer<Index> indices_;   // [entries]
  DeviceBuffer<float> gradient_;  // [entries, F]: the gradient that the backward pass will find
  DeviceBuffer<float> values_;    // [entries, F]: the part that it has written so far
  Passes<Index, float> passes_;
};

}  // namespace overlap::sparse_beyond

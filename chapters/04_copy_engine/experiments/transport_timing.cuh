// Chapter 04: how much a transport and a GEMM slow each other down. Each runs alone and beside the other,
// from a common gate.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <vector>

#include "04_copy_engine/experiments/transports.cuh"
#include "overlap/bench/gate.hpp"
#include "overlap/bench/result_table.hpp"
#include "overlap/bench/settings.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/bench/waves.hpp"
#include "overlap/gpu/backend.hpp"

namespace overlap::copy_engine {

/// Milliseconds from the common start on the slowest rank, medians. What did not run is 0.
struct SideBySide {
  double product_ms = 0;   ///< until the last product has finished
  double transfer_ms = 0;  ///< until the last transfer has finished
};

/// Times a transfer and a product on two streams, from one start to an end of each. time_variants() takes one
/// end of a call, and runs other calls between two timed ones: the first variant, and each once more by the
/// host's clock.
class SideBySideTimer {
 public:
  /// Enqueues one call on a stream; empty: not this one.
  using Enqueue = std::function<void(cudaStream_t stream)>;

  explicit SideBySideTimer(Rank& rank)
      : rank_(rank), gate_(rank), start_(rank.device()), sent_(rank.device()), multiplied_(rank.device()) {}

  /// One run of the two, at the same time. The transfer is enqueued first and its stream has priority: if it
  /// needs multiprocessors, it gets them.
  SideBySide run(const Enqueue& product, const Enqueue& transfer, bool gated) {
    const cudaStream_t stream = rank_.stream(), side = rank_.transfer_stream();
    if (gated) {
      gate_.close(stream);
    } else {
      rank_.barrier();
    }
    CUDA_CHECK(cudaEventRecord(start_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(side, start_));
    if (transfer) transfer(side);
    CUDA_CHECK(cudaEventRecord(sent_, side));
    if (product) product(stream);
    CUDA_CHECK(cudaEventRecord(multiplied_, stream));
    CUDA_CHECK(cudaStreamWaitEvent(stream, sent_));
    if (gated) gate_.open();
    rank_.synchronize(stream);
    return {product ? elapsed_ms(multiplied_) : 0, transfer ? elapsed_ms(sent_) : 0};
  }

 private:
  double elapsed_ms(const Event& end) const {
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start_, end));
    double slowest = milliseconds;
    for (const double other : rank_.exchange(slowest)) slowest = std::max(slowest, other);
    return slowest;
  }

  Rank& rank_;
  Gate gate_;
  Event start_, sent_, multiplied_;
};

/// What is timed: a product, a transfer, or both at once.
struct SideBySideCall {
  SideBySideTimer::Enqueue product;   ///< if there is one
  SideBySideTimer::Enqueue transfer;  ///< if there is one
  /// Called on all ranks before the last timed run, if it is set: to change what that run has to bring or to
  /// write.
  std::function<void()> before_last = {};
  std::function<void()> after_last = {};  ///< the same after it: to look whether it has
};

/// Medians of several runs, one for each call, interleaved.
inline std::vector<SideBySide> time_side_by_side(Rank& rank, const std::vector<SideBySideCall>& calls,
                                                 int iterations) {
  SideBySideTimer timer(rank);
  for (const SideBySideCall& call : calls)
    timer.run(call.product, call.transfer, false);  // loads all that is to be loaded
  std::vector<std::vector<double>> products(calls.size()), transfers(calls.size());
  for (int i = 0; i < iterations; ++i) {
    const bool last = i + 1 == iterations;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      if (last && calls[c].before_last) calls[c].before_last();
      const SideBySide once = timer.run(calls[c].product, calls[c].transfer, true);
      if (last && calls[c].after_last) calls[c].after_last();
      products[c].push_back(once.product_ms);
      transfers[c].push_back(once.transfer_ms);
    }
  }
  std::vector<SideBySide> medians;
  for (std::size_t c = 0; c < calls.size(); ++c)
    medians.push_back({summarise(products[c]).median, summarise(transfers[c]).median});
  return medians;
}

/// The same for calls without a transfer, or whose transfer is on the ranks' streams: milliseconds.
inline std::vector<double> time_alone(Rank& rank, const std::vector<SideBySideCall>& calls, int iterations) {
  std::vector<double> ms;
  for (const SideBySide& once : time_side_by_side(rank, calls, iterations)) ms.push_back(once.product_ms);
  return ms;
}

/// Times each transport with the ring's P - 1 shards, alone and beside `product`; rank 0 prints and reports.
/// `step` is one of the sub-products of which `product` consists: its waves are printed. What the last timed
/// run of each has sent is compared.
inline void time_transports(Transports& transports, Rank& rank, const SideBySideCall& product,
                            MatmulShape step, const BenchSettings& settings, Results& results) {
  const int shards = rank.size() - 1;
  std::vector<SideBySideCall> calls = {product};
  for (const Transport& transport : transports.list()) {
    const auto send = [&transport, shards](cudaStream_t stream) { transport.send(shards, stream); };
    SideBySideCall alone{{}, send}, both{product.product, send};
    if (settings.check) {
      alone.before_last = [&transports] { transports.write_next(); };
      alone.after_last = [&] { transports.compare(transport.name + ", timed", settings.corrupt); };
      both.before_last = [&product, write = alone.before_last] { product.before_last(), write(); };
      both.after_last = [&product, compare = alone.after_last] { product.after_last(), compare(); };
    }
    calls.push_back(alone);
    calls.push_back(both);
  }
  const std::vector<SideBySide> times = time_side_by_side(rank, calls, settings.iterations);
  if (rank.id() != 0) return;

  std::cout << "\ntransports: " << shards << (shards == 1 ? " shard" : " shards") << " of "
            << transports.bytes() << " bytes to the left neighbour, alone and beside " << rank.size()
            << " products of " << step.m << " x " << step.n << " x " << step.k << "\n";
  if (!transports.skipped().empty()) std::cout << "NCCL is left out: " << transports.skipped() << "\n";
  ResultTable table({{"", "variant"},
                     {modelled("GB/s alone"), "alone_gb_per_s", digits(2)},
                     {"GB/s beside", "beside_gb_per_s", digits(2)},
                     {"product x alone", "product_slow_down"},
                     {"waves on " + std::to_string(transports.multiprocessors()) + " SMs", "waves"},
                     {"on what is left", "waves_left"}});
  const double bytes = static_cast<double>(shards) * static_cast<double>(transports.bytes());
  const auto rate = [bytes](double ms) { return bytes / ms * 1e-6; };
  const auto waves_on = [&](int multiprocessors) {
    return waves(step, backend::product_tile(), multiprocessors).waves;
  };
  for (std::size_t t = 0; t < transports.list().size(); ++t) {
    const Transport& transport = transports.list()[t];
    const SideBySide alone = times[1 + 2 * t], both = times[2 + 2 * t];
    const int left = transports.multiprocessors() - transport.multiprocessors;
    std::string after = left > 0 ? std::to_string(waves_on(left)) : "none is left";
    if (transport.multiprocessors == Transport::kUnknown) after = "NCCL decides";
    Results::Fields saved;
    // The model does not time a kernel's stores across a link, so it has no time for copy kernels.
    if (!backend::modelled_time() || transport.multiprocessors <= 0) {
      saved = {{"section", std::string("transports")},
               {"variant", transport.name},
               {"gpus", std::int64_t{rank.size()}},
               {"bytes", transports.bytes()},
               {"shards", std::int64_t{shards}},
               {"alone_gb_per_s", rate(alone.transfer_ms)},
               {"beside_gb_per_s", rate(both.transfer_ms)},
               {"product_alone_ms", times.front().product_ms},
               {"product_beside_ms", both.product_ms},
               {"product_slow_down", both.product_ms / times.front().product_ms}};
      if (transport.multiprocessors != Transport::kUnknown)
        saved.emplace_back("multiprocessors", std::int64_t{transport.multiprocessors});
    }
    table.add(std::move(saved), {{"variant", transport.name},
                                 {"waves", waves_on(transports.multiprocessors())},
                                 {"waves_left", after}});
  }
  table.finish("", results);
  if (backend::modelled_time())
    std::cout << "-: the model does not count what a kernel stores across a link\n";
}

}  // namespace overlap::copy_engine

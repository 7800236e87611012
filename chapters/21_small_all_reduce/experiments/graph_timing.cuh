// Chapter 21: the time of a call in a graph, without the host.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "overlap/bench/settings.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/graph.hpp"
#include "overlap/gpu/ranks.hpp"

namespace overlap::small_all_reduce {

/// A call that is timed. `before` writes its data; `compare` gets the number of calls since then, and throws
/// WrongResult.
struct GraphedCall {
  std::string name;
  std::function<void(cudaStream_t)> enqueue;
  std::function<void()> before = {};
  std::function<void(int calls)> compare = {};
  bool calls_nccl = false;  ///< then virtual GPUs cannot capture it, and enqueue it directly
};

/// Milliseconds of one call in a graph.
struct GraphTimes {
  double alone = 0;        ///< in a graph of one call
  double one_of_many = 0;  ///< in a graph of calls_in_a_graph(), divided by their number
};

/// Calls in the larger graph.
inline int calls_in_a_graph() { return backend::modelled_time() ? 3 : 20; }

/// Collective: runs each call once directly, captures both of its graphs, and times all graphs interleaved.
/// Compares the results of the direct calls and of the last graphs.
inline std::vector<GraphTimes> time_in_graphs(Rank& rank, const std::vector<GraphedCall>& calls,
                                              const BenchSettings& settings) {
  std::vector<TimedVariant> variants;
  for (const GraphedCall& call : calls) {
    if (settings.check && call.before) call.before();
    rank.barrier();
    call.enqueue(rank.stream());
    rank.synchronize(rank.stream());
    if (settings.check && call.compare) call.compare(1);
    for (const int count : {1, calls_in_a_graph()}) {
      const auto enqueue_all = [enqueue = call.enqueue, count](cudaStream_t stream) {
        for (int i = 0; i < count; ++i) enqueue(stream);
      };
      if (call.calls_nccl && backend::modelled_time()) {
        variants.push_back({call.name, enqueue_all});
      } else {
        const auto graph =
            std::make_shared<Graph>(Graph::capture(rank.stream(), [&] { enqueue_all(rank.stream()); }));
        variants.push_back({call.name, [graph](cudaStream_t stream) { graph->launch(stream); }});
      }
      if (!settings.check) continue;
      variants.back().before_last = call.before;
      if (call.compare) variants.back().after_last = [compare = call.compare, count] { compare(count); };
    }
  }
  const std::vector<VariantTimes> times =
      time_variants(rank, variants, settings.iterations, settings.warmup, false);
  std::vector<GraphTimes> found;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    found.push_back({times[2 * i].device_ms.median, times[2 * i + 1].device_ms.median / calls_in_a_graph()});
  }
  rank.barrier();  // no rank frees memory that another rank's graph still uses
  return found;
}

}  // namespace overlap::small_all_reduce

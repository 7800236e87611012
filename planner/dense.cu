// The chapters on dense products, 02 to 07, and those whose kernels multiply and move, 16 to 20.
#include <algorithm>
#include <string>
#include <utility>

#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "03_ring_all_gather/ring_all_gather.cuh"
#include "04_copy_engine/copy_engine_ring.cuh"
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "06_reduce_scatter/all_to_all_sum.cuh"
#include "06_reduce_scatter/multiply_then_scatter.cuh"
#include "06_reduce_scatter/rotating_accumulators.cuh"
#include "07_mlp_block/overlapped_block.cuh"
#include "07_mlp_block/sequence_block.cuh"
#include "07_mlp_block/vanilla_block.cuh"
#include "17_gemm_on_signals/gemm_on_signals.cuh"
#include "18_ring_in_kernel/ring_ahead.cuh"
#include "18_ring_in_kernel/ring_in_kernel.cuh"
#include "19_fused_reduce_scatter/fused_reduce_scatter.cuh"
#include "20_two_nodes/two_level_gemm.cuh"
#include "catalogue.hpp"
#include "overlap/gpu/nccl_mode.hpp"
#include "schedule.hpp"

namespace overlap::planner {
namespace {

using T = __half;  // as many bytes as bf16, and as fast
constexpr double kElement = sizeof(T);
constexpr int kRank = 0;  // balanced_share() gives it the largest shares

/// Of chapter 16's kernel, and of those that are made from it.
using OurTile = tensor_core_gemm::Tile<128, 256, 4>;
constexpr Tile kOurTile = {OurTile::kM, OurTile::kN};

double size(std::int64_t one, std::int64_t other) {
  return static_cast<double>(one) * static_cast<double>(other);
}

std::string text(const char* name, std::int64_t one, std::int64_t other) {
  return std::string(name) + "[" + std::to_string(one) + ", " + std::to_string(other) + "]";
}

std::int64_t share(std::int64_t total, int ranks) { return balanced_share(total, ranks, kRank).size(); }

/// The machine for a call whose products take so long: slower, if they reach the limit of power.
Machine warm(Machine machine, double product_us) {
  machine.product_rate /= slow_down(machine, product_us);
  return machine;
}

/// A variant from the time of its parts on a machine that is as fast as it is in such a call.
template <typename Parts>
Variant variant(const char* chapter, std::string name, const Cost& cost, bool peers, MatmulShape product,
                Parts parts) {
  const auto us = [product, parts](const Machine& machine) {
    const Machine warmed = warm(machine, products_us(machine, {product, 1}));
    return warmed.call_us + parts(warmed);
  };
  return {chapter, std::move(name), cost, peers, us};
}

/// A variant whose kernel takes so many ranks at most. `make` is not asked for more: nor is the chapter's
/// cost().
template <typename Make>
Variant up_to(int most_ranks, int ranks, const char* chapter, const char* name, Make make) {
  Variant variant = {chapter, name, {}, true, {}, most_ranks, {}};
  if (ranks > most_ranks) return variant;
  variant = make();
  variant.most_ranks = most_ranks;
  return variant;
}

std::function<double(const Machine&)> gemm_only(MatmulShape product) {
  return [product](const Machine& machine) {
    const double cold = products_us(machine, {product, 1});
    return machine.call_us + products_us(warm(machine, cold), {product, 1});
  };
}

/// Chapter 02, for each mode of NCCL.
Variant gather_then_multiply_by(const char* name, Collective mode, MatmulShape whole, MatmulShape product,
                                int ranks) {
  const Cost cost = gather_then_multiply::GatherThenMultiply<T>::cost(whole, ranks, kRank);
  return variant("02_gather_then_multiply", name, cost, false, product, [=](const Machine& machine) {
    return collective_us(machine, ranks, cost.messages, static_cast<double>(cost.bytes_out), mode) +
           products_us(machine, {product, 1}) +
           static_cast<double>(std::max<std::int64_t>(cost.products, 1) - 1) * machine.launch_us;
  });
}

/// Chapter 06's rotating accumulators. Accumulator: what goes round.
template <typename Accumulator>
Variant rotating(const char* name, reduce_scatter::Start start, MatmulShape whole, MatmulShape product,
                 int ranks) {
  using Algorithm = reduce_scatter::RotatingAccumulators<T, Accumulator>;
  const Cost cost = Algorithm::cost(whole, ranks, kRank, start);
  const double elements = size(share(whole.m, ranks), whole.n);
  const Rotation rotation = {.zeros = start == reduce_scatter::Start::kZeros,
                             .stores = Algorithm::usual_pass(ranks) == reduce_scatter::Pass::kStore,
                             .accumulator = elements * sizeof(Accumulator),
                             .result = elements * kElement};
  return variant("06_reduce_scatter", name, cost, true, product, [=](const Machine& machine) {
    return rotation_us(machine, {product, cost.products}, cost, rotation);
  });
}

/// What chapter 06's owner reads and writes to add: all slots, and the result.
double added_by_owner(MatmulShape whole, int ranks) {
  return kElement * size(ranks + 1, share(whole.m, ranks)) * static_cast<double>(whole.n);
}

/// Chapter 19, by what its wire carries.
template <typename Wire>
Variant fused(MatmulShape whole, MatmulShape product, int ranks) {
  constexpr const char* kChapter = "19_fused_reduce_scatter";
  return up_to(fused_reduce_scatter::kMostRanks, ranks, kChapter, Wire::kName, [=] {
    const Cost cost = fused_reduce_scatter::FusedReduceScatter<T, Wire>::cost(whole, ranks, kRank);
    return variant(kChapter, Wire::kName, cost, true, product, [=](const Machine& machine) {
      return scattered_us(machine, {product, ranks, kOurTile}, cost, static_cast<double>(cost.bytes_in));
    });
  });
}

/// Chapter 20. The peers that it needs are those of its node.
Variant two_level(MatmulShape whole, MatmulShape product, int ranks, int gpus_per_node) {
  constexpr const char *kChapter = "20_two_nodes", *kName = "two_level";
  return up_to(two_nodes::kMostSignals, ranks, kChapter, kName, [=] {
    using Algorithm = two_nodes::TwoLevelGemm<T>;
    const int per_node = std::min(ranks, gpus_per_node);
    const Cost rail = Algorithm::rail_cost(whole, ranks, kRank, per_node);
    const Nodes nodes = {.count = ranks / per_node, .ranks = per_node};
    const Cost cost = Algorithm::cost(whole, ranks, kRank, per_node);
    return variant(kChapter, kName, cost, false, product, [=](const Machine& machine) {
      const int aside = nodes.count > 1 ? two_nodes::rail_blocks(machine.multiprocessors) : 0;
      return two_level_us(machine, {product, std::min<std::int64_t>(whole.m, ranks), kOurTile}, rail, cost,
                          nodes, aside);
    });
  });
}

}  // namespace

Operation matmul(MatmulShape whole, int ranks) {
  const MatmulShape product = {whole.m, share(whole.n, ranks), whole.k};
  using Rung = tensor_core_gemm::StoredByTma<>;
  const Cost cost = tensor_core_gemm::TensorCoreGemm<T, Rung>::cost(product);
  return {"matmul",
          text("C", product.m, product.n) + " = " + text("A", product.m, product.k) + " " +
              text("B", product.k, product.n) + ": a rank's product, all of A there",
          gemm_only(product),
          {variant("16_tensor_core_gemm", Rung::kName, cost, false, product, [=](const Machine& machine) {
            return products_us(machine, {product, 1, kOurTile});
          })}};
}

Operation all_gather_matmul(MatmulShape whole, int ranks, int gpus_per_node) {
  const MatmulShape product = {whole.m, share(whole.n, ranks), whole.k};
  const auto rows = std::min<std::int64_t>(whole.m, ranks);  // shards with rows
  Operation operation = {"all_gather_matmul",
                         text("C", whole.m, whole.n) + " = " + text("A", whole.m, whole.k) + " " +
                             text("B", whole.k, whole.n) + ": all-gather of A, then the product",
                         gemm_only(product),
                         {}};
  const auto add = [&](const char* chapter, const char* name, const Cost& cost, bool peers, auto parts) {
    operation.variants.push_back(variant(chapter, name, cost, peers, product, parts));
  };
  for (const auto& [mode, name] : {std::pair{Collective::kPlain, NcclMode::kPlain},
                                   std::pair{Collective::kRegistered, NcclMode::kRegistered},
                                   std::pair{Collective::kCopyEngine, NcclMode::kCopyEngine}}) {
    operation.variants.push_back(gather_then_multiply_by(variant_of(name), mode, whole, product, ranks));
  }
  const Cost ring = ring_all_gather::RingAllGatherMatmul<T>::cost(whole, ranks, kRank);
  add("03_ring_all_gather", "ring", ring, false, [=](const Machine& machine) {
    return nccl_ring_us(machine, {product, ring.products}, ring, ranks);
  });
  const Cost push = copy_engine::CopyEngineRing<T>::cost(whole, ranks, kRank);
  add("04_copy_engine", "copy_engine_ring", push, true, [=](const Machine& machine) {
    return copy_ring_us(machine, {product, push.products}, push, false);
  });
  const Cost two = two_streams::RingTwoStreams<T>::cost(whole, ranks, kRank);
  add("05_two_streams", "ring_two_streams", two, true, [=](const Machine& machine) {
    return copy_ring_us(machine, {product, two.products}, two, true);
  });
  const Cost pull = two_streams::PullTwoStreams<T>::cost(whole, ranks, kRank);
  const auto published =
      static_cast<double>(two_streams::PullTwoStreams<T>::bytes_published(whole, ranks, kRank));
  add("05_two_streams", "pull_two_streams", pull, true, [=](const Machine& machine) {
    return pulls_us(machine, {product, pull.products}, pull, published);
  });
  operation.variants.push_back(
      up_to(gemm_on_signals::kMostSignals, ranks, "17_gemm_on_signals", "gemm_on_signals", [=] {
        const Cost cost = gemm_on_signals::GemmOnSignals<T>::cost(whole, ranks, kRank);
        const auto us = [=](const Machine& machine) {
          return persistent_us(machine, {product, rows, kOurTile}, cost, ranks, false);
        };
        return variant("17_gemm_on_signals", "gemm_on_signals", cost, true, product, us);
      }));
  const auto in_kernel = [&](const char* name, auto make) {
    operation.variants.push_back(up_to(ring_in_kernel::kMostRanks, ranks, "18_ring_in_kernel", name, make));
  };
  in_kernel("ring_in_kernel", [=] {
    const Cost cost = ring_in_kernel::RingInKernel<T>::cost(whole, ranks, kRank);
    return variant("18_ring_in_kernel", "ring_in_kernel", cost, true, product, [=](const Machine& machine) {
      return stepwise_us(machine, {product, rows, kOurTile}, cost, ranks);
    });
  });
  in_kernel("ring_ahead", [=] {
    const Cost cost = ring_in_kernel::RingAhead<T>::cost(whole, ranks, kRank);
    return variant("18_ring_in_kernel", "ring_ahead", cost, true, product, [=](const Machine& machine) {
      return persistent_us(machine, {product, rows, kOurTile}, cost, ranks, true);
    });
  });
  operation.variants.push_back(two_level(whole, product, ranks, gpus_per_node > 0 ? gpus_per_node : ranks));
  return operation;
}

Operation matmul_reduce_scatter(MatmulShape whole, int ranks) {
  const MatmulShape product = {whole.m, whole.n, share(whole.k, ranks)};
  Operation operation = {"matmul_reduce_scatter",
                         text("C", whole.m, whole.n) + " = " + text("X", whole.m, whole.k) + " " +
                             text("W", whole.k, whole.n) + ": the product, then a reduce-scatter of C",
                         gemm_only(product),
                         {}};
  const Cost nccl = reduce_scatter::MultiplyThenScatter<T>::cost(whole, ranks);
  operation.variants.push_back(
      variant("06_reduce_scatter", "nccl", nccl, false, product, [=](const Machine& machine) {
        return products_us(machine, {product, 1}) +
               static_cast<double>(nccl.products - 1) * machine.launch_us +
               collective_us(machine, ranks, nccl.messages, static_cast<double>(nccl.bytes_out));
      }));
  using reduce_scatter::Start;
  operation.variants.push_back(rotating<T>("rotating", Start::kFirstPartial, whole, product, ranks));
  operation.variants.push_back(rotating<float>("rotating_f32", Start::kFirstPartial, whole, product, ranks));
  operation.variants.push_back(rotating<T>("rotating_zero_filled", Start::kZeros, whole, product, ranks));
  const Cost all = reduce_scatter::AllToAllSum<T>::cost(whole, ranks, kRank);
  const double added = added_by_owner(whole, ranks);
  operation.variants.push_back(
      variant("06_reduce_scatter", "all_to_all", all, true, product, [=](const Machine& machine) {
        return send_and_sum_us(machine, {product, all.products}, all, added);
      }));
  operation.variants.push_back(fused<fused_reduce_scatter::SixteenBitWire>(whole, product, ranks));
  operation.variants.push_back(fused<fused_reduce_scatter::F32Wire>(whole, product, ranks));
  return operation;
}

Operation mlp_block(MatmulShape whole, int ranks) {
  const std::int64_t inner = share(whole.n, ranks), tokens = share(whole.m, ranks);
  const MatmulShape first = {whole.m, inner, whole.k}, second = {whole.m, whole.k, inner};
  const MatmulShape both = {whole.m, 2 * inner, whole.k};  // as many operations: for the limit of power
  // Normalise: read and write; add the residual: read two, write one. Activate in place.
  const auto beside = [=](const Machine& machine, std::int64_t rows) {
    return kernel_us(machine, 2 * kElement * size(rows, whole.k)) +
           kernel_us(machine, 2 * kElement * size(whole.m, inner)) +
           kernel_us(machine, 3 * kElement * size(rows, whole.k));
  };
  const auto products = [=](const Machine& machine) {
    return products_us(machine, {first, 1}) + products_us(machine, {second, 1});
  };
  Operation operation = {
      "mlp_block",
      "Y = X + act(norm(X) W1) W2 of " + std::to_string(whole.m) + " tokens, hidden size " +
          std::to_string(whole.k) + ", inner size " + std::to_string(whole.n),
      [=](const Machine& machine) { return machine.call_us + products(warm(machine, products(machine))); },
      {}};
  const auto add = [&](const char* name, const Cost& cost, bool peers, auto parts) {
    operation.variants.push_back(variant("07_mlp_block", name, cost, peers, both, parts));
  };
  const Cost vanilla = overlap::mlp_block::VanillaBlock<T>::cost(whole, ranks, kRank);
  add("vanilla", vanilla, false, [=](const Machine& machine) {
    return beside(machine, whole.m) + products(machine) +
           collective_us(machine, ranks, vanilla.messages, static_cast<double>(vanilla.bytes_out));
  });
  const Cost sequence = overlap::mlp_block::SequenceParallelBlock<T>::cost(whole, ranks, kRank);
  add("sequence_parallel", sequence, false, [=](const Machine& machine) {
    const double half = static_cast<double>(sequence.bytes_out) / 2;  // an all-gather and a reduce-scatter
    return beside(machine, tokens) + products(machine) +
           2 * collective_us(machine, ranks, sequence.messages / 2, half);
  });
  const Cost overlapped = overlap::mlp_block::OverlappedBlock<T>::cost(whole, ranks, kRank);
  const Cost gather = two_streams::RingTwoStreams<T>::cost(whole, ranks, kRank);
  const MatmulShape way_back = {whole.m, whole.k, whole.n};
  const Cost scatter = reduce_scatter::AllToAllSum<T>::cost(way_back, ranks, kRank);
  add("overlapped", overlapped, true, [=](const Machine& machine) {
    return beside(machine, tokens) + copy_ring_us(machine, {first, gather.products}, gather, true) +
           send_and_sum_us(machine, {second, scatter.products}, scatter, added_by_owner(way_back, ranks));
  });
  return operation;
}

}  // namespace overlap::planner

// All variants: what must hold of every prediction, whatever the constants.
#include "catalogue.hpp"

#include <gtest/gtest.h>

#include <set>

#include "machine.hpp"
#include "report.hpp"

namespace overlap::planner {
namespace {

constexpr MatmulShape kShapes[] = {{4096, 16384, 4096}, {8192, 28672, 8192}, {513, 4096, 1000}};

/// Every operation at these sizes.
std::vector<Operation> all_operations(MatmulShape shape, int ranks) {
  return {matmul(shape, ranks), all_gather_matmul(shape, ranks), matmul_reduce_scatter(shape, ranks),
          mlp_block(shape, ranks), sparse_all_reduce({{100'000, 64, 1000}, ranks, 1000 * ranks - ranks / 2})};
}

template <typename Check>
void for_all(int ranks, const Check& check) {
  for (const MatmulShape shape : kShapes) {
    for (const Operation& operation : all_operations(shape, ranks)) {
      for (const Variant& variant : operation.variants) {
        SCOPED_TRACE(operation.formula + ": " + variant.chapter + " " + variant.name);
        check(operation, variant);
      }
    }
  }
}

TEST(PlannerCatalogue, EveryChapterIsThere) {
  std::set<std::string> numbers;
  for (const Operation& operation : all_operations(kShapes[0], 4))
    for (const Variant& variant : operation.variants) numbers.insert(variant.chapter.substr(0, 2));
  EXPECT_EQ(numbers, (std::set<std::string>{"02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12",
                                            "13", "14", "15", "16", "17", "18", "19", "20"}));
}

TEST(PlannerCatalogue, OneGpuIsTheProductAlone) {
  const Machine machine = read_machine("h200-nvlink", 0);
  const MatmulShape shape = {4096, 4096, 4096};
  for (const Operation& operation : {all_gather_matmul(shape, 1), matmul_reduce_scatter(shape, 1)}) {
    for (const Variant& variant : operation.variants)
      EXPECT_NEAR(variant.us(machine), operation.gemm_only_us(machine), 1e-6) << variant.name;
  }
}

TEST(PlannerCatalogue, WhereAllButProductsIsFreeAllAreAsFastAsTheProduct) {
  Machine machine = read_machine("h200-nvlink", 0);
  for (const Bound bound : {Bound::kLink, Bound::kLatency, Bound::kMemory, Bound::kWaves})
    machine = without(machine, bound);
  machine.smaller_tile = 1;
  for (const MatmulShape shape : kShapes) {
    if (shape.m % 8 != 0) continue;  // unequal parts: the largest counts for all
    for (const Operation& operation :
         {all_gather_matmul(shape, 8), matmul_reduce_scatter(shape, 8), mlp_block(shape, 8)}) {
      const double product = operation.gemm_only_us(machine);
      for (const Variant& variant : operation.variants)
        EXPECT_NEAR(variant.us(machine) / product, 1, 1e-9) << operation.formula << " " << variant.name;
    }
  }
}

TEST(PlannerCatalogue, NothingIsFasterOnASlowerMachine) {
  const Machine machine = read_machine("h200-nvlink", 0);
  std::vector<Machine> slower(9, machine);
  slower[0].link_rate /= 2;
  slower[1].signal_us *= 3;
  slower[2].memory_rate /= 4;
  slower[3].collective_rate /= 2;
  slower[4].collective_us *= 2;
  slower[5].product_rate /= 1.5;
  slower[6].host_launch_us *= 2;
  slower[7].launch_us *= 2;
  slower[8].push_us *= 4;
  // An add that misses a wave's end waits for the next one: a little slower may be luckier.
  const auto luck = [](const std::string& name) { return name.starts_with("rotating") ? 0.99 : 1.0; };
  for (const int ranks : {2, 3, 8}) {
    for_all(ranks, [&](const Operation&, const Variant& variant) {
      for (std::size_t i = 0; i < slower.size(); ++i)
        EXPECT_GE(variant.us(slower[i]), luck(variant.name) * variant.us(machine) - 1e-9) << "machine " << i;
    });
  }
}

TEST(PlannerCatalogue, NothingIsFasterThanItsProduct) {
  const Machine machine = read_machine("h200-nvlink", 0);
  for (const int ranks : {2, 4, 8}) {
    for_all(ranks, [&](const Operation& operation, const Variant& variant) {
      if (!operation.gemm_only_us) return;
      EXPECT_GE(variant.us(machine), 0.999 * operation.gemm_only_us(machine));
    });
  }
}

TEST(PlannerCatalogue, BytesAreTheCostCards) {
  // A ring's bytes: all of A but the left neighbour's shard.
  const Operation operation = all_gather_matmul({4096, 16384, 4096}, 4);
  for (const Variant& variant : operation.variants) {
    EXPECT_EQ(variant.cost.bytes_out, 3 * 1024 * 4096 * 2) << variant.name;
  }
}

TEST(PlannerCatalogue, ExpectedRowsOfAllRanks) {
  EXPECT_EQ(expected_global(5'000'000, 50'000, 1), 50'000);
  EXPECT_EQ(expected_global(5'000'000, 50'000, 2), 99'500);  // less what both have: 500
  EXPECT_EQ(expected_global(10, 10, 3), 10);
}

TEST(PlannerCatalogue, TwoLevelsInOneNodeAreOneLevel) {
  const Machine machine = read_machine("h200-nvlink", 0);
  for (const int ranks : {1, 2, 8}) {
    for (const MatmulShape shape : kShapes) {
      const Operation operation = all_gather_matmul(shape, ranks, 8);
      const auto us = [&](const std::string& name) {
        for (const Variant& variant : operation.variants)
          if (variant.name == name) return variant.us(machine);
        return -1.0;
      };
      EXPECT_DOUBLE_EQ(us("two_level"), us("gemm_on_signals")) << ranks;
    }
  }
}

TEST(PlannerCatalogue, OfSparseSumsTheCardsOfChapter15) {
  // As the page of chapter 15 works them out: F = 2048, P = 2, N = 100,000, G = 99,500. Here with the plan's
  // one message: 16 bytes and a list of 50,000.
  const Operation operation = sparse_all_reduce({{5'000'000, 2048, 50'000}, 2, 99'500});
  const auto bytes = [&](const std::string& name) {
    for (const Variant& variant : operation.variants)
      if (variant.name == name) return variant.cost.bytes_in - (16 + 4 * 50'000);
    return std::int64_t{-1};
  };
  constexpr std::int64_t kRow = 2048 * 4;
  EXPECT_EQ(bytes("bitmap_plan"), 99'500 * kRow);
  EXPECT_EQ(bytes("range_owners"), (25'000 + 49'750) * kRow);
  EXPECT_EQ(bytes("contributor_owners"), (250 + 49'750) * kRow);
  EXPECT_EQ(bytes("owners_bf16"), (250 + 49'750) * kRow / 2);
  EXPECT_EQ(bytes("reduce_scatter"), 25'000 * kRow);
  EXPECT_EQ(bytes("scatter_fetch"), 50'000 * kRow);
}

TEST(PlannerReport, WhatGivesAnotherResultNeverWins) {
  const Machine machine = read_machine("h200-nvlink", 0);
  const Prediction prediction =
      predict(machine, 4, "f32", {sparse_all_reduce({{5'000'000, 2048, 50'000}, 4, 197'000})});
  const PredictedOperation& operation = prediction.operations[0];
  EXPECT_EQ(operation.winner, "15_sparse_beyond contributor_owners");
  std::set<std::string> faster;
  for (const PredictedVariant& variant : operation.variants)
    if (!variant.differs.empty()) faster.insert(variant.name);
  EXPECT_EQ(faster, (std::set<std::string>{"owners_bf16", "owners_f16", "reduce_scatter", "scatter_fetch"}));
}

TEST(PlannerReport, WhatNeedsPeersEndsAtTheNode) {
  const Machine machine = read_machine("h200-nvlink", 4);
  const Prediction prediction = predict(machine, 8, "f16", {all_gather_matmul({8192, 32768, 4096}, 8, 4)});
  for (const PredictedVariant& variant : prediction.operations[0].variants) {
    const bool leaves_the_node = variant.chapter < "04" || variant.chapter.starts_with("20");
    EXPECT_EQ(variant.why_not.empty(), leaves_the_node) << variant.name;
  }
  EXPECT_EQ(prediction.operations[0].winner, "20_two_nodes two_level");
}

TEST(PlannerReport, WhatBoundsIsWhatSavesMost) {
  const Machine machine = read_machine("h200-nvlink", 0);
  const auto bound_of = [&](const Operation& operation, const std::string& name) {
    const Prediction prediction = predict(machine, 8, "f16", {operation});
    for (const PredictedVariant& variant : prediction.operations[0].variants)
      if (variant.name == name) return variant.bound;
    ADD_FAILURE() << name;
    return Bound::kHost;
  };
  EXPECT_EQ(bound_of(all_gather_matmul({8192, 32768, 4096}, 8), "gemm_on_signals"), Bound::kProduct);
  EXPECT_EQ(bound_of(all_gather_matmul({8192, 2048, 8192}, 8), "ring_two_streams"), Bound::kLink);
  EXPECT_EQ(bound_of(all_gather_matmul({64, 512, 512}, 8), "ring_two_streams"), Bound::kLatency);
  EXPECT_EQ(bound_of(sparse_all_reduce({{5'000'000, 64, 50'000}, 8, 390'000}), "v2_where"), Bound::kHost);
}

}  // namespace
}  // namespace overlap::planner

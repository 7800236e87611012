// The waves that waves.hpp predicts with the model's tile, against times measured on real GPUs: chapter 05's
// sweep in docs/results.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "overlap/bench/waves.hpp"
#include "vgpu/control.hpp"

namespace virtual_only {
namespace {

using nlohmann::json;
using overlap::MatmulShape;
using overlap::Tile;
using overlap::Waves;

/// One measured GEMM.
struct Measured {
  Waves waves;
  double ms;
};

/// The GEMMs of a report's sweep; empty if it has no sweep.
std::vector<Measured> sweep_of(const json& run, Tile tile) {
  std::vector<Measured> products;
  if (run["chapter"] != "05_two_streams/sweep") return products;
  const std::int64_t multiprocessors = std::stoll(run["hardware"]["sms"].get<std::string>());
  for (const json& result : run["results"]) {
    if (result.value("section", "") != "sweep") continue;
    const MatmulShape shape{result["m"], result["n"].get<std::int64_t>() / result["gpus"].get<std::int64_t>(),
                            result["k"]};
    products.push_back({waves(shape, tile, multiprocessors), result["gemm_only_ms"]});
  }
  return products;
}

/// A GEMM whose last wave is nearly full takes a whole number of equally long waves; any other at most that,
/// because cuBLAS may choose smaller tiles.
TEST(MeasuredWavesTest, ExplainTheTimesOfProducts) {
  vgpu::reset();
  vgpu::use_machine("h100-nvlink");
  const Tile tile = overlap::backend::product_tile();
  vgpu::reset();
  constexpr double kTolerance = 0.06;
  constexpr double kFaster = 0.1;  // power lowers the clock of the longest GEMM, whose wave is the unit
  int full = 0, partial = 0;
  for (const auto& file : std::filesystem::directory_iterator(OVERLAP_RESULTS_DIR)) {
    if (file.path().extension() != ".json") continue;
    const json reports = json::parse(std::ifstream(file.path()));
    for (const json& run : reports["runs"]) {
      const std::vector<Measured> products = sweep_of(run, tile);
      if (products.empty()) continue;
      SCOPED_TRACE(file.path().filename());
      const double wave_ms = products.back().ms / static_cast<double>(products.back().waves.waves);
      for (const Measured& product : products) {
        const double waves_taken = product.ms / wave_ms;
        const auto predicted = static_cast<double>(product.waves.waves);
        SCOPED_TRACE(std::to_string(product.waves.tiles) + " tiles");
        EXPECT_LT(waves_taken, predicted * (1 + kTolerance));
        const bool nearly_full = product.waves.waste < 0.1;
        if (nearly_full) {
          EXPECT_GT(waves_taken, predicted * (1 - kFaster));
        }
        ++(nearly_full ? full : partial);
      }
    }
  }
  EXPECT_GE(full, 4) << "from 1024 rows on";
  EXPECT_GE(partial, 2);
}

}  // namespace
}  // namespace virtual_only

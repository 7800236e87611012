#include "overlap/program/chapter_info.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "overlap/gpu/backend.hpp"

namespace overlap {
namespace {

/// The sizes of `own`, or those of `usual` where `own` has none.
ChapterDefaults filled_in(const ChapterDefaults& own, const ChapterDefaults& usual) {
  return own.empty() ? usual : own;
}

ChapterInfo with(ChapterInfo info, const ChapterDefaults& on_virtual_gpus,
                 const ChapterDefaults& on_real_gpus, const ChapterDefaults& on_race_build,
                 const std::array<ElementType, 3>& types) {
  info.on_virtual_gpus = filled_in(info.on_virtual_gpus, on_virtual_gpus);
  info.on_real_gpus = filled_in(info.on_real_gpus, on_real_gpus);
  if (!info.on_race_build) info.on_race_build = on_race_build;
  if (info.types.empty()) info.types.assign(types.begin(), types.end());
  return info;
}

// An array, because chapters describe themselves before main(), when a vector may not be initialised yet.
constexpr std::array kDenseTypes = {ElementType::kF16, ElementType::kBf16, ElementType::kF32};
constexpr std::array kSparseTypes = {ElementType::kF32, ElementType::kF16, ElementType::kBf16};

}  // namespace

bool ChapterDefaults::empty() const {
  return shape == MatmulShape{} && per_gpu == MatmulShape{} && sparse.rows == 0;
}

MatmulShape ChapterDefaults::shape_on(int number_of_gpus) const {
  const auto added = [this, gpus = number_of_gpus](std::int64_t by_each) {
    const std::int64_t all = gpus * by_each;
    if (!backend::modelled_time() || gpus <= growing_to) return all;
    const std::int64_t whole_packs = 8 * gpus;  // TMA: each GPU's share of a row is a multiple of 16 bytes
    return std::min(all, (growing_to * by_each + whole_packs - 1) / whole_packs * whole_packs);
  };
  return {shape.m + added(per_gpu.m), shape.n + added(per_gpu.n), shape.k + added(per_gpu.k)};
}

std::vector<ElementType> ChapterInfo::element_types() const {
  return types.empty() ? std::vector<ElementType>{ElementType::kInt32} : types;
}

int ChapterInfo::max_gpus() const { return has_nodes && backend::modelled_time() ? 64 : 16; }

const ChapterDefaults& ChapterInfo::defaults() const {
  if (backend::instrumented() && on_race_build) return *on_race_build;
  return backend::modelled_time() ? on_virtual_gpus : on_real_gpus;
}

// A rank's shards have the same size on any number of GPUs.
ChapterInfo gather_chapter(ChapterInfo info) {
  return with(std::move(info), {.shape = {0, 0, 512}, .per_gpu = {128, 512, 0}, .gpus = 4, .iterations = 1},
              {.shape = {0, 0, 4096}, .per_gpu = {1024, 4096, 0}, .gpus = 16, .iterations = 30, .warmup = 5},
              {.shape = {0, 0, 24}, .per_gpu = {24, 32, 0}, .gpus = 4, .iterations = 1}, kDenseTypes);
}

ChapterInfo scatter_chapter(ChapterInfo info) {
  return with(std::move(info), {.shape = {0, 512, 0}, .per_gpu = {128, 0, 512}, .gpus = 4, .iterations = 1},
              {.shape = {0, 4096, 0}, .per_gpu = {1024, 0, 4096}, .gpus = 16, .iterations = 30, .warmup = 5},
              {.shape = {0, 24, 0}, .per_gpu = {24, 0, 32}, .gpus = 4, .iterations = 1}, kDenseTypes);
}

ChapterInfo sparse_chapter(ChapterInfo info) {
  return with(std::move(info), {.gpus = 4, .iterations = 1, .sparse = {4000, 32, 240}, .duplicates = 24},
              {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {5'000'000, 2048, 50'000}},
              {.gpus = 4, .iterations = 1, .sparse = {64, 8, 12}, .duplicates = 3}, kSparseTypes);
}

}  // namespace overlap

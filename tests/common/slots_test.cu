// Slots for data from other ranks: aligned, disjoint, in two sets.
#include "overlap/gpu/slots.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <set>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

TEST(SlotsTest, PitchIsRoundedUpToTheAlignmentOfCudaMalloc) {
  EXPECT_EQ(Slots<float>::pitch(0), 0);
  EXPECT_EQ(Slots<float>::pitch(1), 64);
  EXPECT_EQ(Slots<float>::pitch(64), 64);
  EXPECT_EQ(Slots<float>::pitch(65), 128);
  EXPECT_EQ(Slots<__half>::pitch(65), 128);
  EXPECT_EQ(Slots<__half>::pitch(129), 256);
}

TEST(SlotsTest, BytesAreThoseOfTwoSets) {
  EXPECT_EQ(Slots<float>::bytes(3, 65), 2 * 3 * 512);
  EXPECT_EQ(Slots<__half>::bytes(1, 128), 2 * 256);
  EXPECT_EQ(Slots<float>::bytes(0, 65), 0);
  EXPECT_EQ(Slots<__half>::bytes(2, std::int64_t{1} << 31), std::int64_t{1} << 34);
}

TEST(SlotsTest, CallsUseTheSetsInTurns) {
  run_ranks(1, [](Rank& rank) {
    const Slots<__half> slots(rank, 3, 100);
    EXPECT_EQ(slots.pitch(), 128);
    std::set<const __half*> places;
    for (const std::uint32_t epoch : {1U, 2U}) {
      for (int i = 0; i < 3; ++i) {
        const __half* const place = slots.on(0, i, epoch);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 256, 0U);
        EXPECT_EQ(slots.on(0, i, epoch + 2), place);
        places.insert(place);
      }
    }
    ASSERT_EQ(places.size(), 6U);
    for (auto place = places.begin(); std::next(place) != places.end(); ++place)
      EXPECT_EQ(*std::next(place) - *place, 128);
  });
}

// Each rank writes to every slot of every rank; no two slots overlap.
TEST(SlotsTest, EveryRankReachesItsSlotOnEveryOther) {
  constexpr int kRanks = 3;
  try {
    run_ranks(kRanks, [](Rank& rank) {
      const Slots<int> slots(rank, kRanks, 1);
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        for (int peer = 0; peer < kRanks; ++peer) {
          const int value = static_cast<int>(epoch) * 100 + peer * 10 + rank.id();
          CUDA_CHECK(cudaMemcpyAsync(slots.on(peer, rank.id(), epoch), &value, sizeof value,
                                     cudaMemcpyDefault, rank.stream()));
          rank.synchronize(rank.stream());
        }
      }
      rank.barrier();
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        for (int source = 0; source < kRanks; ++source) {
          int found = -1;
          CUDA_CHECK(cudaMemcpy(&found, slots.on(rank.id(), source, epoch), sizeof found, cudaMemcpyDefault));
          EXPECT_EQ(found, static_cast<int>(epoch) * 100 + rank.id() * 10 + source);
        }
      }
    });
  } catch (const Skip& skip) {
    GTEST_SKIP() << skip.what();
  }
}

}  // namespace
}  // namespace overlap

// Chapter 04 on any GPUs: the ring is right for every number of ranks and any sizes, call after call, and so
// are the first push and all transports.
#include <gtest/gtest.h>

#include "04_copy_engine/copy_engine_ring.cuh"
#include "04_copy_engine/experiments/message_sizes.cuh"
#include "04_copy_engine/experiments/patterns.cuh"
#include "04_copy_engine/experiments/transport_timing.cuh"
#include "04_copy_engine/first_push.cuh"
#include "dense_run.hpp"
#include "late_rank.hpp"
#include "overlap/bench/split_only.hpp"

namespace overlap::copy_engine {
namespace {

class OnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(CopyEngine, OnRanks, testing::Values(1, 2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(OnRanks, TheRingIsRightInAllTypes) {
  expect_all_right<CopyEngineRing<__half>, GatherProblem<__half>>(GetParam(), dense_shapes());
  expect_all_right<CopyEngineRing<__nv_bfloat16>, GatherProblem<__nv_bfloat16>>(GetParam(), dense_shapes());
  expect_all_right<CopyEngineRing<float>, GatherProblem<float>>(GetParam(), dense_shapes());
}

TEST_P(OnRanks, TheRingIsRightOnRandomSizes) {
  // 200 sizes in all, over the five numbers of ranks.
  const unsigned seed = 20261204 + GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_all_right<CopyEngineRing<__half>, GatherProblem<__half>>(GetParam(), random_shapes(40, seed), seed);
}

TEST_P(OnRanks, CallsFollowEachOtherAtOnce) {
  expect_right<CopyEngineRing<float>, GatherProblem<float>>(GetParam(), {13, 6, 5}, 1, calls_at_once(100));
}

TEST_P(OnRanks, TheSplitProductIsTheWholeProduct) {
  for (const int streams : {1, 2}) {
    for (const MatmulShape shape : {MatmulShape{64, 64, 32}, MatmulShape{5, 3, 7}}) {
      run_ranks(GetParam(), [&](Rank& rank) {
        GatherProblem<__half> problem(rank, shape, 1);
        SplitOnly<__half> split(rank, shape, streams);
        problem.fill_exact();
        problem.poison_result();
        split.run(problem.whole_a(), problem.b(), problem.c(), rank.stream());
        rank.synchronize(rank.stream());
        const Verification found = problem.compare_exact(false);
        EXPECT_TRUE(found.ok()) << describe(found);
      });
    }
  }
}

TEST_P(OnRanks, AllTransportsBringTheNeighboursShard) {
  if (GetParam() == 1) GTEST_SKIP() << "one rank has nobody to send to";
  for (const std::int64_t bytes : {1, 16, 1000, 5000}) {
    run_ranks(GetParam(), [&](Rank& rank) {
      Transports transports(rank, bytes);
      EXPECT_EQ(transports.bytes(), (bytes + 15) / 16 * 16);
      EXPECT_GE(transports.list().size(), 4u);
      EXPECT_NO_THROW(transports.verify(false));
    });
  }
  EXPECT_THROW(run_ranks(GetParam(),
                         [](Rank& rank) {
                           Transports transports(rank, 100);
                           transports.verify(true);
                         }),
               WrongResult);
}

TEST_P(OnRanks, TheCommunicationAloneEndsWhenAllShardsAreHere) {
  run_ranks(GetParam(), [](Rank& rank) {
    GatherProblem<float> problem(rank, {32, 16, 8}, 1);
    RingPush<float> ring(rank, problem.whole());
    problem.fill_exact();
    expect_all_wait_for_a_late_rank(rank, [&](cudaStream_t stream) { ring.run(problem.a(), stream); });
  });
}

TEST_P(OnRanks, ProductsOnTwoStreamsEndWithBoth) {
  if (GetParam() == 1) GTEST_SKIP() << "one product";
  run_ranks(GetParam(), [](Rank& rank) {
    GatherProblem<float> problem(rank, {32, 16, 8}, 1);
    SplitOnly<float> split(rank, problem.whole(), 2);
    problem.fill_exact();
    expect_is_waited_for(rank, rank.second_stream(), [&](cudaStream_t stream) {
      split.run(problem.whole_a(), problem.b(), problem.c(), stream);
    });
  });
}

TEST_P(OnRanks, APushOnTwoStreamsEndsWithBoth) {
  if (GetParam() == 1) GTEST_SKIP() << "one rank has nobody to send to";
  run_ranks(GetParam(), [](Rank& rank) {
    Transports transports(rank, 4096);
    const Transport& both = transports.list().back();
    ASSERT_EQ(both.name, "copy engine, push on 2 streams");
    expect_is_waited_for(rank, rank.transfer_stream(1), [&](cudaStream_t stream) { both.send(2, stream); });
  });
}

unsigned char shard_byte(int rank, std::size_t i) {
  return static_cast<unsigned char>(1 + 31 * rank + 7 * i);
}

TEST_P(OnRanks, EachPatternBringsEveryShardToItsPlace) {
  constexpr std::size_t kBytes = 48;
  using Order = DirectAllGather::Order;
  run_ranks(GetParam(), [](Rank& rank) {
    for (const Order order : {Order::kPushLeft, Order::kPullRight, Order::kPushSameOrder}) {
      DirectAllGather gather(rank, kBytes, order);
      std::vector<unsigned char> own(kBytes), found(kBytes * rank.size());
      for (std::size_t i = 0; i < kBytes; ++i) own[i] = shard_byte(rank.id(), i);
      CUDA_CHECK(cudaMemcpy(gather.own(), own.data(), kBytes, cudaMemcpyHostToDevice));
      CUDA_CHECK(cudaMemset(gather.all(), 0, found.size()));
      CUDA_CHECK(cudaDeviceSynchronize());
      rank.barrier();
      gather.run(rank.stream());
      rank.synchronize(rank.stream());
      rank.barrier();  // the pushes of the other ranks have arrived
      CUDA_CHECK(cudaMemcpy(found.data(), gather.all(), found.size(), cudaMemcpyDeviceToHost));
      for (std::size_t i = 0; i < found.size(); ++i) {
        const int shard = static_cast<int>(i / kBytes);
        if (shard == rank.id()) continue;  // it is the rank's own shard, which is not copied
        ASSERT_EQ(found[i], shard_byte(shard, i % kBytes))
            << "order " << static_cast<int>(order) << ", rank " << rank.id() << ", byte " << i;
      }
    }
  });
}

TEST_P(OnRanks, ATransferAndAProductAreTimedEachByItsOwnEnd) {
  run_ranks(GetParam(), [](Rank& rank) {
    LateWork late(rank);
    SideBySideTimer timer(rank);
    const auto takes = [&](int rounds) {
      return [&late, rounds](cudaStream_t stream) { late.start(stream, rounds); };
    };
    const SideBySideTimer::Enqueue longer = takes(1 << 17);
    const SideBySideTimer::Enqueue shorter = takes(1 << 12);
    const SideBySide product = timer.run(longer, shorter, true), transfer = timer.run(shorter, longer, true);
    EXPECT_GT(product.product_ms, 2 * product.transfer_ms);
    EXPECT_GT(transfer.transfer_ms, 2 * transfer.product_ms);
    EXPECT_GT(timer.run(longer, {}, true).product_ms, 0);
    EXPECT_EQ(timer.run(longer, {}, true).transfer_ms, 0);
    EXPECT_EQ(timer.run({}, longer, true).product_ms, 0);
  });
}

TEST(FirstPushTest, MessagesArrive) {
  for (const int elements : {1, 255, 1000}) {
    run_ranks(2, [&](Rank& rank) {
      FirstPush contact(rank, elements);
      contact.push(1);
      EXPECT_TRUE(contact.compare(1).ok());
      EXPECT_FALSE(contact.compare(2).ok());  // another message would be an error
      rank.barrier();
      contact.push(2);
      EXPECT_TRUE(contact.compare(2).ok());
      rank.barrier();
      for (int number = 3; number < 10; ++number) contact.pull(number);
      EXPECT_TRUE(contact.compare(9).ok());
    });
  }
}

TEST(FirstPushTest, TakesTwo) {
  EXPECT_THROW(run_ranks(1, [](Rank& rank) { FirstPush contact(rank, 1); }), std::runtime_error);
}

TEST(FitLineTest, FindsTheLine) {
  const std::vector<double> x = {16, 64, 256, 1024}, y = {3 + 8, 3 + 32, 3 + 128, 3 + 512};
  const Line line = fit_line(x, y);
  EXPECT_NEAR(line.a, 3, 1e-9);
  EXPECT_NEAR(line.b, 0.5, 1e-12);
}

TEST(FitLineTest, RelativeErrorsCountAlike) {
  // Ten per cent more at one end, ten per cent less at the other: the small message counts as the large one
  // does.
  const Line line = fit_line(std::vector<double>{1, 1, 1000, 1000}, std::vector<double>{0.9, 1.1, 900, 1100});
  EXPECT_NEAR(line.a + line.b, 0.98, 0.01);  // least squares of relative errors: below the mean
  EXPECT_NEAR((line.a + 1000 * line.b) / 1000, 0.98, 0.01);
}

TEST(FitLineTest, RefusesWhatIsNoLine) {
  EXPECT_THROW(fit_line(std::vector<double>{1}, std::vector<double>{1}), std::invalid_argument);
  EXPECT_THROW(fit_line(std::vector<double>{2, 2}, std::vector<double>{1, 3}), std::invalid_argument);
  EXPECT_THROW(fit_line(std::vector<double>{1, 2}, std::vector<double>{1}), std::invalid_argument);
  EXPECT_THROW(fit_line(std::vector<double>{1, 2}, std::vector<double>{0, 1}), std::invalid_argument);
}

TEST(CopyEngineCost, IsThePagesCostCard) {
  // 8 ranks with 1024 rows each, k = 4096, f16: shards of 8 MiB.
  const Cost cost = CopyEngineRing<__half>::cost({8192, 32768, 4096}, 8, 3);
  EXPECT_EQ(cost.products, 8);
  EXPECT_EQ(cost.messages, 7);
  EXPECT_EQ(cost.bytes_out, 58'720'256);
  EXPECT_EQ(cost.bytes_in, 58'720'256);
  EXPECT_EQ(cost.memory, 117'440'512);
}

TEST(CopyEngineCost, SlotsBeginAsCudaMallocAligns) {
  for (const MatmulShape shape : {MatmulShape{5, 3, 7}, MatmulShape{33, 37, 29}, MatmulShape{64, 64, 32}}) {
    for (const int ranks : {2, 3, 8}) {
      EXPECT_EQ(CopyEngineRing<__half>::cost(shape, ranks, 0).memory % (2 * (ranks - 1) * 256), 0);
      EXPECT_EQ(CopyEngineRing<float>::cost(shape, ranks, 0).memory % (2 * (ranks - 1) * 256), 0);
    }
  }
}

TEST(CopyEngineCost, CountsUnevenShares) {
  // 5 rows on 3 ranks: 2, 2, 1. Rank 0 does not send the shard of its left neighbour, rank 2.
  const Cost first = RingPush<float>::cost({5, 1, 10}, 3, 0);
  EXPECT_EQ(first.bytes_out, 4 * 10 * (5 - 1));
  EXPECT_EQ(first.bytes_in, 4 * 10 * (5 - 2));
  EXPECT_EQ(first.products, 0);  // the transfers alone
  EXPECT_EQ(RingPush<float>::cost({5, 1, 10}, 1, 0).bytes_out, 0);
}

TEST(CopyEngineCost, CountsProductsOfWhatHasRowsAndColumns) {
  EXPECT_EQ(CopyEngineRing<float>::cost({5, 3, 10}, 3, 2).products, 3);
  EXPECT_EQ(CopyEngineRing<float>::cost({2, 3, 10}, 3, 2).products, 2);  // the last shard has no rows
  EXPECT_EQ(CopyEngineRing<float>::cost({5, 2, 10}, 3, 2).products, 0);  // the last rank has no columns
}

}  // namespace
}  // namespace overlap::copy_engine

// Operations of libraries have timeline entries without code of their own.
#include <gtest/gtest.h>

#include <memory>

#include "engine/runtime.hpp"

namespace virtual_only {
namespace {

constexpr double kDuration = 500;  // ns

class Product final : public vgpu::Operation {
 public:
  void begin(double now) override { finish(now + kDuration); }
  std::string describe() const override { return "product of a library"; }
};

/// Takes time but occupies nothing, like a wait for a signal.
class Pause final : public vgpu::Operation {
 public:
  void begin(double now) override { finish(now + kDuration); }
  std::string describe() const override { return "pause"; }
  bool only_waits() const override { return true; }
};

TEST(TimelineOperationsTest, AnyOperationIsABarAndAWaitIsAGap) {
  vgpu::reset();
  vgpu::record_timeline();
  vgpu::Runtime& runtime = vgpu::runtime();
  vgpu::Stream& stream = runtime.device(2).add_stream(false);
  vgpu::push_label("step");
  runtime.queues().enqueue(stream, std::make_unique<Product>());
  runtime.queues().enqueue(stream, std::make_unique<Pause>());
  runtime.queues().enqueue(stream, std::make_unique<Product>());
  vgpu::pop_label();
  runtime.waits().wait(stream.last());
  const auto entries = vgpu::timeline();
  ASSERT_EQ(entries.size(), 2u);
  for (const auto& entry : entries) {
    EXPECT_EQ(entry.work.kind, "kernel");
    EXPECT_EQ(entry.work.name, "product of a library");
    EXPECT_EQ(entry.device, 2);
    EXPECT_EQ(entry.stream, 1);
    EXPECT_EQ(entry.engine, "");
    EXPECT_EQ(entry.labels, std::vector<std::string>{"step"});
    EXPECT_NEAR(entry.end - entry.begin, kDuration, 1e-6);
  }
  EXPECT_NEAR(entries[1].begin - entries[0].end, kDuration, 1e-6);
  vgpu::reset();
}

}  // namespace
}  // namespace virtual_only

// A kernel launch as an operation of a stream.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "engine/kernel/block.hpp"
#include "engine/model/device.hpp"
#include "engine/runtime.hpp"

namespace vgpu {

class KernelLaunch final : public Operation {
 public:
  KernelLaunch(Runtime& runtime, Device& device, Grid grid, std::shared_ptr<const KernelBody> body);

  void begin(double now) override;
  void offer(std::vector<Step>& steps) override;
  void step(const Step& step) override;
  std::string describe() const override { return "kernel '" + grid_.name + "'"; }
  std::string progress() const override;
  std::shared_ptr<Primary> as_primary() override;
  bool polls(const void* word) const override;
  std::unique_ptr<Operation> again() const override {
    return std::make_unique<KernelLaunch>(runtime_, device_, grid_, body_);
  }
  Work work() const override { return {"kernel", grid_.name}; }

 private:
  /// A block on a multiprocessor that has not finished.
  struct Resident {
    std::unique_ptr<Block> block;
    std::shared_ptr<Cluster> cluster;  // of several blocks; else null
    int multiprocessor, place_id;
    double time;  // modelled, ns
    bool triggered = false;
  };

  /// A block, or all of a cluster.
  void start(double time);
  void offer_residents();
  /// Runs the block as far as it gets. Returns true if it stays resident.
  bool advance(Resident& resident);
  void note_trigger(Resident& resident, double time);
  void end();
  double duration(std::uint64_t basic_blocks) const;
  /// "; 16 threads of blocks (0,0,0), (1,0,0) poll ...": the words that threads look at again and again.
  std::string polled_words() const;

  Runtime& runtime_;
  Device& device_;
  Grid grid_;
  std::shared_ptr<const KernelBody> body_;
  Footprint footprint_;
  BlockRange blocks_;  // that run
  std::uint64_t total_, started_ = 0, finished_ = 0, triggered_ = 0;
  std::shared_ptr<Primary> as_primary_;  // what dependents see of it
  bool awaits_primary_ = true;           // as far as its blocks know
  std::vector<std::uint32_t> order_;     // in which clusters start, with a seed
  double start_ = 0, end_ = 0;
  int share_ = 1;  // blocks that share a multiprocessor's throughput
  std::list<Resident> residents_;
  std::vector<Step> offered_;  // the residents' steps: the same until this kernel makes one
  bool changed_ = true;        // and `offered_` is out of date
  bool stuck_ = false;

  std::vector<Multiprocessors::Place> places_;  // for the next cluster; empty: none
  std::uint64_t place_version_ = ~std::uint64_t{0};
};

}  // namespace vgpu

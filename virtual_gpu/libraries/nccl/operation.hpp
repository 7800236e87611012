// What the calls of one rank, a single one or those of a group, become in a stream: NCCL's kernel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libraries/nccl/communicator.hpp"

namespace vgpu::nccl {

/// Takes a multiprocessor for each channel, then takes part in its exchanges, and ends when all of them can.
class NcclOperation final : public Operation {
 public:
  NcclOperation(Runtime& runtime, std::shared_ptr<Communicator> communicator);
  NcclOperation(const NcclOperation&) = delete;
  NcclOperation& operator=(const NcclOperation&) = delete;
  ~NcclOperation() override;

  /// Takes part in the exchange with that call. `stream` is the one that the operation will be in.
  void add(std::shared_ptr<Exchange> exchange, const Call& call, Stream& stream);
  /// Gives up at modelled time `now`, ns; the stream goes on.
  void abort(double now);

  void begin(double now) override;
  void offer(std::vector<Step>& steps) override;
  void step(const Step& step) override;
  std::string describe() const override;
  std::string progress() const override;
  bool touches(const void* memory, std::size_t bytes) const override;
  bool only_waits() const override { return aborted_; }

 private:
  struct Part {
    std::shared_ptr<Exchange> exchange;
    int index;  // of the rank's side
    Side& side() const { return *exchange->side(index); }
  };
  struct Channel {
    int multiprocessor, place_id;
  };

  void start_channel(double time);
  void arrive();
  void release_channels(double end);
  void lose_parts();

  Runtime& runtime_;
  std::shared_ptr<Communicator> communicator_;
  Device& device_;
  Footprint footprint_;
  std::size_t channels_wanted_;
  std::vector<Part> parts_;
  std::vector<Channel> channels_;
  double start_ = 0, arrival_ = 0;
  bool aborted_ = false;

  Multiprocessors::Place place_{};  // for the next channel
  bool has_place_ = false;
  std::uint64_t place_version_ = ~std::uint64_t{0};
};

}  // namespace vgpu::nccl

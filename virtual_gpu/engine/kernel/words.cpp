#include "engine/kernel/words.hpp"

#include "engine/kernel_records.hpp"
#include "race/happens_before.hpp"

namespace vgpu {

std::string describe(const ProgramPlace& place) {
  if (place.file == nullptr) return {};
  const std::string path = place.file;
  return " at " + path.substr(path.rfind('/') + 1) + ":" + std::to_string(place.line);
}

std::string describe(const AtomicCall& call) {
  return call.name + (call.caller == nullptr ? vgpu::describe(call.at) : at_line(call.caller));
}

std::string PassedWait::describe() const {
  const std::string asked = parity ? "1" : "0";
  return "The wait" + at_line(caller) + " for parity " + asked +
         " returned at once: the mbarrier was in phase " + std::to_string(phase) +
         ", and so the phase before, of parity " + asked + ", counts as complete.";
}

std::string Handover::describe_missing(std::uint64_t thread, bool one_block, Fences reader_passed) const {
  constexpr std::uint64_t kNumbers = (std::uint64_t{1} << 56) - 1;  // without the bits of the launch
  if (!KernelRecords::same_block(thread, writer & kNumbers)) return {};
  bool releases = write.releases() || writer_passed.order(one_gpu, one_block);
  const bool acquires = read.acquires() || reader_passed.order(one_gpu, one_block);
  // A fence that the same thread passed before its access.
  if (acquires && !write.releases() && thread == (writer & kNumbers)) releases = false;
  if (releases && acquires) return {};
  const std::string fence = one_gpu ? "__threadfence()" : "__threadfence_system()";
  const auto lacks = [&fence](const AtomicCall& call, const char* order, const char* between) {
    return " the " + vgpu::describe(call) + " lacks " +
           (call.takes_order() ? std::string(order) + " instead of relaxed" : fence + " between " + between);
  };
  std::string text = "The word that hands the data over does not order them:";
  if (!releases) text += lacks(write, "release", "the access and it");
  if (!releases && !acquires) text += ", and";
  if (!acquires) text += lacks(read, "acquire", "it and the access");
  return text + ".";
}

}  // namespace vgpu

#include "engine/kernel/words.hpp"

#include "engine/hopper/caller_line.hpp"
#include "engine/kernel_records.hpp"

namespace vgpu {

std::string describe(const ProgramPlace& place) {
  if (place.file == nullptr) return {};
  const std::string path = place.file;
  return " at " + path.substr(path.rfind('/') + 1) + ":" + std::to_string(place.line);
}

std::string describe(const AtomicCall& call) { return call.name + vgpu::describe(call.at); }

std::string PassedWait::describe() const {
  const std::string asked = parity ? "1" : "0";
  return "The wait" + at_line(caller) + " for parity " + asked +
         " returned at once: the mbarrier was in phase " + std::to_string(phase) +
         ", and so the phase before, of parity " + asked + ", counts as complete.";
}

std::string Handover::describe_missing(std::uint64_t thread) const {
  constexpr std::uint64_t kNumbers = (std::uint64_t{1} << 56) - 1;  // without the bits of the launch
  const bool releases = write.releases(), acquires = read.acquires();
  if ((releases && acquires) || !KernelRecords::same_block(thread, writer & kNumbers)) return {};
  const auto lacks = [](const AtomicCall& call, const char* order, const char* where) {
    const std::string fence = std::string("__threadfence() ") + where + " " + call.name;
    return call.takes_order() ? std::string(order) + " instead of relaxed" : fence;
  };
  std::string text = "The word that hands the data over orders nothing:";
  if (!releases) text += " the " + vgpu::describe(write) + " lacks " + lacks(write, "release", "before");
  if (!releases && !acquires) text += ", and";
  if (!acquires) text += " the " + vgpu::describe(read) + " lacks " + lacks(read, "acquire", "behind");
  return text + ".";
}

}  // namespace vgpu

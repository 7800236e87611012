#include "race/run_facts.hpp"

#include "engine/runtime.hpp"

namespace vgpu {

std::string describe_memory(const void* address) {
  Runtime* runtime = runtime_if_started();
  if (runtime == nullptr) return {};
  if (const void* word = runtime->atomic_scopes().word_of(address)) address = word;
  const Allocation* allocation = runtime->memory().find(address);
  if (allocation == nullptr) return "shared memory of a block, or memory that CUDA did not allocate";
  const auto offset = static_cast<const std::byte*>(address) - allocation->begin;
  const std::string made = hb::describe(allocation->site);
  const std::string inside = "inside ";
  return "byte " + std::to_string(offset) + " of " + runtime->memory().locate(address).substr(inside.size()) +
         (made.empty() ? "" : ", made at " + made);
}

bool are_scopes(const void* address) {
  Runtime* runtime = runtime_if_started();
  return runtime != nullptr && runtime->atomic_scopes().word_of(address) != nullptr;
}

std::string describe_schedule() {
  Runtime* runtime = runtime_if_started();
  return runtime == nullptr ? "" : runtime->scheduler().describe();
}

}  // namespace vgpu

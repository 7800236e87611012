// What kernels call through overlap/gpu/wgmma.hpp.
#include "vgpu/wgmma.h"

#include <cstring>

#include "api/in_unit.hpp"

namespace vgpu {

void wgmma(float* fragment, const WgmmaRequest& request) {
  const void* caller = __builtin_return_address(0);
  in_unit("mma", [&](Block&, AsyncUnit& unit) { unit.products.multiply(fragment, request, caller); });
}

void wgmma_fence() {
  if (hb::left_out("wgmma fence")) return;
  in_unit("fence", [](Block&, AsyncUnit& unit) { unit.products.fence(); });
}

void wgmma_commit() {
  if (hb::left_out("wgmma commit")) return;
  in_unit("commit", [](Block&, AsyncUnit& unit) { unit.products.commit(); });
}

void wgmma_wait(unsigned int pending) {
  if (hb::left_out("wgmma wait")) return;
  in_unit("wait", [&](Block&, AsyncUnit& unit) { unit.products.wait(pending); });
}

void begin_fragment(float* values, int count) {
  const hb::RuntimeScope scope;
  std::memset(values, 0xff, sizeof(float) * static_cast<std::size_t>(count));
}

void end_fragment(const float* values) {
  in_unit("~Fragment", [&](Block&, AsyncUnit& unit) { unit.products.end_fragment(values); });
}

void set_registers(int count, bool more) {
  const void* caller = __builtin_return_address(0);
  in_unit("registers_up", [&](Block&, AsyncUnit& unit) { unit.registers.set(count, more, caller); });
}

bool elect_one() { return running_block("elect_one").elect(); }

void named_barrier(int id, int threads) {
  if (hb::left_out("named_barrier")) return;
  const void* caller = __builtin_return_address(0);
  in_unit("named_barrier", [&](Block&, AsyncUnit& unit) { unit.meetings.wait(id, threads, caller); });
}

// Each lane stores the row whose address it gives: four words, which four lanes have.
void store_matrix(void* row, const std::uint32_t* pairs) {
  constexpr int kMatrices = 4, kRowBytes = 16, kWords = kRowBytes / 4;
  const void* caller = __builtin_return_address(0);
  Block& block = running_block("store_matrix");
  const int matrix = block.current().lane / 8, first_lane = block.current().lane % 8 * kWords;
  std::uint32_t words[kWords] = {};
  unsigned int present = 0;
  for (int i = 0; i < kMatrices; i += 2) {
    const std::uint64_t two = pairs[i] | std::uint64_t{pairs[i + 1]} << 32;
    const std::uint64_t* all = block.exchange(0xffffffffu, two, &present, false);
    for (int word = 0; matrix / 2 == i / 2 && word < kWords; ++word)
      words[word] = static_cast<std::uint32_t>(all[first_lane + word] >> 32 * (matrix % 2));
  }
  in_unit("store_matrix", [&](Block& own, AsyncUnit&) {
    if (present != 0xffffffffu)
      own.fault(own.who() + "calls store_matrix() in a warp that lacks some of its 32 lanes");
    if (!own.shared().offset_of(row, kRowBytes))
      own.fault(own.who() + "calls store_matrix() with a row that is not in the shared memory of its block");
    if (reinterpret_cast<std::uintptr_t>(row) % kRowBytes != 0) {
      own.fault(own.who() + "calls store_matrix() with a row at an address that is no multiple of 16",
                cudaErrorMisalignedAddress);
    }
    own.note_access(row, kRowBytes, true, caller);
    std::memcpy(row, words, kRowBytes);
  });
}

}  // namespace vgpu

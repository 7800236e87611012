// What kernels call through <cuda/ptx>.
#include "vgpu/bulk_copy.h"

#include <algorithm>
#include <string>

#include "api/in_unit.hpp"
#include "vgpu/wgmma.h"

namespace vgpu {
namespace {

constexpr int kBulkAlignment = 16, kTensorAlignment = 128, kMapAlignment = 64;

constexpr const char* kIssues = "issues a bulk copy ";

void require_multiple(Block& block, const void* address, int alignment, const char* what,
                      const char* action = kIssues) {
  if (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(alignment) == 0) return;
  block.fault(block.who() + action + what + " an address that is no multiple of " + std::to_string(alignment),
              cudaErrorMisalignedAddress);
}

void require_shared(Block& block, const BulkRequest& request) {
  if (block.shared().offset_of(request.shared, request.bytes)) return;
  block.fault(block.who() + "issues a bulk copy of " + std::to_string(request.bytes) +
              " bytes whose shared side is not in the shared memory of its block");
}

/// Addresses of copies are not constant: one kind of request does for both directions.
std::byte* bytes_at(const void* address) { return static_cast<std::byte*>(const_cast<void*>(address)); }

BulkRequest linear(Block& block, const void* shared, const void* global, std::uint32_t bytes,
                   const void* caller) {
  BulkRequest request{bytes_at(shared), bytes_at(global), bytes, false, {}, {}, caller};
  if (bytes == 0 || bytes % kBulkAlignment != 0) {
    block.fault(block.who() + "issues a bulk copy of " + std::to_string(bytes) +
                    " bytes: it must be a multiple of 16, and not 0",
                cudaErrorMisalignedAddress);
  }
  require_multiple(block, shared, kBulkAlignment, "with, in shared memory,");
  require_multiple(block, global, kBulkAlignment, "with, in global memory,");
  require_shared(block, request);
  return request;
}

TensorMap tensor_map(Block& block, const void* map, const char* action) {
  TensorMap read;
  require_multiple(block, map, kMapAlignment, "with a tensor map at", action);
  if (!read_tensor_map(map, read)) {
    block.fault(block.who() + action +
                "with an invalid tensor map: cuTensorMapEncodeTiled makes one, and a kernel takes it as "
                "const __grid_constant__ CUtensorMap");
  }
  return read;
}

BulkRequest box(Block& block, const void* shared, const void* map, const std::int32_t* at, int rank,
                const void* caller) {
  BulkRequest request{bytes_at(shared), nullptr, 0, true, tensor_map(block, map, kIssues), {}, caller};
  if (request.map.rank != rank) {
    block.fault(block.who() + "issues a bulk copy with " + std::to_string(rank) +
                " coordinates for a tensor of " + std::to_string(request.map.rank) + " dimensions");
  }
  std::copy(at, at + rank, request.at);
  // Met on an H200; the PTX ISA says so of the addresses of bulk copies only.
  if (const std::int64_t begin = std::int64_t{at[0]} * request.map.element_bytes;
      begin % kBulkAlignment != 0) {
    block.fault(block.who() + "issues a bulk copy of a box that begins at byte " + std::to_string(begin) +
                    " of the tensor's rows, which is no multiple of 16",
                cudaErrorIllegalInstruction);
  }
  request.bytes = request.map.box_bytes();
  require_multiple(block, shared, kTensorAlignment, "of a tensor with, in shared memory,");
  require_shared(block, request);
  return request;
}

BulkRequest box_to_store(Block& block, const void* shared, const void* map, const std::int32_t* at, int rank,
                         const void* caller) {
  const BulkRequest request = box(block, shared, map, at, rank, caller);
  if (std::any_of(at, at + rank, [](std::int32_t index) { return index < 0; })) {
    // Met on an H200. A load takes zeros from there.
    block.fault(block.who() + "issues a bulk store of a box with a negative index",
                cudaErrorIllegalInstruction);
  }
  return request;
}

}  // namespace

void mbarrier_init(std::uint64_t* barrier, std::uint32_t count) {
  const void* caller = __builtin_return_address(0);
  in_unit("mbarrier_init", [&](Block&, AsyncUnit& unit) { unit.barriers.init(barrier, count, caller); });
}

void fence_mbarrier_init() {
  in_unit("fence_mbarrier_init",
          [](Block& block, AsyncUnit& unit) { unit.barriers.publish(block.current_number(), false); });
}

std::uint64_t mbarrier_arrive(std::uint64_t* barrier, std::uint32_t count, std::uint32_t bytes,
                              bool release) {
  const void* caller = __builtin_return_address(0);
  if (hb::left_out("mbarrier_arrive")) release = false;  // without the arrival all would only hang
  return in_unit("mbarrier_arrive", [&](Block& block, AsyncUnit& unit) {
    return unit.barriers.arrive(block, barrier, count, bytes, release, caller);
  });
}

bool mbarrier_wait(std::uint64_t* barrier, bool parity, bool may_wait, bool acquire) {
  if (hb::left_out("mbarrier_wait")) return true;
  const void* caller = __builtin_return_address(0);
  std::uint64_t bits = 0;
  const bool complete = in_unit("mbarrier_wait", [&](Block&, AsyncUnit& unit) {
    const bool is = unit.barriers.wait(barrier, parity, may_wait, acquire, caller);
    bits = unit.barriers.bits(barrier);
    return is;
  });
  if (!complete && !may_wait) running_block("mbarrier_wait").look(barrier, bits, 0);
  return complete;
}

void bulk_load(void* shared, const void* global, std::uint32_t bytes, std::uint64_t* barrier) {
  const void* caller = __builtin_return_address(0);
  in_unit("cp_async_bulk", [&](Block& block, AsyncUnit& unit) {
    unit.load(linear(block, shared, global, bytes, caller), barrier);
  });
}

void bulk_store(void* global, const void* shared, std::uint32_t bytes) {
  const void* caller = __builtin_return_address(0);
  in_unit("cp_async_bulk", [&](Block& block, AsyncUnit& unit) {
    unit.copies.store(linear(block, shared, global, bytes, caller));
  });
}

void tensor_load(void* shared, const void* map, const std::int32_t* at, int rank, std::uint64_t* barrier) {
  const void* caller = __builtin_return_address(0);
  in_unit("cp_async_bulk_tensor", [&](Block& block, AsyncUnit& unit) {
    unit.load(box(block, shared, map, at, rank, caller), barrier);
  });
}

void tensor_multicast(void* shared, const void* map, const std::int32_t* at, int rank, std::uint64_t* barrier,
                      std::uint16_t mask) {
  const void* caller = __builtin_return_address(0);
  in_unit("cp_async_bulk_tensor", [&](Block& block, AsyncUnit& unit) {
    if (mask == 0) block.fault(block.who() + "issues a multicast copy to no block: its mask is 0");
    unit.load(box(block, shared, map, at, rank, caller), barrier, mask);
  });
}

void tensor_store(const void* map, const std::int32_t* at, int rank, const void* shared) {
  const void* caller = __builtin_return_address(0);
  in_unit("cp_async_bulk_tensor", [&](Block& block, AsyncUnit& unit) {
    unit.copies.store(box_to_store(block, shared, map, at, rank, caller));
  });
}

void tensor_add(const void* map, const std::int32_t* at, int rank, const void* shared) {
  const void* caller = __builtin_return_address(0);
  in_unit("cp_reduce_async_bulk_tensor", [&](Block& block, AsyncUnit& unit) {
    BulkRequest request = box_to_store(block, shared, map, at, rank, caller);
    request.adds = true;
    if (request.map.element == TensorElement::kOther) {
      block.fault(block.who() + "issues a bulk addition to a tensor of " +
                  std::to_string(request.map.element_bytes) +
                  "-byte elements that are not added here: half, nv_bfloat16, float, whole numbers of 32 "
                  "bits and unsigned ones of 64 are");
    }
    block.require_native_atomics(request.map.address, " by a bulk addition");
    unit.copies.store(request);
  });
}

void bulk_commit() {
  if (hb::left_out("cp_async_bulk_commit_group")) return;
  in_unit("cp_async_bulk_commit_group", [](Block&, AsyncUnit& unit) { unit.copies.commit(); });
}

void bulk_wait(unsigned int prior, bool read) {
  if (hb::left_out("cp_async_bulk_wait_group")) return;
  in_unit("cp_async_bulk_wait_group", [&](Block&, AsyncUnit& unit) { unit.copies.wait(prior, read); });
}

void fence_proxy_async(bool shared, bool global) {
  if (hb::left_out("fence_proxy_async")) return;
  in_unit("fence_proxy_async", [&](Block& block, AsyncUnit& unit) {
    if (shared) unit.barriers.publish(block.current_number(), true);
    if (shared) block.fence_proxy(Space::kShared);
    if (global) block.fence_proxy(Space::kGlobal);
  });
}

void prefetch_tensor_map(const void* map) {
  in_unit("prefetch_map", [&](Block& block, AsyncUnit&) { tensor_map(block, map, "calls prefetch_map() "); });
}

// Of kernel.h, which declares the built-in variables constant.
std::size_t shared_offset(const void* address);
std::size_t shared_offset(const void* address) {
  Block& block = running_block("__cvta_generic_to_shared");
  const Block::RuntimeTurn turn(block, block.current());
  const auto offset = block.shared().offset_of(address, 1);
  if (!offset) block.fault(block.who() + "asks for the shared address of memory that is not shared");
  return *offset;
}

}  // namespace vgpu

// Direct access of GPUs to each other's memory, proved before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace overlap {

/// What a copy from one GPU to another brought.
struct PeerCopy {
  bool direct = false;  ///< the two have peer access: the copy goes over their link, not through host memory
  std::size_t elements = 0;     ///< copied, of 4 bytes
  std::size_t wrong = 0;        ///< that did not arrive
  std::size_t first_wrong = 0;  ///< index of the first of them
  std::uint32_t expected = 0;   ///< what it should be
  std::uint32_t found = 0;      ///< what it is
};

/// Lets the two GPUs reach each other's memory, if they can, copies a pattern of 256 KiB and compares every
/// element.
PeerCopy prove_copy(int from, int to);

/// Lets GPUs 0 ... gpus - 1 reach each other's memory and proves every ordered pair by prove_copy(), once in
/// a process: a pair that was right is not proved again. Throws Skip with the pair that has no peer access,
/// WrongResult with the pair whose copy arrived wrong.
void require_peer_access(int gpus);

}  // namespace overlap

// Replays a whole log: on virtual GPUs of this process, which must be fresh.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "call_log.hpp"
#include "overlap/data/cost.hpp"
#include "overlap/data/verify.hpp"
#include "replay_case.hpp"

namespace overlap::teaching {

/// What went from one rank's GPU to another's, in all calls of the algorithm.
struct LinkCount {
  int from, to;
  std::int64_t bytes, messages;
};

/// What a rank did in all calls of the algorithm, as far as it can be counted.
struct RankCount {
  std::int64_t bytes_out, bytes_in;             ///< by copies and NCCL
  std::int64_t products, launches, host_waits;  ///< in the log
  /// Equal in all.
  bool operator==(const RankCount&) const = default;
};

/// What a replay has shown.
struct Replayed {
  Verification found = {};            ///< all elements of all calls on all ranks; none if the log was stopped
  std::string failure = {};           ///< the first call that failed; empty: none
  bool deadlock = false;              ///< ... since nothing could happen any more
  std::vector<LinkCount> links = {};  ///< links that something went over; only if it was to count
};

/// Makes the log's calls again. `counts`: each rank waits for its GPU and for all ranks before the first
/// call, so that what the constructor moves is not counted; that also orders, so such a replay does not
/// judge.
Replayed replay(const CallLog& log, const ReplayCase& wanted, bool counts);

/// What the log and the links say of each rank.
std::vector<RankCount> counted(const CallLog& log, const std::vector<LinkCount>& links);
/// The most bytes that each rank has allocated on GPUs at a time, from its first call of the algorithm on.
std::vector<std::int64_t> memory_held(const CallLog& log);
/// What the cost card says of each rank, for all calls.
std::vector<RankCount> expected(const ReplayCase& wanted);

}  // namespace overlap::teaching

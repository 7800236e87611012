// What a log must keep to before it is replayed.
#pragma once

#include <string>
#include <string_view>

#include "call_log.hpp"

namespace overlap::teaching {

/// Text of the log as a sentence may show it: at most 200 characters, without what is not printable.
std::string shown(std::string_view text);

/// Fills log.memory and log.stopped. Throws LogError unless every line names only objects that its rank has
/// made before and not yet destroyed, memory that some rank makes, within its bounds, and values that CUDA
/// knows; and each rank makes the case's calls, in order.
void check_log(CallLog& log, const LogCase& known);

}  // namespace overlap::teaching

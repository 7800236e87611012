// Runs an algorithm on virtual GPUs, with shapes and zeros, and writes down what it calls (call_log.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "call_log.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/program/algorithms.hpp"

namespace overlap::teaching {

/// The log of all calls of what `make` makes for each rank, whether the run ends well or not: how it ends
/// says the log. Virtual GPUs must be fresh. Throws LogError if a log cannot be that long.
std::string record_calls(const LogCase& known,
                         const std::function<std::unique_ptr<AnyAlgorithm>(Rank&)>& make);

}  // namespace overlap::teaching

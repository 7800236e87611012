// The judge's problems: inputs made from a seed, and their results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire.hpp"

namespace overlap::teaching {

/// The inputs of all calls and ranks: exact data (overlap/data), different in each call.
std::vector<Input> inputs_of(const Case& which, std::uint64_t seed);

/// Describes the first wrong element in a sentence for students; empty if all elements are right.
std::string first_difference(const Case& which, std::uint64_t seed, const Answer& answer);

}  // namespace overlap::teaching

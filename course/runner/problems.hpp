// What the judge knows of the problems: their inputs, which it makes from a seed, and their results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire.hpp"

namespace overlap::teaching {

/// The inputs of all calls and ranks: exact data (overlap/data), other ones in each call.
std::vector<Input> inputs_of(const Case& which, std::uint64_t seed);

/// What is wrong with the first wrong result, in a sentence that a student understands; empty if all elements
/// are right.
std::string first_difference(const Case& which, std::uint64_t seed, const Answer& answer);

}  // namespace overlap::teaching

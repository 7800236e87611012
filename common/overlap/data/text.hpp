// Numbers as text.
#pragma once

#include <string>

namespace overlap {

/// The number with that many digits after the point: fixed(3.14159, 2) is "3.14".
std::string fixed(double value, int digits);

}  // namespace overlap

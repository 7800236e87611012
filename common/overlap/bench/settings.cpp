#include "overlap/bench/settings.hpp"

#include <algorithm>

namespace overlap {

bool BenchSettings::runs(std::string_view variant) const {
  return std::find(variants.begin(), variants.end(), variant) != variants.end();
}

}  // namespace overlap

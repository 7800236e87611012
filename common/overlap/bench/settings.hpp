// What a bench has to know of the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "overlap/gpu/element_type.hpp"

namespace overlap {

/// Which variants run, on numbers of which type, how often, and what is done with the results.
struct BenchSettings {
  std::vector<std::string> variants = {};  ///< the chosen ones (all, unless --only), in the chapter's order
  ElementType type = ElementType::kInt32;  ///< of the elements
  int iterations = 1;                      ///< timed runs
  int warmup = 0;                          ///< runs before them that are not timed
  bool check = true;                       ///< compare the result with the CPU's
  bool corrupt = false;                    ///< the tests' hook: see corrupt_one_element()
  std::string timeline = {};               ///< file for the timeline; empty: none

  bool runs(std::string_view variant) const;
};

}  // namespace overlap

#include "overlap/data/text.hpp"

#include <iomanip>
#include <sstream>

namespace overlap {

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

}  // namespace overlap

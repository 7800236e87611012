// The date of a report.
#pragma once

#include <string>

namespace overlap {

/// "2026-11-21T12:00:00Z".
std::string utc_now();

}  // namespace overlap

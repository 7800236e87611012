// The judge: reads a log, replays it in a process of its own, and says what it found.
#pragma once

#include "replay_case.hpp"

namespace overlap::teaching {

/// Prints the verdict, as sentences or as one line of JSON. Returns the exit status: 0 right, 1 wrong result,
/// 3 race or deadlock, 2 anything else.
int judge(const ReplayCase& wanted);

}  // namespace overlap::teaching

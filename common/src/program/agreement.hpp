// Several processes that run one program: each was started with a command line of its own.
#pragma once

#include "overlap/gpu/processes.hpp"
#include "overlap/program/options.hpp"

namespace overlap {

/// How many GPUs each process has: it is a node. `given_per_node`: what the user said, 0 if nothing. Throws
/// UsageError if they cannot be shared out so.
int gpus_of_each(const Processes& processes, int gpus, int given_per_node);

/// Takes so many GPUs as the options say, the same on all processes. `available` are the GPUs of this
/// process. Collective. Throws UsageError, the same sentence everywhere, if the processes were started with
/// different options, or of different commits; or if one has too few GPUs, or another number of them and
/// --gpus does not say how many to use.
void agree_on_options(Processes& processes, Options& options, const ChapterInfo& chapter, int available);

}  // namespace overlap

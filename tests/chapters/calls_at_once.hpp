// How many calls tests enqueue at once.
#pragma once

#include "overlap/gpu/backend.hpp"

namespace overlap {

/// Real GPUs get a thousand, more than their queues hold: what hangs if somebody runs ahead hangs there.
inline int calls_at_once(int on_virtual_gpus) { return backend::modelled_time() ? on_virtual_gpus : 1000; }

}  // namespace overlap

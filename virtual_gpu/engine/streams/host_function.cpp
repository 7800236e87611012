#include "engine/streams/host_function.hpp"

#include "engine/streams/stream_call.hpp"

namespace vgpu {

void HostFunction::begin(double now) {
  call_in(runtime_.errors(), *stream, site, [this] {
    if constexpr (memcheck::kEnabled) hb::enter(hb::host_context());
    function_(data_);
  });
  finish(now + runtime_.machine().host_call_ns);
}

}  // namespace vgpu

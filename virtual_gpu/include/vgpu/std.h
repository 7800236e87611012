// cuda::std: here kernels run on the CPU, so that the host's library serves them, too.
#pragma once

namespace std {}
namespace cuda::std {
using namespace ::std;
}

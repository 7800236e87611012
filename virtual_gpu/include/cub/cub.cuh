// The algorithms of CUB that the virtual GPUs have. Each is called twice: without temporary storage it
// returns the size that it needs; with storage it is enqueued in the stream.
#pragma once

#include "device/device_radix_sort.cuh"
#include "device/device_reduce.cuh"
#include "device/device_run_length_encode.cuh"
#include "device/device_scan.cuh"
#include "device/device_select.cuh"
#include "util_type.cuh"

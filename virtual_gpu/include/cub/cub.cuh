// The algorithms of CUB that the virtual GPUs have. Each comes in two phases: called without temporary
// storage it says how much it needs; with it, it is enqueued in the stream.
#pragma once

#include "device/device_radix_sort.cuh"
#include "device/device_reduce.cuh"
#include "device/device_run_length_encode.cuh"
#include "device/device_scan.cuh"
#include "device/device_select.cuh"
#include "util_type.cuh"

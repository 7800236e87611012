// How the exceptions of failed calls are worded.
#pragma once

#include <string>

namespace overlap {

/// "column_split.cuh:41: cudaMalloc(&p, bytes): cudaErrorMemoryAllocation (out of memory), device 0".
/// `device` is -1 if it is not known.
std::string failed_call_sentence(const char* name, const char* text, const char* call, const char* file,
                                 int line, int device);

/// The calling thread's current device, or -1 if it could not be read. Changes no CUDA state.
int device_of_failure();

}  // namespace overlap

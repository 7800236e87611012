// A chapter's program with a kernel that waits for ever: the tests expect exit status 3 and one sentence. Its
// threads need many stacks, which must be released at the program's end.
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"
#include "overlap/program/chapter.hpp"

namespace {

__global__ void wait_for_ever(const volatile int* flag) {
  while (*flag != 1) __nanosleep(100);
}

void run(const overlap::Options&) {
  const overlap::DeviceBuffer<int> flag(0, 1);
  CUDA_CHECK(cudaMemset(flag.data(), 0, sizeof(int)));
  wait_for_ever<<<8, 64>>>(flag.data());
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

const overlap::ChapterInfo kStuck = {.name = "stuck",
                                     .summary = "Waits for ever.",
                                     .variants = {"stuck"},
                                     .on_virtual_gpus = {.shape = {1, 1, 1}}};

}  // namespace

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, kStuck, run); }

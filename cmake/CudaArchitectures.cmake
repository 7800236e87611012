# Compile for the GPUs that are here; where there is none, for Ampere (chapters 01 to 15) and Hopper (all).
# CMAKE_CUDA_ARCHITECTURES=native needs a driver already at configure time, hence the look for one.
# CMake's own variable of the environment, CUDAARCHS, goes before both.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_VARIABLE gpus ERROR_QUIET)
  if(no_gpu EQUAL 0 AND gpus MATCHES "GPU 0")
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 80 90a)
  endif()
endif()

# The one place that knows on what the chapters run. It defines
#   overlap_cuda                 headers and libraries of CUDA and NCCL: the real ones, or the virtual GPUs'
#   overlap_gpu_sources(target)  compiles the target's .cu files: with nvcc, or with g++ behind the rewriter
add_library(overlap_cuda INTERFACE)

if(OVERLAP_BACKEND STREQUAL "cuda")
  include(CudaArchitectures)
  enable_language(CUDA)
  find_package(CUDAToolkit 12.4 REQUIRED)
  find_package(NCCL 2.18 REQUIRED)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know yet that nvcc has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O2 -Xcompiler=-g1 -DNDEBUG")
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  target_link_libraries(overlap_cuda INTERFACE CUDA::cudart CUDA::cuda_driver CUDA::cublas CUDA::cublasLt NCCL::NCCL)

  function(overlap_gpu_sources target)
    target_link_libraries(${target} PRIVATE overlap_cuda)
  endfunction()
elseif(OVERLAP_BACKEND STREQUAL "virtual")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(OVERLAP_GPU_COMPILER ${PROJECT_SOURCE_DIR}/virtual_gpu/tools/compile.py)
  set(OVERLAP_REWRITER ${PROJECT_SOURCE_DIR}/virtual_gpu/tools/rewrite.py)
  target_link_libraries(overlap_cuda INTERFACE virtual_gpu)
  if(OVERLAP_RACE)
    # Programs are instrumented, the virtual GPUs are not: they tell ThreadSanitizer themselves what comes before what.
    # -O1: at -O2 some compilers merge accesses into ones that are not instrumented. -g1: reports name functions and lines.
    # A kernel's volatile accesses are known as such: a fence makes them flags.
    target_compile_options(overlap_cuda INTERFACE -fsanitize=thread --param=tsan-distinguish-volatile=1 -O1 -g1
      -fno-omit-frame-pointer)
    target_link_options(overlap_cuda INTERFACE -fsanitize=thread)
  endif()
  if(OVERLAP_CHECK)
    # The calls before each access go to virtual_gpu/check/hooks.cpp, not to ThreadSanitizer, which is not linked; so headers
    # must not take it for there. Copies of constant size stay calls, too. bounds-strict: bounds leaves out the last array of a
    # structure if it is reached by a pointer, as in member functions.
    target_compile_options(overlap_cuda INTERFACE
      -fsanitize=thread,bounds-strict,alignment,integer-divide-by-zero -U__SANITIZE_THREAD__ -DVGPU_CHECK=1
      --param=tsan-instrument-func-entry-exit=0 -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset
      -O1 -g1 -fno-omit-frame-pointer)
    target_link_options(overlap_cuda INTERFACE -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset)
  endif()

  function(overlap_gpu_sources target)
    target_link_libraries(${target} PRIVATE overlap_cuda)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cu$")
    # The coverage calls count a kernel's basic blocks (its modelled cost) and let a spinning thread be preempted. Large frames
    # are touched page by page, so that they do not step over the guard below a CUDA thread's stack. Tensor maps are aligned to
    # 128 bytes: g++ would note that it passed such arguments differently up to 4.5.
    set_source_files_properties(${sources} PROPERTIES
      LANGUAGE CXX
      COMPILE_OPTIONS "-fsanitize-coverage=trace-pc;-fstack-clash-protection;-Wno-psabi"
      OBJECT_DEPENDS "${OVERLAP_GPU_COMPILER};${OVERLAP_REWRITER}")
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${Python3_EXECUTABLE};${OVERLAP_GPU_COMPILER}")
  endfunction()
else()
  message(FATAL_ERROR "OVERLAP_BACKEND is '${OVERLAP_BACKEND}'; it is either 'virtual' or 'cuda'.")
endif()

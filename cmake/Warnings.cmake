# Warnings are errors in our own code. Link it PRIVATE. Behind nvcc, g++ 12 takes an empty object in CUB's sorts for
# uninitialised, depending on what it inlines; the same sources are checked for that in the build for virtual GPUs.
# clang++ would warn of -I in the second call for a .cu file, whose includes the first one has put in.
add_library(overlap_warnings INTERFACE)
target_compile_options(overlap_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror>
  # Newer compilers warn of more than was tried.
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-error>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wno-unused-command-line-argument>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Werror,-Wno-maybe-uninitialized;--Werror=all-warnings>)

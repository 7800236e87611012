# Warnings are errors in our own code. Link it PRIVATE.
add_library(overlap_warnings INTERFACE)
target_compile_options(overlap_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Werror;--Werror=all-warnings>)

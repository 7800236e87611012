# overlap_add_program(name file.cu): the program of one CUDA source that needs nothing of this repository, as bin/name. With
# nvcc it is a plain CUDA program. On virtual GPUs it takes settings from the environment and says why calls fail, and
# misaligned accesses of kernels are errors. (Not in the chapters: with that check, their headers take twice the time to
# compile.)
function(overlap_add_program name source)
  add_executable(${name} ${source})
  overlap_gpu_sources(${name})
  if(OVERLAP_BACKEND STREQUAL "virtual")
    target_compile_options(${name} PRIVATE -fsanitize=alignment)
    target_link_libraries(${name} PRIVATE virtual_gpu_settings)
  endif()
endfunction()

# Your own programs, without an edit of any CMake file: cmake --preset virtual -DOVERLAP_PROGRAMS=FILE.cu
set(OVERLAP_PROGRAMS "" CACHE STRING "CUDA programs of one file each to build beside the chapters (paths, separated by ;)")
function(overlap_add_own_programs)
  foreach(source IN LISTS OVERLAP_PROGRAMS)
    get_filename_component(name ${source} NAME_WE)
    get_filename_component(source ${source} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    overlap_add_program(${name} ${source})
  endforeach()
endfunction()

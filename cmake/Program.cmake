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

# ./lab run FILE.cu: the file joins those that it ran before, so that none is compiled again when they take turns; of two
# with the same name the newer stays. Target own_NAME, program own/NAME; a build of everything leaves them out.
set(OVERLAP_OWN_PROGRAM "" CACHE FILEPATH "CUDA program of one file to build as own_NAME")
function(overlap_add_lab_programs)
  set(sources)
  get_filename_component(newest "${OVERLAP_OWN_PROGRAM}" NAME)
  foreach(source IN LISTS OVERLAP_OWN_PROGRAMS)
    get_filename_component(name ${source} NAME)
    if(EXISTS ${source} AND NOT name STREQUAL newest)
      list(APPEND sources ${source})
    endif()
  endforeach()
  if(EXISTS "${OVERLAP_OWN_PROGRAM}")
    list(APPEND sources ${OVERLAP_OWN_PROGRAM})
  endif()
  set(OVERLAP_OWN_PROGRAMS "${sources}" CACHE INTERNAL "What ./lab run FILE.cu ran")
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WLE)
    string(REGEX REPLACE "[^A-Za-z0-9_.+-]" "_" name ${name})
    overlap_add_program(own_${name} ${source})
    set_target_properties(own_${name} PROPERTIES
      OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/own
      EXCLUDE_FROM_ALL ON)
  endforeach()
endfunction()

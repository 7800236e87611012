# overlap_for_chapter(target NN_name): compiles the target for the GPUs that the chapter needs. Instructions of compute
# capability 9.0 exactly want code for it alone; and what the assembler says of them in passing costs half the speed: that is
# an error (strict_ptxas.py).
function(overlap_for_chapter target name)
  overlap_manifest(capability ${name} needs compute_capability)
  if(OVERLAP_BACKEND STREQUAL "cuda" AND capability STREQUAL "9.0")
    set_target_properties(${target} PROPERTIES
      CUDA_ARCHITECTURES 90a
      CUDA_COMPILER_LAUNCHER "${Python3_EXECUTABLE};${PROJECT_SOURCE_DIR}/cmake/strict_ptxas.py")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-warn-spills>)
  endif()
endfunction()

# overlap_add_chapter(NN_name): the program of chapters/NN_name, as bin/NN_name; and target chapter_NN, which builds it, its
# experiments, its tests and what these need. If the chapter runs as several processes and MPI is here, also bin/NN_name_mpi: the
# same objects, linked with overlap_mpi.
function(overlap_add_chapter name)
  string(SUBSTRING ${name} 0 2 number)
  add_custom_target(chapter_${number} DEPENDS ${name})
  _overlap_chapter_program(${name} ${PROJECT_SOURCE_DIR}/chapters ${name}/main.cu)
  _overlap_precompile_chapter_headers(${name})
  overlap_for_chapter(${name} ${name})
  target_link_libraries(${name} PRIVATE overlap_warnings)
  overlap_manifest(processes ${name} processes DEFAULT OFF)
  if(processes AND TARGET overlap_mpi)
    add_executable(${name}_mpi $<TARGET_OBJECTS:${name}>)
    set_target_properties(${name}_mpi PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(${name}_mpi PRIVATE overlap_mpi overlap)
    add_dependencies(chapter_${number} ${name}_mpi)
  endif()
endfunction()

# overlap_add_experiment(NN_name FILE.cu): the program of an experiment of the chapter, as bin/NN_FILE. It includes the
# chapter's headers as the chapter's own program does. The tests find it in the global property OVERLAP_EXPERIMENTS.
function(overlap_add_experiment chapter source)
  cmake_path(GET source STEM stem)
  string(SUBSTRING ${chapter} 0 2 number)
  set_property(GLOBAL APPEND PROPERTY OVERLAP_EXPERIMENTS ${number}_${stem})
  _overlap_chapter_program(${number}_${stem} ${PROJECT_SOURCE_DIR}/chapters ${chapter}/experiments/${stem}.cu)
  _overlap_precompile_chapter_headers(${number}_${stem})
  overlap_for_chapter(${number}_${stem} ${chapter})
  # And for what it builds on besides.
  overlap_experiment_index(at ${chapter} ${stem})
  overlap_manifest(others ${chapter} experiments ${at} builds_on)
  string(REGEX MATCHALL "[0-9][0-9]_[a-z0-9_]+" others "${others}")
  foreach(other IN LISTS others)
    overlap_for_chapter(${number}_${stem} ${other})
  endforeach()
  target_link_libraries(${number}_${stem} PRIVATE overlap_warnings)
  add_dependencies(chapter_${number} ${number}_${stem})
endfunction()

# overlap_add_changed_chapter(target NN_name folder [TEST file | EXPERIMENT NN_FILE] COMMAND ... DEPENDS ...): the program of a
# changed copy of a chapter, as bin/changed/target; or that file of the chapter's tests/ with the copy, or that experiment's program. The command writes the copy to folder/NN_name,
# main.cu included; what the copy does not hold comes from chapters/. Without overlap_warnings: a change may well leave a
# variable unused.
function(overlap_add_changed_chapter target name folder)
  cmake_parse_arguments(PARSE_ARGV 3 change "" "TEST;EXPERIMENT" "COMMAND;DEPENDS")
  set(source ${name}/main.cu)
  if(change_EXPERIMENT)
    string(REGEX REPLACE "^[0-9][0-9]_" "${name}/experiments/" source ${change_EXPERIMENT}.cu)
  endif()
  set(outputs ${name}/main.cu ${source})
  list(REMOVE_DUPLICATES outputs)
  list(TRANSFORM outputs PREPEND ${folder}/)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/chapters/*.cu ${PROJECT_SOURCE_DIR}/chapters/*.cuh)
  list(FILTER sources EXCLUDE REGEX "/(tests|assignment)/")
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${change_COMMAND}
    DEPENDS ${change_DEPENDS} ${sources}
    COMMENT "Copy for ${target}"
    VERBATIM)
  if(change_TEST)
    _overlap_changed_chapter_test(${target} ${folder} ${name} ${change_TEST})
  else()
    _overlap_chapter_program(${target} ${folder} ${source})
  endif()
  overlap_for_chapter(${target} ${name})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/chapters)
  if(NOT TARGET overlap_changed_chapters)
    _overlap_changed_chapters()
  endif()
  target_link_libraries(${target} PRIVATE overlap_changed_chapters)
  target_precompile_headers(${target} REUSE_FROM overlap_changed_chapter_headers)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/changed)
endfunction()

# _overlap_add_chapter_headers(target): what the chapters' sources include from elsewhere, compiled once, for targets with the
# same options (REUSE_FROM). That each source includes what it needs shows the build for real GPUs.
function(_overlap_add_chapter_headers target)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/chapters/*.cu ${PROJECT_SOURCE_DIR}/chapters/*.cuh)
  list(FILTER sources EXCLUDE REGEX "/(tests|assignment)/")
  set(headers)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} lines REGEX "^#include [<\"]")
    list(APPEND headers ${lines})
  endforeach()
  list(TRANSFORM headers REPLACE "^#include " "")
  list(FILTER headers EXCLUDE REGEX "^\"[0-9][0-9]_")
  foreach(header IN LISTS headers)  # device code wants the rewriter, which this unit does not see
    string(REGEX REPLACE "^\"(.*)\"$" "${PROJECT_SOURCE_DIR}/common/\\1" file "${header}")
    if(EXISTS "${file}")
      file(STRINGS "${file}" device_code REGEX "^__(host|device|global)__" LIMIT_COUNT 1)
      if(device_code)
        list(REMOVE_ITEM headers "${header}")
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES headers)
  list(SORT headers)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/no_code.cpp CONTENT "")
  add_library(${target} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/no_code.cpp)
  target_link_libraries(${target} PRIVATE overlap)
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()

# The same for an unchanged chapter's program. (Not for nvcc, which could not, nor for clang++, whose options for it compile.py
# does not know.)
function(_overlap_precompile_chapter_headers target)
  if(NOT OVERLAP_BACKEND STREQUAL "virtual" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT TARGET overlap_chapter_headers)
    _overlap_add_chapter_headers(overlap_chapter_headers)
    if(OVERLAP_RACE OR OVERLAP_CHECK)
      target_compile_definitions(overlap_chapter_headers PRIVATE OVERLAP_FIRST_TYPE_ONLY)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM overlap_chapter_headers)
endfunction()

# What all changed chapters have in common: target overlap_changed_chapters, their options, and target
# overlap_changed_chapter_headers. Such programs are many, each runs for a moment, and with the default type: compiled for it
# alone, without optimisation and without debug information they take half the time.
function(_overlap_changed_chapters)
  add_library(overlap_changed_chapters INTERFACE)
  target_compile_definitions(overlap_changed_chapters INTERFACE OVERLAP_FIRST_TYPE_ONLY)
  target_compile_options(overlap_changed_chapters INTERFACE -O0)
  if(NOT OVERLAP_RACE AND NOT OVERLAP_CHECK)  # only these report lines
    target_compile_options(overlap_changed_chapters INTERFACE -g0)
    target_link_options(overlap_changed_chapters INTERFACE -Wl,--strip-debug)  # of the libraries: linking takes a quarter
  endif()
  _overlap_add_chapter_headers(overlap_changed_chapter_headers)
  target_link_libraries(overlap_changed_chapter_headers PRIVATE overlap_changed_chapters)
endfunction()

# A test with a changed copy of the chapter `name`: a unit of its own, compiled again whenever the copy is made again.
function(_overlap_changed_chapter_test target folder name test)
  set(tests ${PROJECT_SOURCE_DIR}/tests/chapters)  # what tests of several chapters share
  set(copy ${folder}/${name}/main.cu)  # a source, so that the copy is made; but not compiled
  set_source_files_properties(${copy} PROPERTIES HEADER_FILE_ONLY ON)
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/${target}.cu)
  file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${test}\"\n")
  add_executable(${target} ${unit} ${tests}/schedule_${OVERLAP_BACKEND}.cpp ${copy})
  overlap_gpu_sources(${target})
  set_property(SOURCE ${unit} APPEND PROPERTY OBJECT_DEPENDS ${copy})
  target_include_directories(${target} PRIVATE ${folder} ${PROJECT_SOURCE_DIR}/chapters/${name}/tests ${tests})
  target_link_libraries(${target} PRIVATE overlap overlap_test_main)
endfunction()

# A source of a folder of chapters, with this path in it, as a program. Where accesses are instrumented it has the first of its types
# alone, and is compiled in a third of the time: what comes before what is the same with all.
function(_overlap_chapter_program target folder source)
  add_executable(${target} ${folder}/${source})
  overlap_gpu_sources(${target})
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE overlap)
  if(OVERLAP_RACE OR OVERLAP_CHECK)
    target_compile_definitions(${target} PRIVATE OVERLAP_FIRST_TYPE_ONLY)
  endif()
endfunction()

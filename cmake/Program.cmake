# overlap_add_program(name file.cu [more sources...]): the program of one CUDA source that needs nothing of this repository, as bin/name. With
# nvcc it is a plain CUDA program. On virtual GPUs it takes settings from the environment and says why calls fail, and
# misaligned accesses of kernels are errors. (Not in the chapters: with that check, their headers take twice the time to
# compile.)
set(OVERLAP_PROGRAM_CHECKS alignment,shift-exponent,float-cast-overflow,integer-divide-by-zero)
function(overlap_add_program name source)
  add_executable(${name} ${source} ${ARGN})
  overlap_gpu_sources(${name})
  if(OVERLAP_BACKEND STREQUAL "virtual")
    target_compile_options(${name} PRIVATE -fsanitize=${OVERLAP_PROGRAM_CHECKS})
    target_include_directories(${name} SYSTEM PRIVATE ${PROJECT_SOURCE_DIR}/virtual_gpu/program/include)
    target_link_libraries(${name} PRIVATE virtual_gpu_settings)
    set_target_properties(${name} PROPERTIES CXX_EXTENSIONS ON)  # as nvcc's
  endif()
endfunction()

# Your own programs, without an edit of any CMake file: ./lab run FILE.cu, or cmake --preset virtual -DOVERLAP_OWN_PROGRAM=FILE.cu.
# The file joins those that were named before, so that none is compiled again when they take turns; of two with the same name the
# newer stays. Target own_NAME, program own/NAME; a build of everything leaves them out.
set(OVERLAP_OWN_PROGRAM "" CACHE FILEPATH "CUDA program of one file to build as own_NAME")
set(OVERLAP_OWN_OPTIONS "" CACHE STRING "For that one: -I, -D, -fopenmp, further sources")
function(overlap_add_own_programs)
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
    set(OVERLAP_OWN_OPTIONS_${newest} "${OVERLAP_OWN_OPTIONS}" CACHE INTERNAL "Of a program that was named before")
  endif()
  set(OVERLAP_OWN_PROGRAMS "${sources}" CACHE INTERNAL "Those that were named so far")
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME)
    set(more ${OVERLAP_OWN_OPTIONS_${name}})
    set(options ${more})
    list(FILTER options INCLUDE REGEX "^-")
    list(FILTER more EXCLUDE REGEX "^-")
    get_filename_component(name ${source} NAME_WLE)
    string(REGEX REPLACE "[^A-Za-z0-9_.+-]" "_" name ${name})
    overlap_add_program(own_${name} ${source} ${more})
    if(OVERLAP_BACKEND STREQUAL "cuda" AND "-fopenmp" IN_LIST options)
      list(TRANSFORM options REPLACE "^-fopenmp$" "-Xcompiler=-fopenmp")
      target_link_libraries(own_${name} PRIVATE gomp)
    endif()
    target_compile_options(own_${name} PRIVATE ${options})
    set_target_properties(own_${name} PROPERTIES
      OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/own
      EXCLUDE_FROM_ALL ON)
  endforeach()
endfunction()

# A student's copies of headers, without an edit of any CMake file: OVERLAP_WORK is the folder of a hand-out (./lab start NN),
# OVERLAP_PLANTED that of a planted error (./lab break NN). Such a folder has the chapter's name and holds some of its headers;
# all else comes from chapters/. Target work_NN_name, program work/NN_name (or planted_, planted/); a build of everything
# leaves them out.
set(OVERLAP_WORK "" CACHE PATH "Folder NN_name with a student's headers to build as work_NN_name")
set(OVERLAP_PLANTED "" CACHE PATH "Folder NN_name with changed headers to build as planted_NN_name")
function(overlap_add_work kind folder)
  cmake_path(GET folder FILENAME chapter)
  if("${chapter}" STREQUAL "" OR NOT EXISTS "${folder}" OR NOT EXISTS "${PROJECT_SOURCE_DIR}/chapters/${chapter}/main.cu")
    return()
  endif()
  # A header of one line for each of the student's, found before the chapter's own: it leads to the file that is edited, so
  # that this is what a compiler's message and a race report name.
  set(forwards ${PROJECT_BINARY_DIR}/${kind}/headers)
  file(GLOB_RECURSE headers RELATIVE "${folder}" "${folder}/*.cuh")
  # What other folders have left here goes, of other chapters, too: this one may include their headers.
  file(GLOB_RECURSE old RELATIVE ${forwards} ${forwards}/*.cuh)
  foreach(header IN LISTS headers)
    file(CONFIGURE OUTPUT ${forwards}/${chapter}/${header} CONTENT "#include \"${folder}/${header}\"\n" @ONLY)
    list(REMOVE_ITEM old ${chapter}/${header})
  endforeach()
  foreach(header IN LISTS old)
    file(REMOVE ${forwards}/${header})
  endforeach()
  add_executable(${kind}_${chapter} chapters/${chapter}/main.cu)
  overlap_gpu_sources(${kind}_${chapter})
  overlap_for_chapter(${kind}_${chapter} ${chapter})
  target_include_directories(${kind}_${chapter} PRIVATE ${forwards} ${PROJECT_SOURCE_DIR}/chapters)
  target_link_libraries(${kind}_${chapter} PRIVATE overlap)
  if(kind STREQUAL "planted")  # it runs for a moment, with the default type: compiled for it alone it takes half the time
    target_compile_definitions(${kind}_${chapter} PRIVATE OVERLAP_FIRST_TYPE_ONLY)
  endif()
  set_target_properties(${kind}_${chapter} PROPERTIES
    OUTPUT_NAME ${chapter}
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${kind}
    EXCLUDE_FROM_ALL ON)
endfunction()

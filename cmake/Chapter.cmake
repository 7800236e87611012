# overlap_add_chapter(NN_name [SPARSE]): the program of chapters/NN_name, as bin/NN_name. The tests take the chapters'
# names from the global property OVERLAP_CHAPTERS; those on sparse gradients, whose options are other ones, are also in
# OVERLAP_SPARSE_CHAPTERS.
function(overlap_add_chapter name)
  if("SPARSE" IN_LIST ARGN)
    set_property(GLOBAL APPEND PROPERTY OVERLAP_SPARSE_CHAPTERS ${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY OVERLAP_CHAPTERS ${name})
  _overlap_chapter_program(${name} ${PROJECT_SOURCE_DIR}/chapters ${name})
  target_link_libraries(${name} PRIVATE overlap_warnings)
endfunction()

# overlap_add_changed_chapter(target NN_name folder COMMAND ... DEPENDS ...): the program of a changed copy of a chapter,
# as bin/changed/target. The command writes the copy to folder/NN_name, main.cu included; what the copy does not hold
# comes from chapters/. Without overlap_warnings: a change may well leave a variable unused. Such programs are many, each
# runs for a moment, and with the default type: compiled for it alone and without optimisation they take half the time.
# (In the race build the options are its own.)
function(overlap_add_changed_chapter target name folder)
  cmake_parse_arguments(PARSE_ARGV 3 change "" "" "COMMAND;DEPENDS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/chapters/*.cu ${PROJECT_SOURCE_DIR}/chapters/*.cuh)
  add_custom_command(
    OUTPUT ${folder}/${name}/main.cu
    COMMAND ${change_COMMAND}
    DEPENDS ${change_DEPENDS} ${sources}
    COMMENT "Copy for ${target}"
    VERBATIM)
  _overlap_chapter_program(${target} ${folder} ${name})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/chapters)
  target_compile_definitions(${target} PRIVATE OVERLAP_FIRST_TYPE_ONLY)
  target_compile_options(${target} PRIVATE -O0)
  if(NOT OVERLAP_RACE)
    target_link_options(${target} PRIVATE -Wl,--strip-debug)  # only races are reported with lines; linking takes a quarter
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/changed)
endfunction()

# The chapter `name` of a folder of chapters.
function(_overlap_chapter_program target folder name)
  add_executable(${target} ${folder}/${name}/main.cu)
  overlap_gpu_sources(${target})
  target_include_directories(${target} PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE overlap)
endfunction()

# What CMake takes from the chapters' manifests, chapters/NN_name/chapter.json. tools/chapters.py explains and checks them: a
# wrong one ends the configuration with its sentence.

# overlap_chapters(out): the names of all chapters that this CUDA can compile, in order. A new one, and a change of a
# manifest, configure again.
function(overlap_chapters out)
  file(GLOB programs CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/chapters
    ${PROJECT_SOURCE_DIR}/chapters/[0-9][0-9]_*/main.cu)
  list(TRANSFORM programs REPLACE "/main.cu$" "")
  set(chapters)
  foreach(name IN LISTS programs)
    overlap_manifest(cuda ${name} needs cuda DEFAULT 0)
    if(OVERLAP_BACKEND STREQUAL "virtual" OR CUDAToolkit_VERSION VERSION_GREATER_EQUAL cuda)
      list(APPEND chapters ${name})
    endif()
  endforeach()
  set(${out} ${chapters} PARENT_SCOPE)
endfunction()

# overlap_say_what_is_left_out(): a sentence for each chapter that this CUDA is too old for.
function(overlap_say_what_is_left_out)
  overlap_chapters(chapters)
  file(GLOB all RELATIVE ${PROJECT_SOURCE_DIR}/chapters ${PROJECT_SOURCE_DIR}/chapters/[0-9][0-9]_*/main.cu)
  list(TRANSFORM all REPLACE "/main.cu$" "")
  list(REMOVE_ITEM all ${chapters})
  foreach(name IN LISTS all)
    overlap_manifest(cuda ${name} needs cuda)
    message(STATUS "${name} is left out: it needs CUDA ${cuda}, and this is ${CUDAToolkit_VERSION}")
  endforeach()
endfunction()

# overlap_manifest(out NN_name key... [DEFAULT value]): what a manifest holds under these keys; where it says nothing, the
# default.
function(overlap_manifest out name)
  cmake_parse_arguments(PARSE_ARGV 2 manifest "" "DEFAULT" "")
  file(READ ${PROJECT_SOURCE_DIR}/chapters/${name}/chapter.json text)
  string(JSON value ERROR_VARIABLE missing GET "${text}" ${manifest_UNPARSED_ARGUMENTS})
  if(missing)
    set(value "${manifest_DEFAULT}")
  endif()
  set(${out} "${value}" PARENT_SCOPE)
endfunction()

# overlap_manifest_words(out NN_name key... [DEFAULT word...]): the same of a command line, as a list of its words.
function(overlap_manifest_words out name)
  cmake_parse_arguments(PARSE_ARGV 2 manifest "" "" "DEFAULT")
  overlap_manifest(line ${name} ${manifest_UNPARSED_ARGUMENTS})
  separate_arguments(words UNIX_COMMAND "${line}")
  if(NOT line)
    set(words ${manifest_DEFAULT})
  endif()
  set(${out} ${words} PARENT_SCOPE)
endfunction()

# overlap_experiment_index(out NN_name EXPERIMENT): the place of an experiment in the chapter's list of them.
function(overlap_experiment_index out name experiment)
  file(READ ${PROJECT_SOURCE_DIR}/chapters/${name}/chapter.json text)
  string(JSON count LENGTH "${text}" experiments)
  foreach(at RANGE 1 ${count})
    math(EXPR at "${at} - 1")
    string(JSON stem GET "${text}" experiments ${at} name)
    if(stem STREQUAL experiment)
      set(${out} ${at} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# overlap_experiment_words(out NN_name NN_EXPERIMENT key...): the same words of one of the chapter's experiments.
function(overlap_experiment_words out name experiment)
  string(SUBSTRING ${experiment} 3 -1 stem)
  overlap_experiment_index(at ${name} ${stem})
  overlap_manifest_words(words ${name} experiments ${at} ${ARGN})
  set(${out} ${words} PARENT_SCOPE)
endfunction()

file(GLOB manifests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/chapters/[0-9][0-9]_*/chapter.json)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifests})
if(Python3_EXECUTABLE)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/chapters.py
    RESULT_VARIABLE wrong ERROR_VARIABLE sentence ERROR_STRIP_TRAILING_WHITESPACE)
  if(wrong)
    message(FATAL_ERROR "${sentence}")
  endif()
endif()
overlap_say_what_is_left_out()

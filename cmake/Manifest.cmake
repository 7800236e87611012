# What CMake takes from the chapters' manifests, chapters/NN_name/chapter.json. tools/chapters.py explains and checks them: a
# wrong one ends the configuration with its sentence.

# overlap_chapters(out): the names of all chapters, in order. A new one, and a change of a manifest, configure again.
function(overlap_chapters out)
  file(GLOB programs CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/chapters
    ${PROJECT_SOURCE_DIR}/chapters/[0-9][0-9]_*/main.cu)
  list(TRANSFORM programs REPLACE "/main.cu$" "")
  set(${out} ${programs} PARENT_SCOPE)
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

overlap_chapters(chapters)
list(TRANSFORM chapters REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/chapters/\\1/chapter.json" OUTPUT_VARIABLE manifests)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifests})
if(Python3_EXECUTABLE)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/chapters.py --check
    RESULT_VARIABLE wrong ERROR_VARIABLE sentence ERROR_STRIP_TRAILING_WHITESPACE)
  if(wrong)
    message(FATAL_ERROR "${sentence}")
  endif()
endif()

# overlap_add_version(target): compiles the commit into the target, as overlap::commit(). It is asked for at each build,
# and the file is touched only when it has changed. Without git the environment variable OVERLAP_COMMIT says it.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(OVERLAP_VERSION_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

  function(overlap_add_version target)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/version.cpp)
    add_custom_target(${target}_version
      COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} -P ${OVERLAP_VERSION_SCRIPT}
      BYPRODUCTS ${output}
      VERBATIM)
    target_sources(${target} PRIVATE ${output})
    add_dependencies(${target} ${target}_version)
  endfunction()
  return()
endif()

# Below: the script of the build step, cmake -DSOURCE=... -DOUTPUT=... -P Version.cmake
set(commit "")
if(EXISTS ${SOURCE}/.git)  # else git would answer for a repository around this one
  execute_process(
    COMMAND git -c safe.directory=* --no-optional-locks -C ${SOURCE} describe --always --dirty
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed EQUAL 0)
    set(commit "")
  endif()
endif()
if(commit STREQUAL "")
  set(commit "$ENV{OVERLAP_COMMIT}")
endif()
if(NOT commit MATCHES "^[-0-9A-Za-z._]+$")
  set(commit unknown)
endif()
string(CONFIGURE [[
#include "overlap/program/report.hpp"

namespace overlap {
std::string_view commit() { return "@commit@"; }
}  // namespace overlap
]] version @ONLY)

# Not file(CONFIGURE): that needs a folder that can be written, even where nothing has changed.
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT version STREQUAL before)
  file(WRITE ${OUTPUT} "${version}")
endif()

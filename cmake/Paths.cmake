# Of these characters CMake's lists and patterns or ninja's lists of dependencies make something else (ninja would build all
# again each time, or never again). Spaces and letters of any language are well. ./lab refuses them before (tools/lab/build.py).
foreach(path IN ITEMS "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}" "${OVERLAP_OWN_PROGRAM}" "${OVERLAP_WORK}" "${OVERLAP_PLANTED}")
  if(path MATCHES "[]\"#$&'*;<>?[^`|]")
    message(FATAL_ERROR "CMake and ninja cannot build what has ${CMAKE_MATCH_0} in its path: ${path}")
  endif()
endforeach()

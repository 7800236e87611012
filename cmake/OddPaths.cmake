# overlap_odd_paths(result paths...): the compiler launcher for these paths: none, unless there is a character in them (or in
# the build's) that ninja cannot read in lists of dependencies.
set(OVERLAP_ODD_PATHS ${CMAKE_CURRENT_LIST_DIR}/odd_paths.py)
function(overlap_odd_paths result)
  set(launcher)
  if("${PROJECT_SOURCE_DIR}${CMAKE_BINARY_DIR}${ARGN}" MATCHES "[^A-Za-z0-9_+,/.:~(){}%=@! -]")
    set(launcher "${Python3_EXECUTABLE};${OVERLAP_ODD_PATHS}")
  endif()
  set(${result} "${launcher}" PARENT_SCOPE)
endfunction()
overlap_odd_paths(launcher)
foreach(language CXX CUDA)
  list(PREPEND CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
endforeach()

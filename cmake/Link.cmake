# A program is linked under another name and then renamed: whoever starts it meanwhile gets the old one or the new one,
# whole. (The linker alone removes the old one and writes the new one in its place: "Text file busy".)
foreach(language CXX CUDA)
  if(DEFINED CMAKE_${language}_LINK_EXECUTABLE)
    string(REPLACE "-o <TARGET>" "-o <TARGET>.linked" rule "${CMAKE_${language}_LINK_EXECUTABLE}")
    set(CMAKE_${language}_LINK_EXECUTABLE "${rule}" "\"${CMAKE_COMMAND}\" -E rename <TARGET>.linked <TARGET>")
  endif()
endforeach()

# Hundreds of programs are linked: gold, which comes with Debian's binutils, takes half of ld's time.
if(OVERLAP_BACKEND STREQUAL "virtual")
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=gold OVERLAP_HAS_GOLD)
  if(OVERLAP_HAS_GOLD)
    add_link_options(-fuse-ld=gold)
  endif()
endif()

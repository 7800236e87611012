# A program is linked under another name and then renamed: whoever starts it meanwhile gets the old one or the new one,
# whole. (The linker alone removes the old one and writes the new one in its place: "Text file busy".)
foreach(language CXX CUDA)
  if(DEFINED CMAKE_${language}_LINK_EXECUTABLE)
    string(REPLACE "-o <TARGET>" "-o <TARGET>.linked" rule "${CMAKE_${language}_LINK_EXECUTABLE}")
    set(CMAKE_${language}_LINK_EXECUTABLE "${rule}" "\"${CMAKE_COMMAND}\" -E rename <TARGET>.linked <TARGET>")
  endif()
endforeach()

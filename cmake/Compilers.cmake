# Says so where the compiler is none of those that the tests run with.
set(tested "g++ 12")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  message(STATUS "The compiler is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}; tested is ${tested}. "
    "Newer ones of g++ and clang++ 14 compile the chapters, too.")
endif()

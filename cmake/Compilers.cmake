# Says so where the compiler is not the one that the tests run with.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  message(STATUS "The compiler is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}; all tests run with g++ 12, few "
    "programs were tried with clang++ 14. Modelled times depend on the compiler.")
endif()

// The judge's program: see judge.hpp. It is linked with the repository's own chapter, and with nothing of a
// student's.
#include <exception>
#include <iostream>

#include "judge.hpp"
#include "overlap/gpu/error.hpp"

int main(int argc, char** argv) {
  try {
    const auto wanted = overlap::teaching::read_case(argc, argv, true);
    return wanted ? overlap::teaching::judge(*wanted) : overlap::kExitOk;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return overlap::kExitFailed;
  }
}

// The program that a copy of a chapter is linked with: writes the log of one of its algorithms. What this
// program says of it counts for nothing: the judge makes the calls again. Exit status 0: the log is written,
// whether the run ended well or not.
#include <exception>
#include <fstream>
#include <iostream>

#include "overlap/gpu/error.hpp"
#include "record_calls.hpp"
#include "replay_case.hpp"

namespace overlap::teaching {
namespace {

void write_log(const ReplayCase& wanted) {
  const std::string text = record_calls(
      wanted.known(), [&](Rank& rank) { return wanted.entry().make(rank, wanted.shape, wanted.type); });
  std::ofstream file(wanted.log, std::ios::binary);
  file << text;
  if (file.close(), !file) throw std::runtime_error("cannot write '" + wanted.log + "'");
}

}  // namespace
}  // namespace overlap::teaching

int main(int argc, char** argv) {
  try {
    if (const auto wanted = overlap::teaching::read_case(argc, argv, false))
      overlap::teaching::write_log(*wanted);
    return overlap::kExitOk;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return overlap::kExitFailed;
  }
}

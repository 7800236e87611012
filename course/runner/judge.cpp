// The judge: makes the inputs of a case from a secret seed, and compares an answer with its own reference. It
// contains no student's code.
//
//   judge inputs KEY=VALUE... seed=N          writes the case and its inputs, for the runner
//   judge check KEY=VALUE... seed=N < ANSWER  prints a verdict as JSON
//
// Exit status 0, also for a wrong answer; 2 for bad arguments.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "problems.hpp"
#include "wire.hpp"

namespace overlap::teaching {
namespace {

using nlohmann::json;

json of_links(const Answer& answer, int ranks) {
  json links = json::array();
  const auto side = static_cast<std::size_t>(ranks + 1);
  for (std::size_t i = 0; i < answer.links.size(); ++i) {
    if (answer.links[i] == Link{}) continue;
    links.push_back({{"from", i / side},
                     {"to", i % side},
                     {"bytes", answer.links[i].bytes},
                     {"copies", answer.links[i].copies}});
  }
  return links;
}

json check(const Case& which, std::uint64_t seed) {
  std::vector<std::uint64_t> sizes;
  const std::vector<Input> inputs = inputs_of(which, seed);
  for (const Input& input : inputs) sizes.push_back(input.c_bytes);
  const std::size_t expected = answer_bytes(sizes, which.ranks);
  const std::vector<std::byte> message = read_all(0, expected);
  const Answer answer = parse_answer(message, sizes, which.ranks);
  json verdict{{"bytes", message.size()}, {"bytes_expected", expected}, {"framed", !answer.results.empty()}};
  if (answer.results.empty()) return verdict;
  const std::string wrong = first_difference(which, seed, answer);
  verdict["right"] = wrong.empty();
  verdict["wrong"] = wrong;
  verdict["links"] = of_links(answer, which.ranks);
  verdict["memory"] = answer.memory;
  verdict["host_waits"] = answer.host_waits;
  verdict["kernel_ns"] = answer.kernel_ns;
  verdict["elapsed_ns"] = answer.elapsed_ns;
  return verdict;
}

int judge(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  std::map<std::string, std::string> words = words_of(argv + std::min(argc, 2), std::max(argc - 2, 0));
  const Case which = Case::from(words);
  const std::uint64_t seed = std::stoull(words["seed"]);
  if (what == "inputs") {
    write_case(1, which, inputs_of(which, seed));
  } else if (what == "check") {
    std::cout << check(which, seed).dump() << '\n';
  } else {
    throw std::invalid_argument("judge inputs|check KEY=VALUE...");
  }
  return 0;
}

}  // namespace
}  // namespace overlap::teaching

int main(int argc, char** argv) {
  try {
    return overlap::teaching::judge(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "judge: " << error.what() << '\n';
    return 2;
  }
}

#include "judge.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vgpu/control.hpp>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "rank_replay.hpp"
#include "replayer.hpp"

namespace overlap::teaching {
namespace {

using nlohmann::json;

constexpr std::size_t kMostReport = 64 << 10;

/// The log's bytes. Throws LogError if it is no file, or larger than a log may be.
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostLogBytes + 1, '\0');
  if (!file) throw LogError("there is no log '" + path + "'");
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

json as_json(const RankCount& count) {
  return {{"bytes_out", count.bytes_out},
          {"bytes_in", count.bytes_in},
          {"products", count.products},
          {"launches", count.launches},
          {"host_waits", count.host_waits}};
}

void add_costs(json& verdict, const CallLog& log, const ReplayCase& wanted, const Replayed& replayed) {
  const std::vector<RankCount> found = counted(log, replayed.links), card = expected(wanted);
  verdict["cost_as_expected"] = found == card;
  verdict["memory"] = memory_held(log);
  for (std::size_t rank = 0; rank < found.size(); ++rank)
    verdict["cost"].push_back(
        {{"rank", rank}, {"counted", as_json(found[rank])}, {"expected", as_json(card[rank])}});
  verdict["links"] = json::array();
  for (const LinkCount& link : replayed.links)
    verdict["links"].push_back(
        {{"from", link.from}, {"to", link.to}, {"bytes", link.bytes}, {"messages", link.messages}});
}

void add_result(json& verdict, const Verification& found) {
  verdict["elements"] = found.elements;
  verdict["wrong_elements"] = found.mismatches;
  if (found.first.empty()) return;
  const Mismatch& first = found.first.front();
  const auto number = [](double value) { return value == value ? json(value) : json("NaN"); };
  verdict["first_wrong"] = {{"rank", first.rank},
                            {"shard", first.shard},
                            {"row", first.row},
                            {"column", first.column},
                            {"expected", number(first.expected)},
                            {"found", number(first.actual)}};
}

json verdict(std::string word, std::string sentence) {
  return {{"verdict", std::move(word)}, {"sentence", std::move(sentence)}};
}

bool any_stopped(const CallLog& log) {
  for (const bool stopped : log.stopped) {
    if (stopped) return true;
  }
  return false;
}

/// The judge's work, in its own process.
json find_verdict(const ReplayCase& wanted) {
  // What the virtual GPUs may still hold refers to it until the process ends.
  static CallLog log;
  try {
    log = read_call_log(read_file(wanted.log), wanted.known());
    for (const auto& lines : log.ranks) {
      for (const LogLine& line : lines) {
        if (line.call == LogCall::kLaunch) kernel_of(line, log, wanted.known());
      }
    }
  } catch (const LogError& error) {
    return verdict("refused", error.what());
  }
  const Replayed judged = replay(log, wanted, false);
  if (judged.deadlock) return verdict("deadlock", judged.failure);
  if (!judged.failure.empty()) return verdict("failed call", judged.failure);
  if (any_stopped(log))
    return verdict("failed call",
                   "a call of the submission failed, and what it made before does not show why");
  json result = judged.found.ok() ? verdict("right", describe(judged.found))
                                  : verdict("wrong result", describe(judged.found));
  add_result(result, judged.found);
  // With the race detector a second run of virtual GPUs in the same process would only take time.
  if (!judged.found.ok() || backend::race_detector()) return result;
  vgpu::reset();
  const Replayed costs = replay(log, wanted, true);
  if (costs.failure.empty()) add_costs(result, log, wanted, costs);
  return result;
}

/// A pipe whose ends close with it.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::runtime_error("the system has no pipe left");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int out() const { return ends_[0]; }
  int in() const { return ends_[1]; }
  void close_end(int end) {
    if (ends_[static_cast<std::size_t>(end)] >= 0) close(ends_[static_cast<std::size_t>(end)]);
    ends_[static_cast<std::size_t>(end)] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

[[noreturn]] void work(const ReplayCase& wanted, const Pipe& answer, const Pipe& report) {
  dup2(report.in(), STDERR_FILENO);
  std::string text;
  try {
    text = find_verdict(wanted).dump(-1, ' ', false, json::error_handler_t::replace);
  } catch (const std::exception& error) {
    text = verdict("failed call", error.what()).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  std::fflush(nullptr);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t written = write(answer.in(), text.data() + sent, text.size() - sent);
    if (written <= 0) break;
    sent += static_cast<std::size_t>(written);
  }
  _exit(kExitOk);
}

/// Reads both pipes until both are closed. Returns false once the time is over.
bool read_all(const Pipe& answer, const Pipe& report, int seconds, std::string& text, std::string& errors) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  std::array<pollfd, 2> ends{{{answer.out(), POLLIN, 0}, {report.out(), POLLIN, 0}}};
  std::array<std::string*, 2> into{&text, &errors};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0 || poll(ends.data(), ends.size(), static_cast<int>(left)) <= 0) return false;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t got = read(ends[i].fd, buffer.data(), buffer.size());
      if (got <= 0) {
        ends[i].fd = -1;
      } else if (into[i]->size() < kMostReport * (i == 0 ? 16 : 1)) {
        into[i]->append(buffer.data(), static_cast<std::size_t>(got));
      }
    }
  }
  return true;
}

/// What the process's end says, where it has not answered itself.
json verdict_of_end(int status, bool in_time, const ReplayCase& wanted) {
  if (!in_time)
    return verdict("timeout", "the replay takes more than " + std::to_string(wanted.seconds) + " s");
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitRace)
    return verdict("race", "nothing orders two accesses to the same memory");
  if (WIFSIGNALED(status))
    return verdict("failed call", "the replay was ended by signal " + std::to_string(WTERMSIG(status)));
  return verdict("failed call", "the replay ended with status " +
                                    std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1));
}

int exit_status(const std::string& word) {
  if (word == "right") return kExitOk;
  if (word == "wrong result") return kExitWrongResult;
  return word == "race" || word == "deadlock" ? kExitRace : kExitFailed;
}

void print(const json& result) {
  const auto text = [&](const char* name) { return result.at(name).get<std::string>(); };
  std::cout << text("verdict") << ": " << text("sentence") << '\n' << text("report");
  if (!result.contains("cost")) return;
  std::cout << (result["cost_as_expected"] ? "the cost is that of the cost card\n"
                                           : "the cost is not that of the cost card\n");
  for (const json& rank : result["cost"])
    std::cout << "  rank " << rank["rank"] << ": counted " << rank["counted"] << ", expected "
              << rank["expected"] << '\n';
}

}  // namespace

int judge(const ReplayCase& wanted) {
  Pipe answer, report;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("the system has no process left");
  if (child == 0) work(wanted, answer, report);
  answer.close_end(1);
  report.close_end(1);
  std::string text, errors;
  const bool in_time = read_all(answer, report, wanted.seconds, text, errors);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  json result = in_time ? json::parse(text, nullptr, false) : json(json::value_t::discarded);
  if (result.is_discarded()) result = verdict_of_end(status, in_time, wanted);
  result["report"] = errors;
  result["race_detector"] = backend::race_detector();
  result["schedule"] = wanted.schedule ? json(*wanted.schedule) : json(nullptr);
  if (wanted.json) {
    std::cout << result.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
  } else {
    print(result);
  }
  return exit_status(result["verdict"]);
}

}  // namespace overlap::teaching

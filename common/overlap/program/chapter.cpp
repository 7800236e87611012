#include "overlap/program/chapter.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <thread>
#include <vector>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/processes.hpp"
#include "overlap/gpu/run_state.hpp"
#include "overlap/program/cost_cards.hpp"
#include "overlap/program/timeline_file.hpp"

namespace overlap {
namespace {

constexpr std::chrono::seconds kStopPatience{10};  // longer than run_ranks() takes to give up

// Ends the process if it still lives after some seconds. The one place where the library does so itself: the
// main thread may sit in a CUDA call that never returns, and no exception reaches it there.
class Watchdog {
 public:
  /// 0 seconds: no watchdog.
  Watchdog(std::string name, int seconds) {
    if (seconds == 0) return;
    thread_ = std::jthread([name = std::move(name), seconds, done = done_.get_future()] {
      if (done.wait_for(std::chrono::seconds(seconds)) == std::future_status::ready) return;
      const std::string reason =
          "not finished after " + std::to_string(seconds) + " s, the limit of --timeout";
      // Stops the ranks in good order, if they still respond; the program then ends with that error.
      if (stop_active_run(reason) && done.wait_for(kStopPatience) == std::future_status::ready) return;
      std::fprintf(stderr, "%s: %s\n", name.c_str(), reason.c_str());
      std::_Exit(kExitFailed);
    });
  }
  ~Watchdog() { done_.set_value(); }  // the thread is joined right after
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::promise<void> done_;
  std::jthread thread_;
};

// The exception's text on the call, further facts, and for CUDA's most frequent failure an explanation.
std::string sentence_of(const FailedCall& error) {
  const std::string text = error.what() + (error.detail().empty() ? "" : ": " + error.detail());
  const auto* cuda = dynamic_cast<const CudaError*>(&error);
  if (cuda == nullptr || cuda->code() != cudaErrorMemoryAllocation) return text;
  return "GPU " + (error.device() < 0 ? "(unknown)" : std::to_string(error.device())) +
         " has not enough free memory; " + text;
}

// The number of GPUs to use. Throws Skip if fewer are available than requested.
int usable_gpus(const Options& options, const ChapterInfo& chapter, int available) {
  if (options.gpus <= available || (options.gpus_given && !chapter.without_ranks)) return options.gpus;
  if (!options.gpus_given) return available;
  throw Skip("--gpus: " + std::to_string(options.gpus) + " GPUs requested, " + std::to_string(available) +
             " available");
}

// The number of GPUs of the process with the fewest, and of the one with the most.
struct Available {
  int fewest, most;
};

Available available_in_all(Processes& processes, int here) {
  std::vector<double> largest{1.0 * here, -1.0 * here};
  processes.largest(largest, [] { return false; });
  return {.fewest = static_cast<int>(-largest[1]), .most = static_cast<int>(largest[0])};
}

// The number of GPUs to use in all processes together, the same in each.
int usable_gpus_of_all(const Options& options, Available available) {
  const int processes = options.processes->count(), wanted = options.gpus / processes;
  if (available.fewest == 0) throw Skip("another process has no GPU");
  const std::string fewest = "one process has " + std::to_string(available.fewest);
  if (!options.gpus_given && available.fewest != available.most) {
    throw UsageError("--gpus: it is needed, since " + fewest + " GPUs and another one " +
                     std::to_string(available.most));
  }
  if (options.gpus_given && available.fewest < wanted)
    throw UsageError("--gpus: each process needs " + std::to_string(wanted) + ", and " + fewest);
  return processes * std::min(wanted, available.fewest);
}

// Settles the number of GPUs. Throws Skip if fewer are available than requested.
void use_gpus_that_are_here(Options& options, const ChapterInfo& chapter) {
  const std::string reason = backend::unavailable();
  int available = 0;
  if (reason.empty()) CUDA_CHECK(cudaGetDeviceCount(&available));
  Available in_all{available, available};
  if (options.processes != nullptr) in_all = available_in_all(*options.processes, available);
  if (!reason.empty()) throw Skip(reason);  // not before: the other processes wait for the number
  options.use_gpus(options.processes != nullptr ? usable_gpus_of_all(options, in_all)
                                                : usable_gpus(options, chapter, available),
                   chapter);
}

// The command line: that of process 0, if there are several processes.
std::vector<std::string> arguments_of_all(Processes* processes, int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  if (processes == nullptr) return arguments;
  std::string text;
  for (const std::string& argument : arguments) text += argument + '\0';
  std::istringstream of_the_first(processes->broadcast(text));
  arguments.clear();
  for (std::string argument; std::getline(of_the_first, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

// As run_and_report(). Of several processes, returns only if the program succeeds in all of them.
int run_in_all(Processes* processes, const std::string& name, const std::function<void()>& program) {
  if (processes == nullptr) return run_and_report(name, program, std::cerr);
  std::ostringstream told;
  const int status = run_and_report(name, program, told);
  processes->end(status, told.str());
  return kExitOk;
}

}  // namespace

int run_and_report(const std::string& name, const std::function<void()>& program, std::ostream& error) {
  const auto fail = [&](const std::string& sentence, int status) {
    std::cout.flush();  // what was printed before the failure stands before it
    const std::string context = status == kExitSkipped ? "" : backend::failure_context();
    error << name << ": " << sentence << (context.empty() ? "" : " (" + context + ")") << std::endl;
    return status;
  };
  try {
    program();
  } catch (const Skip& skip) {
    return fail(std::string("skipped: ") + skip.what(), kExitSkipped);
  } catch (const WrongResult& wrong) {
    return fail(std::string("wrong result: ") + wrong.what(), kExitWrongResult);
  } catch (const UsageError& unusable) {
    return fail(unusable.what(), kExitFailed);
  } catch (const FailedCall& failed) {
    return fail(sentence_of(failed), backend::failure_exit_code());
  } catch (const std::bad_alloc&) {
    return fail("not enough host memory", kExitFailed);
  } catch (const std::exception& other) {
    return fail(other.what(), kExitFailed);
  } catch (...) {
    return fail("an unknown exception", kExitFailed);
  }
  std::cout.flush();
  if (!std::cout) return fail("standard output cannot be written", kExitFailed);
  // The program may have ignored the call that returned the error.
  if (backend::failure_exit_code() == kExitRace)
    return fail("the virtual GPUs reported a failure", kExitRace);
  return kExitOk;
}

int chapter_main(int argc, char** argv, ChapterInfo chapter,
                 const std::function<void(const Options&)>& program) {
  if (chapter.table) {
    Options none;
    none.type = chapter.element_types().front();
    chapter.variants = chapter.table(none).names();
  }
  const std::unique_ptr<Processes> processes = start_processes();
  const std::vector<std::string> arguments = arguments_of_all(processes.get(), argc, argv);
  std::vector<const char*> words;
  for (const std::string& argument : arguments) words.push_back(argument.c_str());

  std::optional<Options> options;
  const int status = run_in_all(processes.get(), chapter.name, [&] {
    try {
      std::ostringstream nowhere;
      std::ostream& out = processes == nullptr || processes->index() == 0 ? std::cout : nowhere;
      options = parse_options(static_cast<int>(words.size()), words.data(), chapter, out, processes.get());
      if (options && options->cost) {
        print_costs(out, chapter, *options);
        options.reset();
      }
      if (options) backend::configure(options->backend);
    } catch (const UsageError& error) {
      throw UsageError(std::string(error.what()) + " (--help shows the options)");
    }
  });
  if (status != kExitOk || !options) return status;

  const Watchdog watchdog(chapter.name, options->timeout_s);
  const int ended = run_in_all(processes.get(), chapter.name, [&] {
    use_gpus_that_are_here(*options, chapter);
    if (!options->timeline.empty()) backend::record_timeline();
    program(*options);
    const std::string context = backend::failure_context();  // a success is printed with its schedule, too
    if (!context.empty() && options->is_root()) std::cout << "\n" << context << "\n";
  });
  if (ended != kExitOk || !options->is_root()) return ended;  // a failed run has no timeline
  return run_and_report(
      chapter.name, [&] { save_timeline(chapter, *options); }, std::cerr);
}

int chapter_main(int argc, char** argv, const ChapterInfo& chapter,
                 const std::function<void(const Options&, Report&)>& program) {
  return chapter_main(argc, argv, chapter, [&](const Options& options) {
    Report report(chapter, options);
    program(options, report);
    report.save();
  });
}

}  // namespace overlap

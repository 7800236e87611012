#include "overlap/program/chapter.hpp"

#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <thread>

#include "gpu/team.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/processes.hpp"
#include "overlap/program/timeline_file.hpp"
#include "program/agreement.hpp"

namespace overlap {
namespace {

constexpr std::chrono::seconds kStopPatience{10};  // more than run_ranks() needs to give up

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
      // Ranks are stopped in good order, if they still answer: then that is the program's error.
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

// What the exception says about the call, what else is known, and for CUDA's commonest failure plain words.
std::string sentence_of(const FailedCall& error) {
  const std::string text = error.what() + (error.detail().empty() ? "" : ": " + error.detail());
  const auto* cuda = dynamic_cast<const CudaError*>(&error);
  if (cuda == nullptr || cuda->code() != cudaErrorMemoryAllocation) return text;
  return "GPU " + (error.device() < 0 ? "(unknown)" : std::to_string(error.device())) +
         " has not enough free memory; " + text;
}

// The number of GPUs to use, of those that are here. Throws Skip if there are fewer than asked for.
int usable_gpus(const Options& options, const ChapterInfo& chapter, int available) {
  if (options.gpus <= available || (options.gpus_given && !chapter.without_ranks)) return options.gpus;
  if (!options.gpus_given) return available;
  throw Skip("--gpus: " + std::to_string(options.gpus) + " GPUs asked for, " + std::to_string(available) +
             " here");
}

// Takes as many GPUs as can be had. Throws Skip if there are fewer than asked for.
void use_gpus_that_are_here(Options& options, const ChapterInfo& chapter) {
  const std::string reason = backend::unavailable();
  if (!reason.empty()) throw Skip(reason);
  int available = 0;
  CUDA_CHECK(cudaGetDeviceCount(&available));
  if (options.processes != nullptr) return agree_on_options(*options.processes, options, chapter, available);
  options.use_gpus(usable_gpus(options, chapter, available), chapter);
}

// Meets the processes that run this program together; there are none if this is the only one. Returns the
// exit status.
int meet_others(const ChapterInfo& chapter, std::unique_ptr<Processes>& processes) {
  std::ostringstream told;
  bool tells = true;
  const auto meet = [&] {
    const std::optional<Meeting> meeting = meeting_from_environment();
    if (!meeting) return;
    if (!chapter.has_nodes) {
      tells = meeting->index == 0;
      throw UsageError("OVERLAP_RENDEZVOUS: this chapter has no nodes, and runs as one process");
    }
    processes = std::make_unique<Processes>(*meeting);
  };
  const int status = run_and_report(chapter.name, meet, told);
  if (tells) std::cerr << told.str() << std::flush;
  return status;
}

// As run_and_report(). Of several processes the first one tells why they fail; the others only if it cannot.
int run_in_all(Processes* processes, const std::string& name, const std::function<void()>& program) {
  if (processes == nullptr) return run_and_report(name, program, std::cerr);
  std::ostringstream told;
  const int status = run_and_report(name, program, told);
  if (status == kExitOk) return status;
  const std::string text = told.str();
  processes->stop(status, text.substr(name.size() + 2, text.find('\n') - name.size() - 2));
  if (processes->index() == 0 || !processes->first_knows()) std::cerr << text << std::flush;
  return status;
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
  } catch (const ProcessFailed& other) {
    return fail(other.what(), other.status());
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
  // A program may not have looked at the call that met it.
  if (backend::failure_exit_code() == kExitRace)
    return fail("the virtual GPUs reported a failure", kExitRace);
  return kExitOk;
}

int chapter_main(int argc, char** argv, const ChapterInfo& chapter,
                 const std::function<void(const Options&)>& program) {
  std::unique_ptr<Processes> processes;
  if (const int met = meet_others(chapter, processes); met != kExitOk) return met;

  std::optional<Options> options;
  const int status = run_in_all(processes.get(), chapter.name, [&] {
    try {
      std::ostringstream nowhere;
      std::ostream& out = processes == nullptr || processes->index() == 0 ? std::cout : nowhere;
      options = parse_options(argc, argv, chapter, out, processes.get());
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
    if (processes != nullptr) processes->leave();
    const std::string context = backend::failure_context();  // a success is told with its schedule, too
    if (!context.empty() && options->tells()) std::cout << "\n" << context << "\n";
  });
  if (ended != kExitOk || !options->tells()) return ended;  // no timeline of what went wrong
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

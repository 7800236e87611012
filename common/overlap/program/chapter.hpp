// The frame of every chapter program: from the command line to the exit status.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "overlap/program/options.hpp"
#include "overlap/program/report.hpp"

namespace overlap {

/// Reads the options, prepares the GPUs, runs `program` and returns the exit status for main(). Every failure
/// becomes one sentence on standard error; under --schedule, success and failure are reported with the
/// schedule and its hash. The status is
///   0   the result is right (or --help, --list, --cost),
///   1   WrongResult,
///   2   the options cannot be used, a call failed, memory ran out, or --timeout passed,
///   3   the virtual GPUs reported a race or a deadlock,
///   77  it cannot run here (no GPU, or fewer than --gpus): the reason is on one line.
/// If several processes run the program (processes.hpp), all have the options of process 0, which prints and
/// writes the files, and a failure of one ends all of them with its status.
/// When --timeout passes, the process ends at once from a thread of its own, without destructors: a GPU that
/// hangs never lets the main thread go.
int chapter_main(int argc, char** argv, ChapterInfo chapter,
                 const std::function<void(const Options&)>& program);
/// The same for a program with results, which are saved at its end.
int chapter_main(int argc, char** argv, const ChapterInfo& chapter,
                 const std::function<void(const Options&, Report&)>& program);

/// Runs `program` and returns the exit status that its exception stands for (see chapter_main), 0 if it
/// throws none. A failure is written to `error` as "name: sentence".
int run_and_report(const std::string& name, const std::function<void()>& program, std::ostream& error);

}  // namespace overlap

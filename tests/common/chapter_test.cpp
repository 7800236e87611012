#include "overlap/program/chapter.hpp"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <iostream>
#include <new>
#include <sstream>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

struct Outcome {
  int status;
  std::string out;
  std::string error;
};

// Captures a stream's output during its lifetime.
class Capture {
 public:
  explicit Capture(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
  ~Capture() { stream_.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::ostream& stream_;
  std::streambuf* before_;
};

Outcome run(std::vector<std::string> words, const std::function<void(const Options&)>& program) {
  words.insert(words.begin(), "99_test");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const ChapterInfo info = {.name = "99_test",
                            .summary = "Tests.",
                            .variants = {"plain"},
                            .on_virtual_gpus = {.shape = {4, 4, 4}, .gpus = 1},
                            .on_real_gpus = {.shape = {4, 4, 4}, .gpus = 1},
                            .without_ranks = true};
  const Capture out(std::cout);
  const Capture error(std::cerr);
  const int status = chapter_main(static_cast<int>(argv.size()), argv.data(), info, program);
  return {status, out.text(), error.text()};
}

template <typename Exception, typename... Arguments>
Outcome outcome_of(const Arguments&... arguments) {
  std::ostringstream error;
  const int status = run_and_report(
      "99_test", [&] { throw Exception(arguments...); }, error);
  return {status, "", error.str()};
}

TEST(RunAndReportTest, SuccessIsSilent) {
  std::ostringstream error;
  int calls = 0;
  EXPECT_EQ(run_and_report(
                "99_test", [&] { ++calls; }, error),
            0);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(error.str(), "");
}

void expect_outcome(const Outcome& outcome, int status, const std::string& error) {
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.error, error);
}

TEST(RunAndReportTest, EachExceptionHasItsStatusAndSentence) {
  expect_outcome(outcome_of<WrongResult>("C is wrong"), 1, "99_test: wrong result: C is wrong\n");
  expect_outcome(outcome_of<UsageError>("too large"), 2, "99_test: too large\n");
  expect_outcome(outcome_of<Skip>("no NCCL"), 77, "99_test: skipped: no NCCL\n");
  expect_outcome(outcome_of<std::bad_alloc>(), 2, "99_test: not enough host memory\n");
  expect_outcome(outcome_of<std::logic_error>("a bug"), 2, "99_test: a bug\n");
  std::ostringstream error;
  EXPECT_EQ(run_and_report(
                "99_test", [] { throw 5; }, error),
            2);
  EXPECT_EQ(error.str(), "99_test: an unknown exception\n");
}

TEST(RunAndReportTest, CudaErrors) {
  Outcome outcome = outcome_of<CudaError>(cudaErrorInvalidValue, "cudaFoo()", "a.cu", 5, 1);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(outcome.error.starts_with("99_test: a.cu:5: cudaFoo(): cudaErrorInvalidValue ("))
      << outcome.error;
  outcome = outcome_of<CudaError>(cudaErrorMemoryAllocation, "cudaMalloc()", "a.cu", 5, 1);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(outcome.error.starts_with("99_test: GPU 1 has not enough free memory; a.cu:5: cudaMalloc(): "))
      << outcome.error;
}

TEST(RunAndReportTest, NcclErrors) {
  const Outcome outcome = outcome_of<NcclError>(ncclInvalidUsage, "ncclFoo()", "a.cu", 5, 1);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(outcome.error.starts_with("99_test: a.cu:5: ncclFoo(): invalid usage")) << outcome.error;
  EXPECT_NE(outcome.error.find(", device 1"), std::string::npos) << outcome.error;
}

TEST(RunAndReportTest, OutputThatCannotBeWrittenIsAFailure) {
  std::ostringstream error;
  std::cout.setstate(std::ios::badbit);
  const int status = run_and_report(
      "99_test", [] {}, error);
  std::cout.clear();
  EXPECT_EQ(status, 2);
  EXPECT_EQ(error.str(), "99_test: standard output cannot be written\n");
}

TEST(ChapterMainTest, BadOptionsNeverStartTheProgram) {
  int calls = 0;
  const Outcome outcome = run({"--gpus", "0"}, [&](const Options&) { ++calls; });
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.error, "99_test: --gpus: 0 is not between 1 and 16 (--help shows the options)\n");
  EXPECT_EQ(run({"--nonsense"}, [&](const Options&) { ++calls; }).status, 2);
  EXPECT_EQ(calls, 0);
}

TEST(ChapterMainTest, HelpAndListEndWithSuccess) {
  int calls = 0;
  const Outcome help = run({"--help"}, [&](const Options&) { ++calls; });
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("--gpus"), std::string::npos);
  EXPECT_EQ(help.error, "");
  const Outcome list = run({"--list"}, [&](const Options&) { ++calls; });
  EXPECT_EQ(list.status, 0);
  EXPECT_EQ(list.out, "plain\n");
  EXPECT_EQ(calls, 0);
}

// Runs chapter_main and ends the process as a program would. For death tests, each a process of its own: the
// number of virtual GPUs must be set before the process's first CUDA call.
[[noreturn]] void run_and_exit(const std::vector<std::string>& words,
                               const std::function<void(const Options&)>& program) {
  const Outcome outcome = run(words, program);
  std::fputs(outcome.error.c_str(), stderr);
  std::_Exit(outcome.status);
}

TEST(ChapterMainTest, WhatOnlyVirtualGpusCanDo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto nothing = [](const Options&) {};
  const auto wrong = [](const Options&) { throw WrongResult("C"); };
  if (backend::modelled_time()) {
    EXPECT_EXIT(run_and_exit({"--machine", "no-such-machine"}, nothing), testing::ExitedWithCode(2),
                "^99_test: --machine: .*no-such-machine");
    EXPECT_EXIT(run_and_exit({"--machine", "small", "--schedule", "17"}, nothing), testing::ExitedWithCode(0),
                "^$");
    EXPECT_EXIT(run_and_exit({"--schedule", "17"}, wrong), testing::ExitedWithCode(1),
                "^99_test: wrong result: C \\(schedule 17, hash [0-9a-f]+\\)\n$");
  } else {
    EXPECT_EXIT(run_and_exit({"--machine", "small"}, nothing), testing::ExitedWithCode(2),
                "^99_test: --machine: only virtual GPUs");
    EXPECT_EXIT(run_and_exit({"--schedule", "17"}, nothing), testing::ExitedWithCode(2),
                "^99_test: --schedule: only virtual GPUs");
  }
}

TEST(ChapterMainTest, WithoutAGpuItIsSkipped) {
  if (backend::unavailable().empty()) GTEST_SKIP() << "there is a GPU";
  int calls = 0;
  const Outcome outcome = run({}, [&](const Options&) { ++calls; });
  EXPECT_EQ(outcome.status, 77);
  EXPECT_TRUE(outcome.error.starts_with("99_test: skipped: no GPU can be used: ")) << outcome.error;
  EXPECT_EQ(calls, 0);
}

class ChapterMainGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!backend::unavailable().empty()) GTEST_SKIP() << backend::unavailable();
  }
};

TEST_F(ChapterMainGpuTest, RunsTheProgram) {
  int m = 0;
  const Outcome outcome = run({"--m", "9"}, [&](const Options& options) {
    m = static_cast<int>(options.shape.m);
    std::cout << "hello";
  });
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "hello");
  EXPECT_EQ(m, 9);
  EXPECT_EQ(run({}, [](const Options&) { throw WrongResult("x"); }).status, 1);
}

TEST_F(ChapterMainGpuTest, FewerGpusThanAskedForIsSkipped) {
  if (backend::modelled_time()) GTEST_SKIP() << "virtual GPUs are as many as are asked for";
  int available = 0;
  ASSERT_EQ(cudaGetDeviceCount(&available), cudaSuccess);
  if (available >= 16) GTEST_SKIP() << "--gpus cannot ask for more than are here";
  int calls = 0;
  const Outcome outcome = run({"--gpus", "16"}, [&](const Options&) { ++calls; });
  EXPECT_EQ(outcome.status, 77);
  EXPECT_EQ(outcome.error,
            "99_test: skipped: --gpus: 16 GPUs requested, " + std::to_string(available) + " available\n");
  EXPECT_EQ(calls, 0);
}

TEST_F(ChapterMainGpuTest, TheTimeoutEndsAProgramThatHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::promise<void> never;
  EXPECT_EXIT(run({"--timeout", "1"}, [&](const Options&) { never.get_future().wait(); }),
              testing::ExitedWithCode(2), "99_test: not finished after 1 s, the limit of --timeout");
}

TEST_F(ChapterMainGpuTest, AProgramInTimeIsLeftAlone) {
  EXPECT_EQ(run({"--timeout", "3600"}, [](const Options&) {}).status, 0);
}

}  // namespace
}  // namespace overlap

// One definition of a row gives the printed and the saved values.
#include "overlap/bench/result_table.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "overlap/gpu/backend.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

std::string text_of(const ResultTable& table) {
  std::ostringstream text;
  text << table;
  return text.str();
}

Report empty_report() {
  ChapterInfo chapter;
  chapter.name = "99_test";
  return Report(chapter, Options{});
}

ResultTable table() {
  return ResultTable({{"", "variant"},
                      {"us", "device_ms", microseconds()},
                      {"ratio", "ratio", digits(2, 1, " x")},
                      {"GPUs", "gpus"}});
}

TEST(ResultTableTest, PrintsAndSavesTheSameRow) {
  ResultTable results = table();
  results.add({{"section", std::string("s")},
               {"variant", std::string("first")},
               {"gpus", std::int64_t{3}},
               {"device_ms", 0.0123456},
               {"ratio", 1.5}});
  EXPECT_EQ(text_of(results),
            "         us   ratio  GPUs\n"
            "first  12.3  1.50 x     3\n");
  Report report = empty_report();
  testing::internal::CaptureStdout();
  results.finish("above\n", report);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "above\n" + text_of(results));
  EXPECT_EQ(nlohmann::ordered_json::parse(report.json())["results"].dump(),
            R"([{"section":"s","variant":"first","gpus":3,"device_ms":0.0123456,"ratio":1.5}])");
}

TEST(ResultTableTest, WithoutRowsNothingIsPrinted) {
  Report report = empty_report();
  testing::internal::CaptureStdout();
  table().finish("above\n", report);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(ResultTableTest, WhatIsNotThereIsADash) {
  ResultTable results = table();
  results.add({{"variant", std::string("first")}});
  EXPECT_EQ(text_of(results), "       us  ratio  GPUs\nfirst   -      -     -\n");
}

TEST(ResultTableTest, WhatIsOnlyShownIsNotSaved) {
  ResultTable results = table();
  results.add({{"gpus", std::int64_t{2}}}, {{"variant", std::string("second")}, {"ratio", 0.25}});
  results.add({}, {{"variant", std::string("third")}});
  EXPECT_EQ(text_of(results),
            "        us   ratio  GPUs\n"
            "second   -  0.25 x     2\n"
            "third    -       -     -\n");
  Report report = empty_report();
  results.save(report);
  EXPECT_EQ(nlohmann::json::parse(report.json())["results"].dump(), R"([{"gpus":2}])");
}

TEST(ResultTableTest, ATimeIsCalledModelledWhereItIs) {
  EXPECT_EQ(modelled("us"), backend::modelled_time() ? "us (modelled)" : "us");
}

}  // namespace
}  // namespace overlap

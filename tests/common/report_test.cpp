#include "overlap/program/report.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, removed at the end.
class FolderTest : public testing::Test {
 protected:
  FolderTest() { fs::create_directory(folder_); }
  ~FolderTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  int files() const { return static_cast<int>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_ = fs::temp_directory_path() / ("overlap-report-" + std::to_string(getpid()));
};

using ReportTest = FolderTest;
using WriteFileTest = FolderTest;

ChapterInfo reported_chapter() {
  ChapterInfo info;
  info.name = "99_test";
  return info;
}

Options some_options() {
  Options options;
  options.gpus = 3;
  options.shape = {5, 6, 7};
  options.iterations = 8;
  options.warmup = 2;
  options.seed = UINT64_MAX;
  options.variants = {"a", "b"};
  return options;
}

TEST_F(ReportTest, NamesWhatIsSkippedOnce) {
  Report report(reported_chapter(), some_options());
  report.add_result({{"variant", std::string("a")}, {"ms", 1.5}});
  report.add_skipped("b", "no peer access");
  report.add_skipped("b", "again");
  const auto results = nlohmann::json::parse(report.json())["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1],
            (nlohmann::json{{"variant", "b"}, {"status", "skipped"}, {"reason", "no peer access"}}));
  EXPECT_NO_THROW(report.require_some());
  report.add_skipped("c", "not chosen");
  EXPECT_NO_THROW(report.require_some());
  report.add_skipped("a", "neither");
  EXPECT_THROW(report.require_some(), Skip);
}

TEST_F(ReportTest, APartThatCannotRunIsSkippedAndOtherFailuresAreNot) {
  Report report(reported_chapter(), some_options());
  testing::internal::CaptureStdout();
  report.run_part("a", true, [] {});
  report.run_part("b", true, [] { throw Skip("no peer access"); });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "b is left out: no peer access\n");
  testing::internal::CaptureStdout();
  report.run_part("a", false, [] { throw Skip("told by the first rank"); });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_NO_THROW(report.require_some());
  EXPECT_THROW(report.run_part("a", true, [] { throw WrongResult("wrong"); }), WrongResult);
}

TEST_F(ReportTest, IsNotSavedIfAllIsSkipped) {
  Options options = some_options();
  options.json = path("report.json");
  Report report(reported_chapter(), options);
  report.add_skipped("a", "first");
  report.add_skipped("b", "second");
  EXPECT_THROW(report.save(), Skip);
  EXPECT_EQ(files(), 0);
}

TEST_F(ReportTest, HasResultsAndStamp) {
  Options options = some_options();
  options.backend.schedule = 17;
  Report report(reported_chapter(), options);
  report.add_result({{"variant", "a \"quoted\" name"}, {"gpus", 2}, {"kernel_ms", 0.1}});
  report.add_result({{"variant", "b"}, {"bytes", std::int64_t{1} << 40}});
  const auto json = nlohmann::json::parse(report.json());
  EXPECT_EQ(json.at("chapter"), "99_test");
  EXPECT_EQ(json.at("backend"), backend::name());
  EXPECT_EQ(json.at("modelled"), backend::modelled_time());
  EXPECT_EQ(json.at("status"), "ok");
  EXPECT_EQ(json.at("commit"), std::string(commit()));
  EXPECT_FALSE(commit().empty());
  // 2026-01-31T23:59:59Z
  std::string date = json.at("date");
  for (char& c : date) c = std::isdigit(static_cast<unsigned char>(c)) != 0 ? '0' : c;
  EXPECT_EQ(date, "0000-00-00T00:00:00Z");
  EXPECT_EQ(json.at("options").at("gpus"), 3);
  EXPECT_EQ(json.at("options").at("m"), options.shape.m);
  EXPECT_EQ(json.at("options").at("n"), 6);
  EXPECT_EQ(json.at("options").at("k"), options.shape.k);
  EXPECT_EQ(json.at("options").at("iterations"), options.iterations);
  EXPECT_EQ(json.at("options").at("warmup"), options.warmup);
  EXPECT_EQ(json.at("options").at("seed"), UINT64_MAX);
  EXPECT_EQ(json.at("options").at("type"), "int32");
  EXPECT_EQ(json.at("options").at("schedule"), 17);
  EXPECT_EQ(json.at("options").at("variants").size(), 2U);
  ASSERT_EQ(json.at("results").size(), 2U);
  EXPECT_EQ(json.at("results")[0].at("variant"), "a \"quoted\" name");
  EXPECT_EQ(json.at("results")[0].at("kernel_ms"), 0.1);
  EXPECT_EQ(json.at("results")[1].at("bytes"), 1099511627776);
  for (const char* fact : {"gpu", "gpus"}) {
    EXPECT_FALSE(json.at("hardware").at(fact).get<std::string>().empty()) << fact;
  }
}

TEST_F(ReportTest, RefusesWhatJsonCannotHold) {
  Report report(reported_chapter(), some_options());
  EXPECT_THROW(report.add_result({{"time", std::nan("")}}), std::invalid_argument);
  EXPECT_THROW(report.add_result({{"time", HUGE_VAL}}), std::invalid_argument);
  EXPECT_EQ(nlohmann::json::parse(report.json()).at("results").size(), 0U);
}

TEST_F(ReportTest, SavesWhereAsked) {
  Options options = some_options();
  Report(reported_chapter(), options).save();
  EXPECT_EQ(files(), 0);
  options.json = path("result.json");
  Report(reported_chapter(), options).save();
  EXPECT_EQ(nlohmann::json::parse(content(options.json)).at("chapter"), "99_test");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFileTest, ReplacesAnOldFile) {
  write_file(path("a"), "old and longer");
  write_file(path("a"), "new");
  EXPECT_EQ(content(path("a")), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFileTest, FollowsALink) {
  write_file(path("a"), "old");
  fs::create_symlink("a", path("link"));
  write_file(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("a")), "new");
}

TEST_F(WriteFileTest, AFailureLeavesNothingBehind) {
  EXPECT_THROW(write_file(path("no/folder"), "text"), std::runtime_error);
  fs::create_directory(path("folder"));
  EXPECT_THROW(write_file(path("folder"), "text"), std::runtime_error);
  EXPECT_TRUE(fs::is_empty(path("folder")));
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFileTest, AFullDiskLeavesTheOldFile) {
  write_file(path("a"), "old");
  // A limit on the file size stands in for a full disk.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto write_too_much = [this] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(path("a"), std::string(100000, 'x'));
    } catch (const std::runtime_error&) {
      const bool clean = content(path("a")) == "old" && files() == 1;
      fs::remove_all(folder_);  // _Exit calls no destructor
      std::_Exit(clean ? 42 : 43);
    }
  };
  EXPECT_EXIT(write_too_much(), testing::ExitedWithCode(42), "");
}

TEST_F(WriteFileTest, RequireWritableChangesNothing) {
  require_writable("--json", path("new"));
  EXPECT_EQ(files(), 0);
  write_file(path("old"), "old");
  require_writable("--json", path("old"));
  EXPECT_EQ(content(path("old")), "old");
  EXPECT_THROW(require_writable("--json", path("old/below")), UsageError);
  EXPECT_THROW(require_writable("--json", path("no/folder")), UsageError);
  EXPECT_THROW(require_writable("--json", ""), UsageError);
  try {
    require_writable("--timeline", "");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--timeline: the name of the file is empty");
  }
  EXPECT_EQ(files(), 1);
}

TEST(TableTest, AlignsNumbersOnTheRight) {
  Table table({"variant", "GPUs", "time"});
  table.add_row({"plain", "1", "10.25 ms"});
  table.add_row({"fast", "16", "9.50 ms"});
  table.add_row({"2nd", "-", "-"});
  EXPECT_EQ(table.text(),
            "variant  GPUs      time\n"
            "plain       1  10.25 ms\n"
            "fast       16   9.50 ms\n"
            "2nd         -         -\n");
  std::ostringstream out;
  out << table;
  EXPECT_EQ(out.str(), table.text());
}

TEST(TableTest, CountsCharactersNotBytes) {
  Table table({"a", "b"});
  table.add_row({"\u00b5s", "x"});
  table.add_row({"abc", "y"});
  EXPECT_EQ(table.text(), "a    b\n\u00b5s   x\nabc  y\n");
}

TEST(TableTest, EmptyAndWrongRows) {
  Table table({"name", "n"});
  EXPECT_EQ(table.text(), "name  n\n");
  EXPECT_THROW(table.add_row({"only one"}), std::invalid_argument);
}

TEST(FixedTest, Digits) {
  EXPECT_EQ(fixed(3.14159, 2), "3.14");
  EXPECT_EQ(fixed(2, 0), "2");
  EXPECT_EQ(fixed(-0.5, 3), "-0.500");
}

}  // namespace
}  // namespace overlap

#include "overlap/program/options.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

ChapterInfo chapter() {
  return {.name = "99_test",
          .summary = "Tests the options.",
          .variants = {"plain", "fast", "odd"},
          .on_virtual_gpus = {.shape = {64, 32, 16}, .gpus = 2, .iterations = 3, .warmup = 1},
          .on_real_gpus = {.shape = {4096, 8192, 1024}, .gpus = 4, .iterations = 20, .warmup = 5},
          .types = {ElementType::kInt32, ElementType::kBf16}};
}

std::optional<Options> parse(std::vector<const char*> words, std::ostream& out,
                             const ChapterInfo& info = chapter()) {
  words.insert(words.begin(), "99_test");
  return parse_options(static_cast<int>(words.size()), words.data(), info, out);
}

Options parsed(const std::vector<const char*>& words) {
  std::ostringstream out;
  const std::optional<Options> options = parse(words, out);
  EXPECT_EQ(out.str(), "");
  return options.value();
}

TEST(OptionsTest, Defaults) {
  const Options options = parsed({});
  const ChapterDefaults defaults = chapter().defaults();
  EXPECT_EQ(defaults.gpus, backend::modelled_time() ? 2 : 4);
  EXPECT_EQ(options.gpus, defaults.gpus);
  EXPECT_FALSE(options.gpus_given);
  EXPECT_EQ(options.shape, defaults.shape);
  EXPECT_EQ(options.iterations, defaults.iterations);
  EXPECT_EQ(options.warmup, defaults.warmup);
  EXPECT_EQ(options.type, ElementType::kInt32);
  EXPECT_EQ(options.seed, 1U);
  EXPECT_TRUE(options.check);
  EXPECT_EQ(options.json, "");
  EXPECT_EQ(options.timeline, "");
  EXPECT_EQ(options.variants, chapter().variants);
  EXPECT_EQ(options.timeout_s, backend::modelled_time() ? 0 : 60);
  EXPECT_FALSE(options.corrupt);
  EXPECT_FALSE(options.backend.schedule.has_value());
  EXPECT_EQ(options.backend.machine, "");
}

TEST(OptionsTest, SizesGrowWithTheGpusUnlessTheyAreGiven) {
  const ChapterDefaults defaults = {.shape = {0, 7, 100}, .per_gpu = {10, 2, 0}};
  EXPECT_EQ(defaults.shape_on(3), (MatmulShape{30, 13, 100}));
  // 80 rows for 8 GPUs become 128, eight for each of 16; 2 columns for each are fewer than eight.
  EXPECT_EQ(defaults.shape_on(16), (MatmulShape{backend::modelled_time() ? 128 : 160, 39, 100}));
  const ChapterInfo grows = {.on_virtual_gpus = defaults, .on_real_gpus = defaults};
  Options options;
  options.use_gpus(2, grows);
  EXPECT_EQ(options.gpus, 2);
  EXPECT_EQ(options.shape, (MatmulShape{20, 11, 100}));
  options.given_shape = {5, 0, 6};
  options.use_gpus(4, grows);
  EXPECT_EQ(options.shape, (MatmulShape{5, 15, 6}));
}

TEST(OptionsTest, AllAtOnce) {
  const Options options = parsed({"--gpus",     "16",        "--m",          "1",
                                  "--n",        "2",         "--k",          "3",
                                  "--type",     "bf16",      "--iterations", "10000",
                                  "--warmup",   "0",         "--seed",       "18446744073709551615",
                                  "--no-check", "--only",    "odd,plain",    "--timeout",
                                  "7",          "--corrupt", "--schedule",   "17",
                                  "--machine",  "m"});
  EXPECT_EQ(options.gpus, 16);
  EXPECT_TRUE(options.gpus_given);
  EXPECT_EQ(options.shape, (MatmulShape{1, 2, 3}));
  EXPECT_EQ(options.type, ElementType::kBf16);
  EXPECT_EQ(options.iterations, 10000);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_EQ(options.seed, UINT64_MAX);
  EXPECT_FALSE(options.check);
  EXPECT_EQ(options.variants, (std::vector<std::string>{"plain", "odd"}));  // in the chapter's order
  EXPECT_TRUE(options.runs("odd"));
  EXPECT_FALSE(options.runs("fast"));
  EXPECT_EQ(options.timeout_s, 7);
  EXPECT_TRUE(options.corrupt);
  EXPECT_EQ(options.backend.schedule, 17U);
  EXPECT_EQ(options.backend.machine, "m");
}

TEST(OptionsTest, EqualSignsAndCheck) {
  const Options options = parsed({"--m=5", "--check"});
  EXPECT_EQ(options.shape.m, 5);
  EXPECT_TRUE(options.check);
}

TEST(OptionsTest, SizesBeyond32Bits) {
  const Options options = parsed({"--m", "65536", "--n", "65537", "--k", "3000000000"});
  EXPECT_EQ(options.shape, (MatmulShape{65536, 65537, 3000000000}));
}

std::optional<Options> parse_with_nccl(const std::vector<const char*>& words, bool newer_modes) {
  ChapterInfo info = chapter();
  info.has_nccl_modes = true;
  info.variants = {"nccl", "communication_only"};
  if (newer_modes) info.variants = {"nccl", "nccl_registered", "nccl_copy_engine", "communication_only"};
  std::ostringstream out;
  return parse(words, out, info);
}

TEST(OptionsTest, AModeOfNcclKeepsItsVariant) {
  using Names = std::vector<std::string>;
  EXPECT_FALSE(parse_with_nccl({}, true)->nccl.has_value());
  const std::optional<Options> engines = parse_with_nccl({"--nccl", "copy-engine"}, true);
  EXPECT_EQ(engines->nccl, NcclMode::kCopyEngine);
  EXPECT_EQ(engines->variants, (Names{"nccl_copy_engine", "communication_only"}));
  EXPECT_EQ(parse_with_nccl({"--nccl", "plain"}, true)->variants, (Names{"nccl", "communication_only"}));
  EXPECT_EQ(parse_with_nccl({"--nccl", "plain", "--only", "nccl"}, false)->variants, Names{"nccl"});
  EXPECT_THROW(parse_with_nccl({"--nccl", "plain", "--only", "nccl_registered"}, true), UsageError);
  EXPECT_THROW(parse_with_nccl({"--nccl", "fast"}, true), UsageError);
  EXPECT_THROW(parsed({"--nccl", "plain"}), UsageError);  // no option of a chapter without NCCL
}

TEST(OptionsTest, AModeThatTheProgramWasBuiltWithoutIsASkip) {
  EXPECT_THROW(parse_with_nccl({"--nccl", "registered"}, false), Skip);
}

struct Refused {
  std::vector<const char*> words;
  const char* sentence;
};

TEST(OptionsTest, Refusals) {
  const Refused cases[] = {
      {{"--gpus", "0"}, "--gpus: 0 is not between 1 and 16"},
      {{"--gpus", "17"}, "--gpus: 17 is not between 1 and 16"},
      {{"--gpus", "-1"}, "--gpus: -1 is not between 1 and 16"},
      {{"--gpus", "two"}, "--gpus: 'two' is not a whole number"},
      {{"--gpus", "2x"}, "--gpus: '2x' is not a whole number"},
      {{"--gpus", "2.5"}, "--gpus: '2.5' is not a whole number"},
      {{"--gpus", " 2"}, "--gpus: ' 2' is not a whole number"},
      {{"--gpus", ""}, "--gpus: '' is not a whole number"},
      {{"--gpus", "99999999999999999999"}, "--gpus: 99999999999999999999 is not between 1 and 16"},
      {{"--gpus"}, "--gpus: a value is missing"},
      {{"--gpus", "1", "--gpus", "2"}, "--gpus: given more than once"},
      {{"--m", "0"}, "--m: 0 is not between 1 and 4611686018427387904"},
      {{"--m", "-4"}, "--m: -4 is not between 1 and 4611686018427387904"},
      {{"--n", "9223372036854775807"}, "--n: 9223372036854775807 is not between 1 and 4611686018427387904"},
      {{"--k", "1e3"}, "--k: '1e3' is not a whole number"},
      {{"--m", "--n", "5"}, "--m: '--n' is not a whole number"},
      {{"--m", "4000000000", "--k", "4000000000"},
       "--m --k: A, a matrix of 4000000000 x 4000000000 elements of 4 bytes is too large to address"},
      {{"--k", "4000000000", "--n", "4000000000"},
       "--k --n: B, a matrix of 4000000000 x 4000000000 elements of 4 bytes is too large to address"},
      {{"--m", "4000000000", "--n", "4000000000"},
       "--m --n: C, a matrix of 4000000000 x 4000000000 elements of 4 bytes is too large to address"},
      {{"--type", "f16"}, "--type: 'f16' is not a type of this chapter (known: int32, bf16)"},
      {{"--iterations", "0"}, "--iterations: 0 is not between 1 and 10000"},
      {{"--iterations", "10001"}, "--iterations: 10001 is not between 1 and 10000"},
      {{"--warmup", "-1"}, "--warmup: -1 is not between 0 and 1000"},
      {{"--warmup", "1001"}, "--warmup: 1001 is not between 0 and 1000"},
      {{"--seed", "-1"}, "--seed: '-1' is not a whole number"},
      {{"--seed", "18446744073709551616"},
       "--seed: 18446744073709551616 is not between 0 and 18446744073709551615"},
      {{"--only", "plain,none"}, "--only: 'none' is not a variant of this chapter (known: plain, fast, odd)"},
      {{"--only", "plain,"}, "--only: '' is not a variant of this chapter (known: plain, fast, odd)"},
      {{"--timeout", "86401"}, "--timeout: 86401 is not between 0 and 86400"},
      {{"--schedule", "x"}, "--schedule: 'x' is not a whole number"},
      {{"--frobnicate"}, "--frobnicate: unknown option"},
      {{"--gpu", "2"}, "--gpu: unknown option"},
      {{"-x"}, "-x: unknown option"},
      {{"8"}, "'8': not an option"},
      {{"--check=5"}, "--check: takes no value"},
      {{"--check", "--no-check"}, "--no-check: cannot be given together with --check"},
      {{"--list=no"}, "--list: takes no value"},
      {{"--json", ""}, "--json: the name of the file is empty"},
      {{"--json", "/nowhere/at/all.json"},
       "--json: '/nowhere/at/all.json' cannot be written: No such file or directory"},
      {{"--timeline", ""}, "--timeline: the name of the file is empty"},
      {{"--timeline", "/nowhere/at/all.json"},
       "--timeline: '/nowhere/at/all.json' cannot be written: No such file or directory"},
      {{"--timeline", "both.json", "--json", "both.json"},
       "--timeline: 'both.json' is also the file of --json"},
      {{"--json", "/"}, "--json: '/' cannot be written: it is not a regular file"},
      {{"--json", "/dev/null"}, "--json: '/dev/null' cannot be written: it is not a regular file"},
  };
  for (const Refused& refused : cases) {
    std::ostringstream out;
    try {
      parse(refused.words, out);
      ADD_FAILURE() << "accepted: " << refused.sentence;
    } catch (const UsageError& error) {
      EXPECT_STREQ(error.what(), refused.sentence);
    }
    EXPECT_EQ(out.str(), "");
  }
}

// Also rejected, but the message depends on CLI11's version.
TEST(OptionsTest, OddRefusals) {
  std::ostringstream out;
  EXPECT_THROW(parse({"--gpus="}, out), UsageError);
  EXPECT_THROW(parse({"--", "--m"}, out), UsageError);
  EXPECT_EQ(out.str(), "");
}

TEST(OptionsTest, FilesAreNotWrittenYet) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("overlap-options-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = (folder / "result.json").string();
  EXPECT_EQ(parsed({"--json", file.c_str()}).json, file);
  EXPECT_EQ(parsed({"--timeline", file.c_str()}).timeline, file);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(OptionsTest, List) {
  std::ostringstream out;
  EXPECT_FALSE(parse({"--list"}, out).has_value());
  EXPECT_EQ(out.str(), "plain\nfast\nodd\n");
}

TEST(OptionsTest, ListOfAChapterWithoutVariants) {
  ChapterInfo info = chapter();
  info.variants.clear();
  std::ostringstream out;
  EXPECT_FALSE(parse({"--list"}, out, info).has_value());
  EXPECT_EQ(out.str(), "");
  EXPECT_THROW(parse({"--only", "x"}, out, info), UsageError);
}

TEST(OptionsTest, Help) {
  std::ostringstream out;
  EXPECT_FALSE(parse({"--help"}, out).has_value());
  const std::string help = out.str();
  std::size_t last = 0;
  // All options in this order; the six common ones first.
  for (const char* option :
       {"--gpus", "--m ", "--n ", "--k ", "--iterations", "--json", "--warmup", "--type", "--seed", "--check",
        "--no-check", "--timeline", "--list", "--only", "--timeout", "--help"}) {
    const std::size_t place = help.find(std::string("\n  ") + option);
    ASSERT_NE(place, std::string::npos) << option << " is missing in\n" << help;
    EXPECT_GT(place, last) << option;
    last = place;
  }
  EXPECT_NE(help.find("Tests the options."), std::string::npos);
  EXPECT_EQ(help.find("--corrupt"), std::string::npos);
  EXPECT_EQ(help.find("--schedule") != std::string::npos, backend::modelled_time());
  EXPECT_EQ(help.find("--machine") != std::string::npos, backend::modelled_time());
}

TEST(ElementTypeTest, NamesAndSizes) {
  EXPECT_STREQ(name_of(ElementType::kInt32), "int32");
  EXPECT_STREQ(name_of(ElementType::kF16), "f16");
  EXPECT_STREQ(name_of(ElementType::kBf16), "bf16");
  EXPECT_STREQ(name_of(ElementType::kF32), "f32");
  EXPECT_EQ(size_of(ElementType::kInt32), 4U);
  EXPECT_EQ(size_of(ElementType::kF16), 2U);
  EXPECT_EQ(size_of(ElementType::kBf16), 2U);
  EXPECT_EQ(size_of(ElementType::kF32), 4U);
}

}  // namespace
}  // namespace overlap

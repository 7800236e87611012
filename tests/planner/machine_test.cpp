// Machine files: what they say, what they may leave out, and one sentence for what is wrong.
#include "machine.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "overlap/gpu/error.hpp"

namespace overlap::planner {
namespace {

/// The shipped machine without a plan, with this one, in a file of this process, as long as it is read.
class FileWith {
 public:
  explicit FileWith(const std::string& plan) {
    std::ifstream shipped(PLANNER_MACHINES_DIR "/h100-nvlink.json");
    std::string text((std::istreambuf_iterator<char>(shipped)), std::istreambuf_iterator<char>());
    text.insert(text.rfind('}'), ", \"plan\": " + plan);
    std::ofstream(name_) << text;
  }
  ~FileWith() { std::remove(name_.c_str()); }
  FileWith(const FileWith&) = delete;
  FileWith& operator=(const FileWith&) = delete;
  operator const std::string&() const { return name_; }

 private:
  const std::string name_ = testing::TempDir() + "planner_machine_" + std::to_string(getpid()) + ".json";
};

std::string refusal(const std::string& machine) {
  try {
    read_machine(machine, 0);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(PlannerMachine, ConstantsOfThePlanAndTheirSources) {
  const Machine machine = read_machine(FileWith(R"({"signal_us": {"is": 7.5, "from": "a row"}})"), 4);
  EXPECT_EQ(machine.signal_us, 7.5);
  EXPECT_EQ(machine.gpus_per_node, 4);
  EXPECT_EQ(machine.multiprocessors, 132);
  ASSERT_EQ(machine.sources.size(), 1u);
  EXPECT_EQ(machine.sources[0].name, "signal_us");
  EXPECT_EQ(machine.sources[0].from, "a row");
}

TEST(PlannerMachine, WithoutAPlanTheModelsConstants) {
  const Machine machine = read_machine("h100-nvlink", 0);
  EXPECT_TRUE(machine.sources.empty());
  EXPECT_EQ(machine.gpus_per_node, 8);
  EXPECT_DOUBLE_EQ(machine.signal_us, 6);
  EXPECT_DOUBLE_EQ(machine.link_rate, 390e3);
  EXPECT_DOUBLE_EQ(machine.product_rate, 810e6);
  EXPECT_EQ(machine.tile, (Tile{256, 128}));  // the file's is that of a column-major C
  EXPECT_EQ(machine.sustained, 1);
}

TEST(PlannerMachine, NodesOfAFile) {
  const Machine machine = read_machine("h200-nodes", 0);
  EXPECT_EQ(machine.gpus_per_node, 8);  // of 64
  EXPECT_DOUBLE_EQ(machine.network_rate, 47e3);
  EXPECT_DOUBLE_EQ(machine.network_us, 10);
}

TEST(PlannerMachine, EveryShippedConstantSaysItsSource) {
  const Machine machine = read_machine("h200-nvlink", 0);
  EXPECT_GT(machine.sources.size(), 20u);
  for (const Source& source : machine.sources) EXPECT_GT(source.from.size(), 10u) << source.name;
}

TEST(PlannerMachine, OneSentenceForWhatIsWrong) {
  EXPECT_NE(refusal("nowhere").find("neither a shipped machine nor a readable file"), std::string::npos);
  EXPECT_NE(refusal(FileWith("3")).find("must be an object"), std::string::npos);
  EXPECT_NE(refusal(FileWith(R"({"signal_us": 7})")).find("'signal_us' needs 'is'"), std::string::npos);
  EXPECT_NE(refusal(FileWith(R"({"signal_us": {"is": 7}})")).find("'signal_us' needs 'from'"),
            std::string::npos);
  EXPECT_NE(refusal(FileWith(R"({"signal_us": {"is": -1, "from": "x"}})")).find("must be between"),
            std::string::npos);
  EXPECT_NE(refusal(FileWith(R"({"link_gb_per_s": {"is": 0, "from": "x"}})")).find("must be between"),
            std::string::npos);
  EXPECT_NE(refusal(FileWith(R"({"signal": {"is": 7, "from": "x"}})")).find("does not know 'signal'"),
            std::string::npos);
}

TEST(PlannerMachine, WithoutABound) {
  const Machine machine = read_machine("h200-nvlink", 0);
  EXPECT_GT(without(machine, Bound::kLink).link_rate, 1e20);
  EXPECT_EQ(without(machine, Bound::kLatency).signal_us, 0);
  EXPECT_EQ(without(machine, Bound::kLatency).link_rate, machine.link_rate);
  EXPECT_EQ(without(machine, Bound::kHost).host_wait_us, 0);
  EXPECT_FALSE(without(machine, Bound::kWaves).whole_waves);
  EXPECT_GT(without(machine, Bound::kProduct).product_rate, 1e20);
  EXPECT_GT(without(machine, Bound::kMemory).memory_rate, 1e20);
}

}  // namespace
}  // namespace overlap::planner

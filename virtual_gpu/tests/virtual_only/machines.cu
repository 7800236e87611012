// Machine files: their effects, and the messages on malformed ones.
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "blas.hpp"
#include "overlap/gpu/graph.hpp"
#include "virtual_test.hpp"

namespace virtual_only {
namespace {

using nlohmann::json;

/// Starts from the machine file "small".
class MachinesTest : public VirtualTest {
 protected:
  void SetUp() override {
    VirtualTest::SetUp();
    std::ifstream(VGPU_MACHINES_DIR "/small.json") >> machine;
  }
  /// use_machine()'s message on a file; "" if it is accepted.
  static std::string complaint(const std::string& file) {
    try {
      vgpu::use_machine(file);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
  json machine;
};

TEST_F(MachinesTest, SmallIsTheDefault) {
  EXPECT_EQ(vgpu::machine_name(), "small");
  int count = 0;
  require(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, machine["gpus"]);
}

TEST_F(MachinesTest, ShippedMachinesAreNamedAsTheirFiles) {
  for (const char* name : {"small", "h100-nvlink", "h100-pcie", "h200-nodes"}) {
    ASSERT_EQ(complaint(name), "");
    EXPECT_EQ(vgpu::machine_name(), name);
    vgpu::reset();
  }
}

TEST_F(MachinesTest, FileSetsTheMachine) {
  machine["name"] = "mine";
  machine["gpus"] = 3;
  machine["gpu"]["multiprocessors"] = 5;
  machine["gpu"]["memory_mib"] = 1;
  machine["gpu"]["compute_capability"] = {8, 6};
  machine["peer"]["access"] = false;
  ASSERT_EQ(complaint(machine_file(machine.dump())), "");
  EXPECT_EQ(vgpu::machine_name(), "mine");
  int value = 0;
  require(cudaGetDeviceCount(&value));
  EXPECT_EQ(value, 3);
  cudaDeviceProp properties;
  require(cudaGetDeviceProperties(&properties, 2));
  EXPECT_EQ(properties.multiProcessorCount, 5);
  EXPECT_EQ(properties.major * 10 + properties.minor, 86);
  EXPECT_EQ(properties.totalGlobalMem, 1u << 20);
  void* memory = nullptr;
  expect_failure(cudaMalloc(&memory, (1 << 20) + 1), cudaErrorMemoryAllocation, {"1048576 bytes free"});
  expect_failure(cudaSetDevice(3), cudaErrorInvalidDevice, {"'mine'", "has 3"});
  int can_access = 1;
  require(cudaDeviceCanAccessPeer(&can_access, 0, 1));
  EXPECT_EQ(can_access, 0);
  expect_failure(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported,
                 {"'mine'", "no peer access"});
}

TEST_F(MachinesTest, NodesAreGroupsOfItsGpus) {
  vgpu::use_nodes(3, 4);
  int count = 0;
  require(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 12);
  EXPECT_THROW(vgpu::use_nodes(1, 1), std::logic_error) << "too late";
}

TEST_F(MachinesTest, NodesThatCannotBeAreRefused) {
  EXPECT_THROW(vgpu::use_nodes(0, 4), std::invalid_argument);
  EXPECT_THROW(vgpu::use_nodes(9, 8), std::invalid_argument) << "72 GPUs";
  machine.erase("nodes");
  ASSERT_EQ(complaint(machine_file(machine.dump())), "");
  EXPECT_THROW(vgpu::use_nodes(2, 4), std::runtime_error) << "nothing is said of what is between them";
  EXPECT_NO_THROW(vgpu::use_nodes(1, 4));
}

struct WrongMachine {
  const char* name;
  std::function<void(json&)> spoil;
  const char* said;
  friend void PrintTo(const WrongMachine& machine, std::ostream* out) { *out << machine.name; }
};
class WrongMachineTest : public MachinesTest, public testing::WithParamInterface<WrongMachine> {};

TEST_P(WrongMachineTest, IsRefusedInOneSentence) {
  GetParam().spoil(machine);
  const std::string file = machine_file(machine.dump());
  const std::string said = complaint(file);
  expect_parts(said, {"machine description: ", file.c_str(), GetParam().said});
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  EXPECT_EQ(vgpu::machine_name(), "small") << "the choice before stays";
}
INSTANTIATE_TEST_SUITE_P(
    Fields, WrongMachineTest,
    testing::Values(
        WrongMachine{"unknown", [](json& m) { m["gpuss"] = 3; }, "does not know 'gpuss'"},
        WrongMachine{"unknown_in_gpu", [](json& m) { m["gpu"]["speed"] = 3; }, "'gpu' does not know 'speed'"},
        WrongMachine{"unknown_in_host", [](json& m) { m["host"]["speed"] = 3; },
                     "'host' does not know 'speed'"},
        WrongMachine{"missing", [](json& m) { m.erase("gpus"); }, "lacks 'gpus'"},
        WrongMachine{"missing_in_peer", [](json& m) { m["peer"].erase("access"); }, "'peer' lacks 'access'"},
        WrongMachine{"missing_in_product", [](json& m) { m["gpu"]["product"].erase("tile_rows"); },
                     "'product' lacks 'tile_rows'"},
        WrongMachine{"no_channel", [](json& m) { m["nccl"]["channels"] = 0; }, "'channels' must be between"},
        WrongMachine{"no_rail", [](json& m) { m["nodes"].erase("rail_gb_per_s"); },
                     "'nodes' lacks 'rail_gb_per_s'"},
        WrongMachine{"empty_nodes", [](json& m) { m["nodes"]["gpus_per_node"] = 0; },
                     "'gpus_per_node' must be between"},
        WrongMachine{"missing_section", [](json& m) { m.erase("gpu"); }, "lacks 'gpu'"},
        WrongMachine{"section_is_no_object", [](json& m) { m["gpu"] = 3; }, "'gpu' must be an object"},
        WrongMachine{"no_object", [](json& m) { m = json::array(); }, "must be an object"},
        WrongMachine{"number_is_text", [](json& m) { m["gpus"] = "8"; }, "'gpus' must be a number"},
        WrongMachine{"text_is_number", [](json& m) { m["name"] = 8; }, "'name' must be text"},
        WrongMachine{"flag_is_number", [](json& m) { m["peer"]["access"] = 1; },
                     "'access' must be true or false"},
        WrongMachine{"not_whole", [](json& m) { m["gpus"] = 2.5; }, "'gpus' must be a whole number"},
        WrongMachine{"no_gpu", [](json& m) { m["gpus"] = 0; }, "'gpus' must be between 1 and 64"},
        WrongMachine{"65_gpus", [](json& m) { m["gpus"] = 65; }, "'gpus' must be between 1 and 64"},
        WrongMachine{"negative", [](json& m) { m["gpu"]["launch_us"] = -1; }, "'launch_us' must be between"},
        WrongMachine{"no_rate", [](json& m) { m["host"]["copy_gb_per_s"] = 0; },
                     "'copy_gb_per_s' must be between"},
        WrongMachine{"too_much_memory", [](json& m) { m["gpu"]["memory_mib"] = 1e30; },
                     "'memory_mib' must be between"},
        WrongMachine{"capability", [](json& m) { m["gpu"]["compute_capability"] = 9; }, "[major, minor]"}),
    [](const auto& info) { return info.param.name; });

/// Modelled microseconds of a graph with `kernels` empty kernels.
template <class T>
__global__ void nothing(T*) {}
double graph_us(int kernels) {
  const cudaStream_t stream = new_stream();
  const auto graph = overlap::Graph::capture(stream, [&] {
    for (int i = 0; i < kernels; ++i) nothing<int><<<1, 1, 0, stream>>>(nullptr);
  });
  return elapsed(stream, [&] { graph.launch(stream); }) * 1e3;
}

TEST_F(MachinesTest, CostsOfGraphsMayBeLeftOut) {
  ASSERT_FALSE(machine["gpu"].contains("graph_launch_us"));
  const double launch = machine["gpu"]["launch_us"];
  const double call = machine["host"]["call_us"];  // to enqueue the launch
  EXPECT_NEAR(graph_us(0), call + launch, 0.01);
  EXPECT_NEAR(graph_us(3) - graph_us(1), 2 * launch / 2, 0.1);
  vgpu::reset();
  machine["gpu"]["graph_launch_us"] = 50;
  machine["gpu"]["graph_node_us"] = 7;
  ASSERT_EQ(complaint(machine_file(machine.dump())), "");
  EXPECT_NEAR(graph_us(0), call + 50, 0.01);
  EXPECT_NEAR(graph_us(3) - graph_us(1), 2 * 7, 0.1);
}

// ---- Long operations take the time that the machine file implies ------------------------------------------
constexpr std::size_t kBytes = 16 << 20;

double copy_us(bool from_peer) {
  char* to = device_room<char>(kBytes);
  const cudaStream_t stream = new_stream();
  if (from_peer) require(cudaDeviceEnablePeerAccess(1, 0));
  const char* from =
      from_peer ? on_gpu(1, [] { return device_room<char>(kBytes); }) : pinned_room<char>(kBytes);
  return elapsed(stream, [&] { require(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDefault, stream)); }) *
         1e3;
}

/// One wave: a tile for each of the eight SMs.
double product_us(int k) {
  constexpr int kSide = 256;
  const cudaStream_t stream = new_stream();
  const cublasHandle_t blas = new_blas(stream);
  const auto side = static_cast<std::size_t>(kSide), depth = static_cast<std::size_t>(k);
  __half *const a = halves(side * depth), *const b = halves(side * depth), *const c = halves(side * side);
  return elapsed(stream, [&] { require(multiply(blas, kSide, kSide, k, a, b, c)); }) * 1e3;
}

double kernel_us(int rounds) {
  const cudaStream_t stream = new_stream();
  return elapsed(stream, [&] { work<float><<<1, 32, 0, stream>>>(nullptr, rounds); }) * 1e3;
}

TEST_F(MachinesTest, LongOperationsTakeTheTimeOfTheFigures) {
  for (const bool of_peer : {false, true}) {
    const double rate = machine[of_peer ? "peer" : "host"]["copy_gb_per_s"];
    const double expected = static_cast<double>(kBytes) / rate / 1e3;
    EXPECT_NEAR(copy_us(of_peer), expected, 0.02 * expected) << (of_peer ? "from a peer" : "from the host");
  }
  const double tflops = machine["gpu"]["product"]["f16_tflops"],
               expected = 2.0 * 256 * 256 * 4096 / tflops / 1e6;
  EXPECT_NEAR(product_us(4096), expected, 0.02 * expected);
}

// The compiler decides the number of basic blocks in a round of the loop: one or two.
TEST_F(MachinesTest, KernelsTakeTheTimeOfTheClock) {
  constexpr int kRounds = 20000;
  const double cycles = machine["gpu"]["cycles_per_basic_block"], ghz = machine["gpu"]["clock_ghz"];
  const double us = kernel_us(kRounds), of_a_block = kRounds * cycles / ghz / 1e3;
  EXPECT_GT(us, 0.95 * of_a_block);
  EXPECT_LT(us, 2.1 * of_a_block);
  vgpu::reset();
  machine["gpu"]["clock_ghz"] = 4 * ghz;
  ASSERT_EQ(complaint(machine_file(machine.dump())), "");
  EXPECT_NEAR(kernel_us(kRounds), us / 4, 0.05 * us);
}

TEST_F(MachinesTest, FileThatIsNoJson) {
  const std::string file = machine_file("{\"gpus\": 8,");
  expect_parts(complaint(file), {"machine description: ", file.c_str(), "is not valid JSON"});
  expect_parts(complaint(machine_file("")), {"is not valid JSON"});
}

TEST_F(MachinesTest, FileThatIsNotThere) {
  expect_parts(complaint("no_such_machine"), {"machine description: ", "'no_such_machine'", "readable file"});
  expect_parts(complaint(""), {"machine description: "});
  expect_parts(complaint(testing::TempDir()), {"machine description: "});
}

}  // namespace
}  // namespace virtual_only

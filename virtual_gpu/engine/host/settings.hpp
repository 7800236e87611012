// What a program chooses before its first CUDA call (vgpu/control.hpp), and what it may ask for at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/model/machine.hpp"

namespace vgpu {

class Settings {
 public:
  void choose_seed(std::uint64_t seed) { seed_ = seed; }
  void choose_machine(const std::string& name_or_file) { machine_ = name_or_file; }
  void choose_gpus(int count) { gpus_ = count; }
  void choose_nodes(int nodes, int gpus_per_node) {
    gpus_ = nodes * gpus_per_node;
    gpus_per_node_ = gpus_per_node;
  }
  void print_errors() { prints_errors_ = true; }
  void count_host_code() { counts_host_code_ = true; }
  void record_timeline() { records_timeline_ = true; }

  /// Of the random schedule; none: the order of the modelled clock. Each run that separates other blocks has
  /// another one, unless the program chooses.
  std::optional<std::uint64_t> seed() const {
    return seed_ || separating_bit() == 0 ? seed_ : std::optional<std::uint64_t>(separating_bit());
  }
  /// Blocks whose numbers differ in this bit share no context (stream_contexts.hpp): VGPU_SEPARATING_BIT of
  /// the race build; else 0.
  unsigned int separating_bit() const { return separating_bit_.value_or(0); }
  /// Also the contexts of asynchronous work: only if the environment names the bit, because they are many.
  bool separates_proxies() const { return separating_bit_.has_value(); }
  /// The chosen machine with the chosen number of GPUs. Throws as load_machine() does, and if several nodes
  /// are asked for and the file describes no link between them.
  Machine load() const;
  bool prints_errors() const { return prints_errors_; }
  bool counts_host_code() const { return counts_host_code_; }
  bool records_timeline() const { return records_timeline_; }

 private:
  static std::optional<unsigned int> bit_from_environment();

  std::optional<std::uint64_t> seed_;
  std::optional<unsigned int> separating_bit_ = bit_from_environment();
  std::string machine_ = "small";
  int gpus_ = 0, gpus_per_node_ = 0;  // 0: as many as the machine has
  bool records_timeline_ = false;
  bool prints_errors_ = false, counts_host_code_ = false;
};

/// The process's own.
Settings& settings();

}  // namespace vgpu

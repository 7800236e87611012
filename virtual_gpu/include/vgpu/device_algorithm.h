// Device-wide algorithms of CUB as operations of a stream. The algorithms are templates and so compiled with
// the program; this is their interface to the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "types.h"

namespace vgpu {

/// True if the running algorithm's GPU can access all of that memory; if not, a fault, and the algorithm must
/// return. `name`: the argument's, such as "d_out".
bool algorithm_may_access(const char* name, const void* memory, std::size_t bytes);

#if VGPU_CHECK
inline constexpr bool kCarriesUnwritten = true;
#else
inline constexpr bool kCarriesUnwritten = false;
#endif
/// Check build: a result that is made of items which nothing has written counts as not written, too. Not one
/// whose place alone depends on them.
///@{
bool algorithm_is_written(const void* item);
void algorithm_forget_written(void* result, std::size_t bytes);
inline bool read_unwritten = false;
/// In other builds nothing touches it: it would be a race.
inline void set_read_unwritten([[maybe_unused]] bool value) {
  if constexpr (kCarriesUnwritten) read_unwritten = value;
}
///@}

/// One call of an algorithm. It runs as its stream's context, so that the race detector sees its accesses.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  /// A copy that has not run yet.
  virtual std::unique_ptr<Algorithm> clone() const = 0;
  /// Reads items [first, last) of all inputs. Returns false after a fault; so does finish().
  virtual bool read(std::int64_t first, std::int64_t last) = 0;
  /// Computes and writes the outputs; if `spoiled`, all ones instead of results.
  virtual bool finish(bool spoiled) = 0;
  /// True if an input meets that memory or an output begins in it.
  virtual bool touches(const void* memory, std::size_t bytes) const = 0;
};

/// A call's properties for the runtime.
struct AlgorithmCall {
  const char* name;  // "cub::DeviceScan::ExclusiveSum"
  std::int64_t items;
  double bytes;                 // that pass between the multiprocessors and the GPU's memory
  int launches;                 // of kernels
  std::size_t temporary_bytes;  // that it needs
  const char* wrong = nullptr;  // why it is refused, if it is
};

/// CUB's two phases: without temporary storage returns its size, else enqueues the algorithm.
cudaError_t call_algorithm(const AlgorithmCall& call, void* temporary, std::size_t& temporary_bytes,
                           cudaStream_t stream, std::unique_ptr<Algorithm> algorithm);

/// Bytes of temporary storage: a multiple of 256, as the parts of CUB's.
constexpr std::size_t rounded_to_256(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
/// A few words for each tile of 4096 items, by which the tiles of one pass exchange their results.
constexpr std::size_t tile_states(std::int64_t items) {
  return 256 + rounded_to_256(items <= 0 ? 0 : static_cast<std::size_t>(items + 4095) / 4096 * 16);
}

/// Items that an algorithm reads: any iterator with operator[].
template <class Iterator>
class Input {
 public:
  using Value = std::remove_cv_t<typename std::iterator_traits<Iterator>::value_type>;

  Input(const char* name, Iterator items) : name_(name), items_(items) {}

  bool read(std::int64_t first, std::int64_t last) {
    if constexpr (std::is_pointer_v<Iterator>) {
      const auto bytes = static_cast<std::size_t>(last - first) * sizeof(Value);
      if (!algorithm_may_access(name_, items_ + first, bytes)) return false;
    }
    if (first == 0) read_.clear();
    for (std::int64_t i = first; i < last; ++i) read_.push_back({items_[i], is_written(i)});
    return true;
  }
  bool touches(const std::byte* begin, std::size_t bytes, std::int64_t count) const {
    if constexpr (std::is_pointer_v<Iterator>) {
      const auto* first = reinterpret_cast<const std::byte*>(items_);
      return first < begin + bytes && begin < first + count * static_cast<std::int64_t>(sizeof(Value));
    } else {
      return false;
    }
  }

  /// The items read.
  const Value& operator[](std::int64_t i) const {
    const Item& item = read_[static_cast<std::size_t>(i)];
    if (!item.written) set_read_unwritten(true);
    return item.value;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(read_.size()); }

 private:
  struct Item {  // no vector of bool, which is something else
    Value value;
    bool written;
  };
  bool is_written([[maybe_unused]] std::int64_t i) const {
    if constexpr (kCarriesUnwritten && std::is_pointer_v<Iterator>) return algorithm_is_written(items_ + i);
    return true;
  }
  const char* name_;
  Iterator items_;
  std::vector<Item> read_;
};

/// Memory that an algorithm writes. Its size is known only after the computation.
template <class T>
struct Output {
  static_assert(!std::is_const_v<T>, "an output cannot be constant");
  const char* name;
  T* items;

  bool touches(const std::byte* begin, std::size_t bytes) const {
    const auto* first = reinterpret_cast<const std::byte*>(items);
    return begin <= first && first < begin + bytes;
  }
};
template <class T>
Output(const char*, T*) -> Output<T>;

/// Writes an algorithm's results.
class Writer {
 public:
  explicit Writer(bool spoiled) : spoiled_(spoiled) {}

  /// The first `count` items become value(0), value(1), ..., each out of what this reads; if `of_all`, also
  /// out of all that was read before.
  template <class T, class Function>
  void write(const Output<T>& output, std::int64_t count, Function value, bool of_all = false) {
    if (!alive_) return;
    alive_ = algorithm_may_access(output.name, output.items, static_cast<std::size_t>(count) * sizeof(T));
    if (!alive_) return;
    const bool before = kCarriesUnwritten && read_unwritten;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!of_all) set_read_unwritten(false);
      output.items[i] = spoiled_ ? ones<T>() : static_cast<T>(value(i));
      if (kCarriesUnwritten && read_unwritten) algorithm_forget_written(&output.items[i], sizeof(T));
    }
    set_read_unwritten(before);
  }
  template <class T, class Value>
  void write(const Output<T>& output, const std::vector<Value>& values) {
    write(output, static_cast<std::int64_t>(values.size()),
          [&](std::int64_t i) -> const Value& { return values[static_cast<std::size_t>(i)]; });
  }
  template <class T, class Value>
  void write_one(const Output<T>& output, const Value& value) {
    write(
        output, 1, [&](std::int64_t) -> const Value& { return value; }, true);
  }
  /// The value of what CUB leaves undefined.
  template <class T>
  void overwrite(const Output<T>& output, std::int64_t count) {
    write(output, count, [](std::int64_t) { return ones<T>(); });
  }
  bool alive() const { return alive_; }

 private:
  /// All bits set: a NaN, -1.
  template <class T>
  static T ones() {
    static_assert(std::is_trivially_copyable_v<T>);
    if constexpr (std::is_same_v<T, bool>) {
      return true;
    } else {
      T value;
      __builtin_memset(static_cast<void*>(&value), 0xff, sizeof(T));
      return value;
    }
  }
  bool spoiled_;
  bool alive_ = true;
};

/// An algorithm made of a function compute(writer, inputs...).
template <class Compute, class Inputs, class Outputs>
class AlgorithmOf final : public Algorithm {
 public:
  AlgorithmOf(std::int64_t items, Inputs inputs, Outputs outputs, Compute compute)
      : items_(items), inputs_(std::move(inputs)), outputs_(outputs), compute_(std::move(compute)) {}

  std::unique_ptr<Algorithm> clone() const override { return std::make_unique<AlgorithmOf>(*this); }
  bool read(std::int64_t first, std::int64_t last) override {
    return std::apply([&](auto&... input) { return (input.read(first, last) && ...); }, inputs_);
  }
  bool finish(bool spoiled) override {
    Writer writer(spoiled);
    set_read_unwritten(false);
    std::apply([&](const auto&... input) { compute_(writer, input...); }, inputs_);
    return writer.alive();
  }
  bool touches(const void* memory, std::size_t bytes) const override {
    const auto* begin = static_cast<const std::byte*>(memory);
    const auto read = [&](const auto&... input) { return (input.touches(begin, bytes, items_) || ...); };
    const auto written = [&](const auto&... output) { return (output.touches(begin, bytes) || ...); };
    return std::apply(read, inputs_) || std::apply(written, outputs_);
  }

 private:
  std::int64_t items_;
  Inputs inputs_;
  Outputs outputs_;  // for touches(); `compute` has its own
  Compute compute_;
};

/// call_algorithm() with what `compute(writer, inputs...)` does. `inputs` is a tuple of Input, each of
/// `items` items, `outputs` one of Output.
template <class Inputs, class Outputs, class Compute>
cudaError_t call_algorithm(const AlgorithmCall& call, void* temporary, std::size_t& temporary_bytes,
                           cudaStream_t stream, Inputs inputs, Outputs outputs, Compute compute) {
  using Made = AlgorithmOf<Compute, Inputs, Outputs>;
  return call_algorithm(call, temporary, temporary_bytes, stream,
                        std::make_unique<Made>(call.items, std::move(inputs), outputs, std::move(compute)));
}

}  // namespace vgpu

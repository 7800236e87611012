#include "log_check.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace overlap::teaching {
namespace {

constexpr std::uint64_t kMostInt = std::numeric_limits<int>::max();

/// a * b; throws LogError if it is more than any memory has.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result;
  if (__builtin_mul_overflow(a, b, &result))
    throw LogError("it is about more bytes than there are addresses");
  return result;
}

std::uint64_t at_most(std::uint64_t number, std::uint64_t limit, const char* what) {
  if (number > limit)
    throw LogError(std::string(what) + " is " + std::to_string(number) + ", more than " +
                   std::to_string(limit));
  return number;
}

/// Bytes of an element of CUDA's and of NCCL's types, as far as the chapters use them: f16, bf16, f32.
std::uint64_t gemm_type(std::uint64_t type) {
  if (type == 0) return 4;                // CUDA_R_32F
  if (type == 2 || type == 14) return 2;  // CUDA_R_16F, CUDA_R_16BF
  throw LogError("a product of matrices of type " + std::to_string(type));
}
std::uint64_t nccl_type(std::uint64_t type) {
  if (type == 7) return 4;               // ncclFloat32
  if (type == 6 || type == 9) return 2;  // ncclFloat16, ncclBfloat16
  throw LogError("NCCL is given type " + std::to_string(type));
}

/// Follows the calls of all ranks, one rank after the other.
class Checker {
 public:
  Checker(CallLog& log, const LogCase& known) : log_(log), known_(known) {}

  void check() {
    log_.memory.resize(log_.ranks.size());
    log_.stopped.assign(log_.ranks.size(), false);
    for (rank_ = 0; rank_ < known_.ranks; ++rank_) each([&](const LogLine& line) { count(line); });
    for (rank_ = 0; rank_ < known_.ranks; ++rank_) {
      made_ = {}, gone_ = {};
      next_call_ = 0, inside_ = false;
      each([&](const LogLine& line) { check(line); });
      const bool whole = next_call_ == known_.calls && !inside_;
      if (!whole && !log_.stopped[index()])
        throw LogError("rank " + std::to_string(rank_) + " of the log ends before all calls have been made");
    }
  }

 private:
  std::size_t index() const { return static_cast<std::size_t>(rank_); }

  template <typename Action>
  void each(const Action& action) {
    for (const LogLine& line : log_.ranks[index()]) {
      try {
        action(line);
      } catch (const LogError& error) {
        const std::string place = line.place.empty() ? "" : " (" + line.place + ")";
        const std::string word = line.call == LogCall::kUnknown
                                     ? std::string()
                                     : ", '" + std::string(form_of(line.call).word) + "'";
        throw LogError("rank " + std::to_string(rank_) + word + place + ": " + error.what());
      }
    }
  }

  /// First pass: which memory there will be, and whether it is not too much of all.
  void count(const LogLine& line) {
    if (log_.stopped[index()]) throw LogError("it comes behind the call that failed");
    if (line.call == LogCall::kStopped) log_.stopped[index()] = true;
    if (line.call != LogCall::kMalloc && line.call != LogCall::kMallocHost) return;
    const std::uint64_t bytes = line.values[0].number;
    if (bytes == 0 || bytes > kMostMemory - total_memory_)
      throw LogError("the log's memory is not 1 to " + std::to_string(kMostMemory) + " bytes in all");
    total_memory_ += bytes;
    log_.memory[index()].push_back(bytes);
    if (log_.memory[index()].size() > kMostObjects) throw LogError("too many pieces of memory");
  }

  /// The object is the rank's own, there is one, and it has not been destroyed.
  void check_object(const LogValue& value) {
    if (value.kind == 'd') return;
    if (value.rank != rank_) throw LogError("it names an object of rank " + std::to_string(value.rank));
    if (value.index < 0 || static_cast<std::size_t>(value.index) >= made_[value.kind] ||
        gone_.contains({value.kind, value.index}))
      throw LogError("it names an object that is not there");
  }
  void destroy(const LogValue& value) { gone_[{value.kind, value.index}] = true; }
  void make(char kind) {
    if (++made_[kind] > kMostObjects) throw LogError("too many objects of that kind");
  }

  /// `bytes` from there on are memory. Null is, of 0 bytes.
  void check_memory(const LogValue& address, std::uint64_t bytes) {
    if (address.kind == '0' && bytes == 0) return;
    if (address.kind == '0') throw LogError("it uses null as " + std::to_string(bytes) + " bytes of memory");
    const std::uint64_t room = log_.room(address, known_);
    if (bytes > room)
      throw LogError("it uses " + std::to_string(bytes) + " bytes where there are " + std::to_string(room));
    if (address.kind != 'm' || address.rank != rank_) return;
    if (static_cast<std::size_t>(address.index) >= made_['m'])
      throw LogError("it uses memory before it is made");
    if (gone_.contains({'m', address.index})) throw LogError("it uses memory that has been freed");
  }

  void check(const LogLine& line) {
    for (const LogValue& value : line.values) {
      if (std::string_view("sehn").find(value.kind) != std::string_view::npos) check_object(value);
    }
    const auto& values = line.values;
    const auto n = [&](std::size_t i) { return values[i].number; };
    switch (line.call) {
      case LogCall::kDevice:
        at_most(n(0), static_cast<std::uint64_t>(known_.ranks) - 1, "the GPU");
        break;
      case LogCall::kMalloc:
      case LogCall::kMallocHost:
        make('m');
        break;
      case LogCall::kFree:
        if (values[0].kind != 'm' || values[0].rank != rank_ || n(0) != 0)
          throw LogError("it frees what this rank has not made");
        check_memory(values[0], 1);
        destroy(values[0]);
        break;
      case LogCall::kStream:
        make('s');
        break;
      case LogCall::kEvent:
        make('e');
        break;
      case LogCall::kBlas:
        make('h');
        break;
      case LogCall::kComm:
        make('n');
        if (made_['n'] > 8) throw LogError("more than 8 communicators");
        if (n(0) != static_cast<std::uint64_t>(known_.ranks)) throw LogError("a communicator of other ranks");
        break;
      case LogCall::kStreamDestroy:
      case LogCall::kEventDestroy:
      case LogCall::kBlasDestroy:
      case LogCall::kCommDestroy:
        if (values[0].kind == 'd') throw LogError("it destroys the default stream");
        destroy(values[0]);
        break;
      case LogCall::kCopySync:
      case LogCall::kCopy:
      case LogCall::kCopyPeer:
        check_memory(values[0], n(2));
        check_memory(values[1], n(2));
        break;
      case LogCall::kFillSync:
      case LogCall::kFill:
        at_most(n(1), 255, "the byte");
        check_memory(values[0], n(2));
        break;
      case LogCall::kRaise:
      case LogCall::kAwait:
        check_memory(values[0], 4);
        if (values[0].number % 4 != 0) throw LogError("the word is not at a multiple of 4");
        at_most(n(1), std::numeric_limits<std::uint32_t>::max(), "the value");
        if (line.call == LogCall::kAwait) at_most(n(2), 3, "the kind of comparison");
        break;
      case LogCall::kGemm:
        check_gemm(values);
        break;
      case LogCall::kAllGather:
        check_collective(values, 1, static_cast<std::uint64_t>(known_.ranks));
        break;
      case LogCall::kReduceScatter:
        check_collective(values, static_cast<std::uint64_t>(known_.ranks), 1);
        break;
      case LogCall::kAllReduce:
      case LogCall::kBroadcast:
      case LogCall::kReduce:
        check_collective(values, 1, 1);
        break;
      case LogCall::kSend:
      case LogCall::kReceive:
        check_memory(values[0], product(at_most(n(1), kMostMemory, "the count"), nccl_type(n(2))));
        at_most(n(3), static_cast<std::uint64_t>(known_.ranks) - 1, "the peer");
        break;
      case LogCall::kLaunch:
        check_launch(values);
        break;
      case LogCall::kCall:
        if (inside_ || n(0) != static_cast<std::uint64_t>(next_call_) || next_call_ == known_.calls)
          throw LogError("it is not the turn of call " + std::to_string(n(0)));
        inside_ = true;
        break;
      case LogCall::kEnd:
        if (!inside_ || n(0) != static_cast<std::uint64_t>(next_call_))
          throw LogError("call " + std::to_string(n(0)) + " has not begun");
        inside_ = false;
        ++next_call_;
        break;
      case LogCall::kUnknown:
        throw LogError(shown(line.word) + " is not among the calls that a log can repeat");
      default:
        break;
    }
  }

  void check_gemm(const std::vector<LogValue>& values) {
    const auto n = [&](std::size_t i) { return values[i].number; };
    std::array<std::uint64_t, 3> sizes{};  // m, n, k
    for (std::size_t i = 0; i < sizes.size(); ++i)
      sizes[i] = at_most(n(3 + i), kMostInt, "a size of a product");
    multiply_adds_ +=
        static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) * static_cast<double>(sizes[2]);
    if (multiply_adds_ > kMostMultiplyAdds) throw LogError("the log's products are too large in all");
    at_most(n(1), 1, "transa");
    at_most(n(2), 1, "transb");
    for (const std::size_t bits : {std::size_t{6}, std::size_t{13}})
      at_most(n(bits), std::numeric_limits<std::uint32_t>::max(), "a factor's bits");
    const auto matrix = [&](std::size_t first, std::uint64_t rows, std::uint64_t columns) {
      const std::uint64_t ld = at_most(n(first + 2), kMostInt, "a leading dimension");
      if (ld < std::max<std::uint64_t>(rows, 1)) throw LogError("a leading dimension is less than the rows");
      const bool empty = rows == 0 || columns == 0;
      const std::uint64_t elements = empty ? 0 : product(ld, columns - 1) + rows;
      check_memory(values[first], product(elements, gemm_type(n(first + 1))));
    };
    const auto [m, columns, k] = sizes;
    matrix(7, n(1) ? k : m, n(1) ? m : k);
    matrix(10, n(2) ? columns : k, n(2) ? k : columns);
    matrix(14, m, columns);
    at_most(n(17), kMostInt, "the compute type");
    // CUBLAS_GEMM_DEFAULT is -1.
    if (n(18) != ~std::uint64_t{0} && n(18) > kMostInt) throw LogError("an unknown algorithm of a product");
  }

  /// Send and receive buffer of so many times the count.
  void check_collective(const std::vector<LogValue>& values, std::uint64_t sent, std::uint64_t received) {
    const std::uint64_t bytes =
        product(at_most(values[2].number, kMostMemory, "the count"), nccl_type(values[3].number));
    check_memory(values[0], product(bytes, sent));
    check_memory(values[1], product(bytes, received));
    for (std::size_t i = 4; values[i].kind == 'i'; ++i)
      at_most(values[i].number, 15, "NCCL's operation or root");
  }

  void check_launch(const std::vector<LogValue>& values) {
    std::uint64_t threads = 1;
    for (std::size_t i = 0; i < 6; ++i) {
      at_most(values[i].number, 1 << 20, "a size of a grid or block");
      threads = product(threads, values[i].number);
    }
    threads_ += at_most(threads, kMostThreads, "the number of a kernel's threads");
    at_most(threads_, kMostThreads, "the number of all kernels' threads");
    at_most(values[6].number, 1 << 20, "the shared memory");
    for (std::size_t i = 8; i < values.size(); ++i) {
      if (values[i].kind != 'i') check_memory(values[i], 0);
    }
  }

  CallLog& log_;
  const LogCase& known_;
  int rank_ = 0;
  std::uint64_t total_memory_ = 0, threads_ = 0;
  double multiply_adds_ = 0;
  std::map<char, std::size_t> made_;           // of the rank, by kind
  std::map<std::pair<char, int>, bool> gone_;  // destroyed or freed
  int next_call_ = 0;
  bool inside_ = false;
};

}  // namespace

std::uint64_t CallLog::room(const LogValue& address, const LogCase& known) const {
  const auto rank = static_cast<std::size_t>(address.rank), index = static_cast<std::size_t>(address.index);
  if (address.rank < 0 || address.index < 0 || rank >= memory.size())
    throw LogError("there is no rank " + std::to_string(address.rank));
  std::uint64_t bytes = 0;
  if (address.kind == 'm') {
    if (index >= memory[rank].size()) throw LogError("it names memory that nobody makes");
    bytes = memory[rank][index];
  } else {
    if (address.index >= known.calls) throw LogError("there is no call " + std::to_string(address.index));
    const OperandBytes& operands = known.operands[rank];
    bytes = address.kind == 'a' ? operands.a : address.kind == 'b' ? operands.b : operands.c;
  }
  if (address.number > bytes)
    throw LogError("it names byte " + std::to_string(address.number) + " of " + std::to_string(bytes));
  return bytes - address.number;
}

void check_log(CallLog& log, const LogCase& known) { Checker(log, known).check(); }

}  // namespace overlap::teaching

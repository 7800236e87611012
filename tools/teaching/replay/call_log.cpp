#include "call_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "log_check.hpp"

namespace overlap::teaching {
namespace {

constexpr std::array kForms = {
    LogForm{LogCall::kDevice, "device", "i"},
    LogForm{LogCall::kMalloc, "malloc", "i"},
    LogForm{LogCall::kMallocHost, "malloc_host", "i"},
    LogForm{LogCall::kFree, "free", "p"},
    LogForm{LogCall::kStream, "stream", ""},
    LogForm{LogCall::kStreamDestroy, "stream_destroy", "s"},
    LogForm{LogCall::kEvent, "event", ""},
    LogForm{LogCall::kEventDestroy, "event_destroy", "e"},
    LogForm{LogCall::kRecord, "record", "es"},
    LogForm{LogCall::kWait, "wait", "se"},
    LogForm{LogCall::kSyncStream, "sync_stream", "s"},
    LogForm{LogCall::kSyncEvent, "sync_event", "e"},
    LogForm{LogCall::kSyncDevice, "sync_device", ""},
    LogForm{LogCall::kBarrier, "barrier", ""},
    LogForm{LogCall::kCopySync, "copy_sync", "ppi"},   // to, from, bytes
    LogForm{LogCall::kCopy, "copy", "ppis"},           // to, from, bytes, stream
    LogForm{LogCall::kCopyPeer, "copy_peer", "ppis"},  // likewise
    LogForm{LogCall::kFillSync, "fill_sync", "pii"},   // to, value, bytes
    LogForm{LogCall::kFill, "fill", "piis"},
    LogForm{LogCall::kRaise, "raise", "pis"},   // word, value, stream
    LogForm{LogCall::kAwait, "await", "piis"},  // word, value, flags, stream
    LogForm{LogCall::kBlas, "blas", ""},
    LogForm{LogCall::kBlasDestroy, "blas_destroy", "h"},
    LogForm{LogCall::kBlasStream, "blas_stream", "hs"},
    LogForm{LogCall::kGemm, "gemm", "hiiiiifpiipiifpiiii"},  // as cublasGemmEx
    LogForm{LogCall::kComm, "comm", "i"},                    // of so many ranks
    LogForm{LogCall::kCommDestroy, "comm_destroy", "n"},
    LogForm{LogCall::kGroupStart, "group_start", ""},
    LogForm{LogCall::kGroupEnd, "group_end", ""},
    LogForm{LogCall::kAllGather, "all_gather", "ppiins"},           // as NCCL's, likewise below
    LogForm{LogCall::kReduceScatter, "reduce_scatter", "ppiiins"},  //
    LogForm{LogCall::kAllReduce, "all_reduce", "ppiiins"},
    LogForm{LogCall::kBroadcast, "broadcast", "ppiiins"},
    LogForm{LogCall::kReduce, "reduce", "ppiiiins"},
    LogForm{LogCall::kSend, "send", "piiins"},
    LogForm{LogCall::kReceive, "recv", "piiins"},
    LogForm{LogCall::kLaunch, "launch", "iiiiiiis*"},  // grid, block, shared bytes, stream, its own
    LogForm{LogCall::kCall, "call", "is"},
    LogForm{LogCall::kEnd, "end", "i"},
    LogForm{LogCall::kStopped, "stopped", "w"},
    LogForm{LogCall::kUnknown, "unknown", "w"},
};

constexpr std::string_view kFirstLine = "overlap call log 1";
constexpr std::string_view kPlaceMark = " @ ";

/// The words of a line, one after the other.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  bool empty() const { return rest_.find_first_not_of(' ') == std::string_view::npos; }
  /// The next word; empty if there is none.
  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::string_view rest() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    return std::exchange(rest_, {});
  }

 private:
  std::string_view rest_;
};

/// The number that the word is. Throws LogError.
template <typename Number>
Number number(std::string_view word, const char* what) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc{} || end != word.data() + word.size())
    throw LogError("'" + shown(word) + "' is no " + what);
  return value;
}

/// "m1.0+512" or "s0.3": an object, or memory. Throws LogError.
LogValue object(std::string_view word) {
  LogValue value{.kind = word.front()};
  word.remove_prefix(1);
  if (const std::size_t plus = word.find('+'); plus != std::string_view::npos) {
    value.number = number<std::uint64_t>(word.substr(plus + 1), "offset in bytes");
    word = word.substr(0, plus);
  }
  const std::size_t dot = word.find('.');
  if (dot == std::string_view::npos) throw LogError("'" + shown(word) + "' is no rank.number");
  value.rank = number<int>(word.substr(0, dot), "rank");
  value.index = number<int>(word.substr(dot + 1), "number of an object");
  return value;
}

LogValue value_of(std::string_view word, char kind) {
  if (word.empty()) throw LogError("it is cut off");
  if (kind == 'i' || kind == 'f') return {.number = number<std::uint64_t>(word, "number")};
  if (kind == 's' && word == "default") return {.kind = 'd'};
  if (kind == 'p' && word == "null") return {.kind = '0'};
  const std::string_view kinds = kind == 'p' ? std::string_view("mabc") : std::string_view(&kind, 1);
  if (kinds.find(word.front()) == std::string_view::npos)
    throw LogError("'" + shown(word) + "' is none of what it takes there");
  const LogValue value = object(word);
  if (kind != 'p' && value.number != 0) throw LogError("'" + shown(word) + "' has an offset");
  return value;
}

/// A line without its rank and its place.
LogLine parse(std::string_view text) {
  Words words(text);
  const std::string_view name = words.next();
  const LogForm* form = form_of(name);
  if (form == nullptr) throw LogError("'" + shown(name) + "' is no call that a log may have");
  LogLine line{.call = form->call, .values = {}, .word = {}, .place = {}};
  for (const char kind : form->arguments) {
    if (kind == 'w') {
      line.word = words.rest();
    } else if (kind == '*') {  // numbers and memory; last the kernel's name in quotes
      for (std::string_view word = words.next(); !word.starts_with('"'); word = words.next()) {
        const bool is_number = !word.empty() && word.front() >= '0' && word.front() <= '9';
        line.values.push_back(value_of(word, is_number ? 'i' : 'p'));
      }
      const std::size_t quote = text.find('"');
      line.word = text.substr(quote + 1);
      if (!line.word.ends_with('"')) throw LogError("it is cut off");
      line.word.pop_back();
      words.rest();
    } else {
      line.values.push_back(value_of(words.next(), kind));
    }
  }
  if (!words.empty()) throw LogError("there is more behind its arguments");
  return line;
}

/// Takes the next line off the text.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) throw LogError("the log is cut off: its last line has no end");
  const std::string_view line = text.substr(0, end);
  if (line.size() > kMostLineBytes)
    throw LogError("a line has " + std::to_string(line.size()) + " bytes, more than " +
                   std::to_string(kMostLineBytes));
  text.remove_prefix(end + 1);
  return line;
}

void read_head(std::string_view& text, const LogCase& known) {
  if (next_line(text) != kFirstLine)
    throw LogError("the first line is not '" + std::string(kFirstLine) + "'");
  const std::string wanted = "ranks " + std::to_string(known.ranks) + " calls " + std::to_string(known.calls);
  if (const std::string_view head = next_line(text); head != wanted)
    throw LogError("the log is of another case: '" + shown(head) + "' is not '" + wanted + "'");
}

}  // namespace

std::string shown(std::string_view text) {
  std::string plain(text.substr(0, 200));
  std::ranges::replace_if(
      plain, [](char c) { return c < ' ' || c > '~'; }, '?');
  return plain;
}

const LogForm* form_of(std::string_view word) {
  const auto* found = std::ranges::find(kForms, word, &LogForm::word);
  return found == kForms.end() ? nullptr : found;
}

const LogForm& form_of(LogCall call) { return *std::ranges::find(kForms, call, &LogForm::call); }

CallLog read_call_log(std::string_view text, const LogCase& known) {
  if (text.size() > kMostLogBytes)
    throw LogError("the log has more than " + std::to_string(kMostLogBytes) + " bytes");
  read_head(text, known);
  CallLog log;
  log.ranks.resize(static_cast<std::size_t>(known.ranks));
  std::size_t number_of_line = 2;
  while (!text.empty()) {
    if (++number_of_line > kMostLogLines)
      throw LogError("the log has more than " + std::to_string(kMostLogLines) + " lines");
    try {
      std::string_view line = next_line(text);
      std::string_view place;
      if (const std::size_t mark = line.find(kPlaceMark); mark != std::string_view::npos) {
        place = line.substr(mark + kPlaceMark.size());
        line = line.substr(0, mark);
      }
      const std::string_view rank_word = line.substr(0, line.find(' '));
      const int rank = number<int>(rank_word, "rank");
      if (rank < 0 || rank >= known.ranks) throw LogError("there is no rank " + std::to_string(rank));
      LogLine parsed = parse(line.substr(rank_word.size()));
      parsed.place = shown(place);
      log.ranks[static_cast<std::size_t>(rank)].push_back(std::move(parsed));
    } catch (const LogError& error) {
      throw LogError("line " + std::to_string(number_of_line) + " of the log: " + error.what());
    }
  }
  check_log(log, known);
  return log;
}

}  // namespace overlap::teaching

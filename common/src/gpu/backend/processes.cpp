// Processes meet at process 0, which passes on what the others give. Each connection has a thread that
// receives: so the death of a process is known at once, whatever the ranks are waiting for.
#include "overlap/gpu/processes.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "gpu/backend/tcp.hpp"
#include "gpu/team.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

using namespace std::chrono_literals;
using detail::Connection, detail::Message;

constexpr auto kMeetingPatience = 60s;  // for all to come
constexpr auto kHelloPatience = 5s;     // for one that has connected to say who it is
constexpr auto kEndPatience = 8s;       // for this process to end when another has failed

enum Kind : std::uint32_t { kHello, kWelcome, kGive, kAll, kStop, kBye };

int number_from(const char* name, const char* text) {
  int value = 0;
  const char* end = text + std::strlen(text);
  if (const auto [rest, error] = std::from_chars(text, end, value); error != std::errc{} || rest != end)
    throw UsageError(std::string(name) + ": '" + text + "' is not a whole number");
  return value;
}

std::string own_name() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return std::string(host) + " (process id " + std::to_string(getpid()) + ")";
}

// Several texts as one, each behind its length.
std::string packed(const std::vector<std::string>& texts) {
  std::string whole;
  for (const std::string& text : texts) whole += std::to_string(text.size()) + ":" + text;
  return whole;
}

// Throws std::invalid_argument if the text is not packed.
std::vector<std::string> unpacked(std::string_view whole) {
  std::vector<std::string> texts;
  while (!whole.empty()) {
    std::size_t size = 0;
    const char* end = whole.data() + whole.size();
    const auto [rest, error] = std::from_chars(whole.data(), end, size);
    if (error != std::errc{} || rest == end || *rest != ':' ||
        size > static_cast<std::size_t>(end - rest) - 1)
      throw std::invalid_argument("a message that is none of this program's");
    texts.emplace_back(rest + 1, size);
    whole.remove_prefix(static_cast<std::size_t>(rest - whole.data()) + 1 + size);
  }
  return texts;
}

bool is_packed(std::string_view whole, std::size_t count) {
  try {
    return unpacked(whole).size() == count;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// What a process says of itself when it has connected.
struct Hello {
  std::size_t index, count;
  std::string name;
};

// Empty if it is a stranger: whoever reaches the port can say anything.
std::optional<Hello> hello_from(const std::optional<Message>& message) {
  if (!message || message->kind != kHello) return std::nullopt;
  try {
    const std::vector<std::string> words = unpacked(message->text);
    return Hello{std::stoul(words.at(0)), std::stoul(words.at(1)), words.at(2)};
  } catch (const std::logic_error&) {  // too few words, or no numbers
    return std::nullopt;
  }
}

}  // namespace

std::optional<Meeting> meeting_from_environment() {
  const char* place = std::getenv("OVERLAP_RENDEZVOUS");
  if (place == nullptr) return std::nullopt;
  const std::string address = place;
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    throw UsageError("OVERLAP_RENDEZVOUS: '" + address + "' is not HOST:PORT");
  constexpr const char* kPairs[][2] = {{"OVERLAP_PROCESS", "OVERLAP_PROCESSES"},
                                       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                       {"PMI_RANK", "PMI_SIZE"},
                                       {"SLURM_PROCID", "SLURM_NTASKS"}};
  for (const auto& [name, of] : kPairs) {
    const char *index = std::getenv(name), *count = std::getenv(of);
    if (index == nullptr || count == nullptr) continue;
    const Meeting meeting{.index = number_from(name, index),
                          .count = number_from(of, count),
                          .host = address.substr(0, colon),
                          .port = address.substr(colon + 1)};
    if (meeting.index >= 0 && meeting.index < meeting.count) return meeting;
    throw UsageError(std::string(name) + ": there is no process " + index + " of " + count);
  }
  throw UsageError(
      "OVERLAP_RENDEZVOUS is set, but not which process this is: start it by ./lab run --nodes, mpirun or "
      "srun, or set OVERLAP_PROCESS and OVERLAP_PROCESSES");
}

class Processes::Connections {
 public:
  explicit Connections(const Meeting& meeting)
      : index_(meeting.index),
        names_(static_cast<std::size_t>(meeting.count)),
        given_(static_cast<std::size_t>(meeting.count)),
        gone_(static_cast<std::size_t>(meeting.count)),
        links_(static_cast<std::size_t>(meeting.count)) {
    names_[static_cast<std::size_t>(index_)] = own_name();
    const auto until = std::chrono::steady_clock::now() + kMeetingPatience;
    index_ == 0 ? receive_all(meeting, until) : go_to_the_first(meeting, until);
    for (std::size_t other = 0; other < links_.size(); ++other) {
      if (links_[other]) readers_.emplace_back([this, other] { read_from(other); });
    }
  }

  ~Connections() {
    {
      std::unique_lock lock(mutex_);
      over_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !telling_; });
    }
    for (const auto& link : links_) {
      if (link) link->end();
    }
    for (std::thread& reader : readers_) reader.join();
  }

  std::string name_of(int process) const {
    return "process " + std::to_string(process) + " on " + names_[static_cast<std::size_t>(process)];
  }

  std::vector<std::string> exchange(const std::string& own) {
    if (index_ != 0) links_[0]->send({kGive, own});
    std::unique_lock lock(mutex_);
    given_[static_cast<std::size_t>(index_)] = own;
    const auto complete = [this] { return index_ == 0 ? all_given() : all_.has_value(); };
    changed_.wait(lock, [&] { return failure_ || complete() || somebody_left(); });
    if (failure_) throw *failure_;
    if (!complete()) throw ProcessFailed(kExitFailed, "another process has ended before this one");
    if (index_ != 0) {
      const std::vector<std::string> all = unpacked(*all_);
      all_.reset();
      return all;
    }
    std::vector<std::string> all;
    for (auto& text : given_) all.push_back(std::move(*text));
    std::fill(given_.begin(), given_.end(), std::nullopt);
    lock.unlock();
    for (const auto& link : links_) {
      if (link) link->send({kAll, packed(all)});
    }
    return all;
  }

  void check() const {
    const std::lock_guard lock(mutex_);
    if (failure_) throw *failure_;
  }

  void stop(int status, const std::string& sentence) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_ || stopped_) return;
      stopped_ = true;
    }
    tell_others(-1, {status, name_of(index_) + ": " + sentence});
  }

  void say_goodbye() {
    for (const auto& link : links_) {
      if (link) link->send({kBye, ""});
    }
    const std::lock_guard lock(mutex_);
    std::fill(gone_.begin(), gone_.end(), true);
  }

  bool first_knows() const {
    const std::lock_guard lock(mutex_);
    return !first_is_lost_;
  }

 private:
  using Time = std::chrono::steady_clock::time_point;

  // ---- How they meet --------------------------------------------------------------------------------------
  void receive_all(const Meeting& meeting, Time until) {
    const detail::Listener listener(meeting.host, meeting.port);
    for (int missing = meeting.count - 1; missing > 0;) {
      std::optional<Connection> link = listener.accept(until);
      if (!link) throw ProcessFailed(kExitFailed, who_is_missing(meeting));
      link->give_up_after(kHelloPatience);
      const std::optional<Hello> hello = hello_from(link->receive());
      if (!hello) continue;
      const std::size_t index = hello->index, count = hello->count;
      if (count != links_.size() || index >= count || index == 0 || links_[index]) {
        const std::string sentence = "one process is number " + std::to_string(index) + " of " +
                                     std::to_string(count) + ", on " + hello->name + "; process 0 knows " +
                                     std::to_string(links_.size()) +
                                     (count == links_.size() ? ", and has met that one" : "");
        for (auto& other : links_) {
          if (other) other->send({kStop, packed({std::to_string(kExitFailed), sentence})});
        }
        link->send({kStop, packed({std::to_string(kExitFailed), sentence})});
        throw ProcessFailed(kExitFailed, sentence);
      }
      link->give_up_after(0s);
      names_[index] = hello->name;
      links_[index] = std::make_unique<Connection>(std::move(*link));
      --missing;
    }
    for (const auto& link : links_) {
      if (link) link->send({kWelcome, packed(names_)});
    }
  }

  std::string who_is_missing(const Meeting& meeting) const {
    std::string missing;
    for (std::size_t other = 1; other < links_.size(); ++other) {
      if (!links_[other]) missing += (missing.empty() ? "process " : ", ") + std::to_string(other);
    }
    return missing + " of " + std::to_string(meeting.count) + " has not come to " + meeting.host + ":" +
           meeting.port + " within " + std::to_string(kMeetingPatience.count()) + " s";
  }

  void go_to_the_first(const Meeting& meeting, Time until) {
    std::optional<Connection> link = detail::connect(meeting.host, meeting.port, until);
    first_is_lost_ = true;  // until it says welcome
    const std::string place = meeting.host + ":" + meeting.port;
    if (!link) throw ProcessFailed(kExitFailed, "process 0 does not listen at " + place);
    link->send({kHello, packed({std::to_string(index_), std::to_string(meeting.count),
                                names_[static_cast<std::size_t>(index_)]})});
    const std::optional<Message> answer = link->receive();
    if (!answer) throw ProcessFailed(kExitFailed, "process 0, at " + place + ", has died");
    first_is_lost_ = false;
    if (answer->kind == kStop) throw failure_from(*answer);
    if (answer->kind != kWelcome || !is_packed(answer->text, names_.size()))
      throw ProcessFailed(kExitFailed, "who listens at " + place + " is not process 0 of this program");
    names_ = unpacked(answer->text);
    links_[0] = std::make_unique<Connection>(std::move(*link));
  }

  // ---- What comes -----------------------------------------------------------------------------------------
  void read_from(std::size_t other) {
    while (true) {
      const std::optional<Message> message = links_[other]->receive();
      if (!message) return lost(other);
      if (message->kind == kStop) return failed(static_cast<int>(other), failure_from(*message));
      const std::lock_guard lock(mutex_);
      if (message->kind == kGive) given_[other] = message->text;
      if (message->kind == kAll) all_ = message->text;
      if (message->kind == kBye) gone_[other] = true;
      changed_.notify_all();
    }
  }

  static ProcessFailed failure_from(const Message& message) {
    try {
      const std::vector<std::string> words = unpacked(message.text);
      return {std::stoi(words.at(0)), words.at(1)};
    } catch (const std::logic_error&) {  // too few words, or no number
      return {kExitFailed, "another process ends, and what it says is none of this program's sentences"};
    }
  }

  void lost(std::size_t other) {
    {
      const std::lock_guard lock(mutex_);
      if (gone_[other] || failure_ || stopped_ || over_) return;
      if (other == 0) first_is_lost_ = true;
    }
    const int process = static_cast<int>(other);
    failed(process, {kExitFailed, name_of(process) + " has died"});
  }

  void failed(int origin, const ProcessFailed& failure) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_ || stopped_) return;
      failure_ = failure;
      telling_ = true;
      changed_.notify_all();
    }
    tell_others(origin, failure);
    stop_active_run(failure.what());
    std::unique_lock lock(mutex_);
    telling_ = false;
    changed_.notify_all();
    if (changed_.wait_for(lock, kEndPatience, [this] { return over_; })) return;
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, failure.what());
    std::_Exit(failure.status());
  }

  /// All that are connected, but for `origin`: it knows.
  void tell_others(int origin, const ProcessFailed& failure) {
    for (std::size_t other = 0; other < links_.size(); ++other) {
      if (links_[other] && static_cast<int>(other) != origin)
        links_[other]->send({kStop, packed({std::to_string(failure.status()), failure.what()})});
    }
  }

  bool somebody_left() const { return std::find(gone_.begin(), gone_.end(), true) != gone_.end(); }

  bool all_given() const {
    for (const auto& text : given_) {
      if (!text) return false;
    }
    return true;
  }

  const int index_;
  std::vector<std::string> names_;  // of all processes: host and process id

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<std::string>> given_;  // by process, of the exchange that is under way
  std::optional<std::string> all_;                 // its result, from process 0
  std::optional<ProcessFailed> failure_;           // of another process
  std::vector<bool> gone_;                         // who has said goodbye
  bool stopped_ = false;                           // this process has failed
  bool first_is_lost_ = false;                     // process 0 cannot tell anything
  bool telling_ = false;                           // the others are being told of the failure
  bool over_ = false;

  std::vector<std::unique_ptr<Connection>> links_;  // process 0: to each other one; else to process 0
  std::vector<std::thread> readers_;
};

Processes::Processes(const Meeting& meeting)
    : meeting_(meeting), connections_(std::make_unique<Connections>(meeting)) {}

Processes::~Processes() = default;

std::string Processes::name_of(int process) const { return connections_->name_of(process); }

std::vector<std::string> Processes::exchange(const std::string& own) { return connections_->exchange(own); }

void Processes::check() const { connections_->check(); }

void Processes::stop(int status, const std::string& sentence) { connections_->stop(status, sentence); }

void Processes::leave() {
  barrier();
  connections_->say_goodbye();
}

bool Processes::first_knows() const { return connections_->first_knows(); }

}  // namespace overlap

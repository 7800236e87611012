// Messages over TCP, between processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace overlap::detail {

/// A message: what it is, and its bytes.
struct Message {
  std::uint32_t kind;
  std::string text;
};

/// One connection. Any thread may send, one receives.
class Connection {
 public:
  /// Takes the socket over, or none: -1.
  explicit Connection(int socket = -1);
  ~Connection();
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;

  /// False if the other end is gone.
  bool send(const Message& message);
  /// The next message; none if the other end is gone or talks of something else.
  std::optional<Message> receive();
  /// Until then receive() gives up after that time; 0: never.
  void give_up_after(std::chrono::seconds time);
  /// Ends the connection, also for a thread that receives.
  void end();

 private:
  bool read(void* into, std::size_t bytes);

  int socket_;
  std::mutex sending_;
};

/// Waits for connections at one address.
class Listener {
 public:
  /// Throws std::runtime_error, one sentence, if this machine cannot listen there.
  Listener(const std::string& host, const std::string& port);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// The next connection; none if nobody comes until then.
  std::optional<Connection> accept(std::chrono::steady_clock::time_point until) const;

 private:
  int socket_;
};

/// A connection to who listens there, or will soon. None if nobody does until then; throws std::runtime_error
/// if there is no such host.
std::optional<Connection> connect(const std::string& host, const std::string& port,
                                  std::chrono::steady_clock::time_point until);

}  // namespace overlap::detail

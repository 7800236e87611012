#include "gpu/backend/tcp.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace overlap::detail {
namespace {

using namespace std::chrono_literals;
constexpr std::uint32_t kMagic = 0x4f564c31;  // "OVL1": what a stranger sends is no message
constexpr std::uint32_t kMostBytes = 64 * 1024 * 1024;
constexpr auto kSendPatience = 5s;

struct Header {
  std::uint32_t magic, kind, bytes;
};

void set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

void set_time(int socket, int option, std::chrono::seconds time) {
  const timeval value{.tv_sec = time.count(), .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, option, &value, sizeof value);
}

/// Small messages go at once, and a machine that does not answer any more is known within 8 s.
void prepare(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
  set_time(socket, SO_SNDTIMEO, kSendPatience);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses addresses_of(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    throw std::runtime_error("OVERLAP_RENDEZVOUS: " + host + ":" + port + ": " + gai_strerror(error));
  return {found, &freeaddrinfo};
}

}  // namespace

Connection::Connection(int socket) : socket_(socket) {
  if (socket_ >= 0) prepare(socket_);
}

Connection::~Connection() {
  if (socket_ >= 0) close(socket_);
}

Connection::Connection(Connection&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}

bool Connection::send(const Message& message) {
  const Header header{kMagic, message.kind, static_cast<std::uint32_t>(message.text.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += message.text;
  const std::lock_guard lock(sending_);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t some = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    sent += static_cast<std::size_t>(some);
  }
  return true;
}

bool Connection::read(void* into, std::size_t bytes) {
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t some = ::recv(socket_, static_cast<char*>(into) + got, bytes - got, 0);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    got += static_cast<std::size_t>(some);
  }
  return true;
}

std::optional<Message> Connection::receive() {
  Header header{};
  if (!read(&header, sizeof header) || header.magic != kMagic || header.bytes > kMostBytes)
    return std::nullopt;
  Message message{header.kind, std::string(header.bytes, '\0')};
  if (!read(message.text.data(), message.text.size())) return std::nullopt;
  return message;
}

void Connection::give_up_after(std::chrono::seconds time) { set_time(socket_, SO_RCVTIMEO, time); }

void Connection::end() { shutdown(socket_, SHUT_RDWR); }

Listener::Listener(const std::string& host, const std::string& port) : socket_(-1) {
  const Addresses addresses = addresses_of(host, port);
  int error = 0;
  for (const addrinfo* each = addresses.get(); each != nullptr && socket_ < 0; each = each->ai_next) {
    const int made = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set(made, SOL_SOCKET, SO_REUSEADDR, 1);
    if (made >= 0 && bind(made, each->ai_addr, each->ai_addrlen) == 0 && listen(made, SOMAXCONN) == 0) {
      socket_ = made;
    } else {
      error = errno;
      if (made >= 0) close(made);
    }
  }
  if (socket_ < 0) {
    throw std::runtime_error("OVERLAP_RENDEZVOUS: process 0 cannot listen at " + host + ":" + port + ": " +
                             std::strerror(error));
  }
}

Listener::~Listener() { close(socket_); }

std::optional<Connection> Listener::accept(std::chrono::steady_clock::time_point until) const {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready == 0) return std::nullopt;
    if (ready < 0) continue;  // a signal
    const int socket = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) return Connection(socket);
  }
}

std::optional<Connection> connect(const std::string& host, const std::string& port,
                                  std::chrono::steady_clock::time_point until) {
  const Addresses addresses = addresses_of(host, port);
  while (true) {
    for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
      const int made = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (made < 0) continue;
      set_time(made, SO_SNDTIMEO, kSendPatience);  // for connect(), too
      if (::connect(made, each->ai_addr, each->ai_addrlen) == 0) return Connection(made);
      close(made);
    }
    if (std::chrono::steady_clock::now() > until) return std::nullopt;
    std::this_thread::sleep_for(50ms);  // it does not listen yet
  }
}

}  // namespace overlap::detail

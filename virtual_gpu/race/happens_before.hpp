// What ThreadSanitizer is told about CUDA's order. In the race build, programs are instrumented and this
// library is not: every edge is stated here, none arises by accident, and a missing one shows in any
// schedule. In other builds all of this is empty; but the check build has the accesses, and who runs: its
// contexts are the rights of check/memory_state.hpp.
//
// A context is ThreadSanitizer's idea of a thread. The host has one, each stream has two sets of kContexts
// (engine/kernel/stream_contexts.hpp), the runtime itself has one whose accesses are ignored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "check/memory_state.hpp"

#ifndef VGPU_RACE
#define VGPU_RACE 0
#endif

namespace vgpu::hb {

inline constexpr bool kEnabled = VGPU_RACE != 0;
inline constexpr int kContexts = 13;  // of a set; a prime, so that strides of 2^n do not meet in one context

using Context = void*;  // a ThreadSanitizer fiber

/// The call stack at an API call: return addresses, innermost first; reports omit the runtime's frames.
struct CallSite {
  std::array<void*, 12> frames{};
  int size = 0;
  bool through_kernel =
      false;  // a launch: the innermost program line is the kernel's own, which calls the runtime
  const char* call = nullptr;  // the function that was called, if the frames may not tell: a template
  std::uint64_t number = 0;    // of the call, in the order of the host's calls; above it the host thread's
};

#if VGPU_RACE || VGPU_CHECK

/// An access by the runtime on behalf of `context`, such as a copy's. Reports show `site`, and `caller`, a
/// return address into a kernel, if the kernel asked for it.
void read(Context context, const CallSite& site, const void* memory, std::size_t bytes,
          const void* caller = nullptr);
void write(Context context, const CallSite& site, const void* memory, std::size_t bytes,
           const void* caller = nullptr);
/// Where the program is: for an API function to remember who enqueued something. Costs about a microsecond.
CallSite call_site(bool through_kernel = false);
/// "ring.cu:59", the innermost line of the program, or "" if it is not known.
std::string describe(const CallSite& site);

#else

inline void read(Context, const CallSite&, const void*, std::size_t, const void* = nullptr) {}
inline void write(Context, const CallSite&, const void*, std::size_t, const void* = nullptr) {}
inline CallSite call_site(bool = false) { return {}; }
inline std::string describe(const CallSite&) { return {}; }

#endif

#if VGPU_RACE

/// Called once, by the host, before anything else here.
void start();
/// Whether the synchronising call `name`, in which the program is, is to be left out: a line of its call
/// stack is the one that the environment variable VGPU_DROP names, as "folder/ring.cuh:59".
/// VGPU_SYNC_SITES=FILE lists the stacks of all that run.
///@{
extern const bool watches_calls;
bool is_left_out(const char* name);
inline bool left_out(const char* name) { return watches_calls && is_left_out(name); }
///@}
/// The calling thread goes on as this context. No order arises.
void enter(Context context);
Context running_context();
Context runtime_context();
Context host_context();
/// Another host thread runs from now on: host_context() is its context, and calls bear its number.
void become_host(Context context, int number);
/// A new context, ordered after nothing but the start.
Context make_context(const std::string& name);
void destroy_context(Context context);

/// Orders the accesses of `context` before later acquires of `sync`, any address that the runtime owns.
void release(Context context, const void* sync);
void acquire(Context context, const void* sync);

/// An access of the host by a function that the compiler made it call; any of its threads.
void access_of_host(const void* memory, std::size_t bytes, bool write, const void* caller);
/// read() and write() as relaxed atomic accesses, which do not race with each other and leave the bytes
/// unchanged.
///@{
void read_atomically(Context context, const CallSite& site, const void* memory, std::size_t bytes,
                     const void* caller = nullptr);
void write_atomically(Context context, const CallSite& site, const void* memory, std::size_t bytes,
                      const void* caller = nullptr);
///@}

/// While it lives, read() looks on behalf of a write that follows: reports call it a write.
class ReadsForAWrite {
 public:
  explicit ReadsForAWrite(bool write) { active_ = write; }
  ~ReadsForAWrite() { active_ = false; }
  ReadsForAWrite(const ReadsForAWrite&) = delete;
  ReadsForAWrite& operator=(const ReadsForAWrite&) = delete;
  static bool active() { return active_; }

 private:
  static inline bool active_ = false;
};

/// A race that `action` finds is told at the end of this object's life, if no other one was found until then.
class LateReport {
 public:
  template <class Action>
  explicit LateReport(Action action) {
    holding_ = true;
    action();
    holding_ = false;
  }
  ~LateReport();
  LateReport(const LateReport&) = delete;
  LateReport& operator=(const LateReport&) = delete;
  static bool holding() { return holding_; }

 private:
  static inline bool holding_ = false;
};

/// The same for one word, atomically: a store with release, a load without any order.
void store_atomic(Context context, const CallSite& site, std::uint32_t* word, std::uint32_t value);
void load_atomic(Context context, const CallSite& site, const std::uint32_t* word);

/// Makes `site` the callers of what the running context does next, until pop_callers().
void push_callers(const CallSite& site);
void pop_callers(const CallSite& site);

/// That CUDA thread (run_facts.hpp) runs in the running context until pop_thread(). Threads of one context
/// share its call stack: frames below may be another thread's.
void push_thread(std::uint64_t number);
void pop_thread();

/// What a frame that is no return address stands for. push_callers() puts a mark of a call between the
/// callers and what they call.
struct Mark {
  enum Kind {
    kCall,       // of a function
    kLaunch,     // of a kernel
    kNamedCall,  // of a function whose name, a const char*, comes next
    kThread,     // see push_thread()
    kNone
  };
  Kind kind;
  std::uint64_t number;  // CallSite::number, or the thread's
};
Mark mark(const void* frame);

#else

inline void start() {}
inline bool left_out(const char*) { return false; }
inline void enter(Context context) { memcheck::enter(static_cast<memcheck::Rights*>(context)); }
inline Context running_context() { return memcheck::running(); }
inline Context runtime_context() { return memcheck::in_runtime(); }
inline Context host_context() { return memcheck::host(); }
inline void become_host(Context, int) {}
inline Context make_context(const std::string&) { return memcheck::host(); }
inline void destroy_context(Context) {}
inline void release(Context, const void*) {}
inline void acquire(Context, const void*) {}
inline void read_atomically(Context own, const CallSite& site, const void* memory, std::size_t bytes,
                            const void* caller = nullptr) {
  read(own, site, memory, bytes, caller);
}
inline void write_atomically(Context own, const CallSite& site, const void* memory, std::size_t bytes,
                             const void* caller = nullptr) {
  write(own, site, memory, bytes, caller);
}
class ReadsForAWrite {
 public:
  explicit ReadsForAWrite(bool) {}
};
class LateReport {
 public:
  template <class Action>
  explicit LateReport(Action) {}
};
inline void store_atomic(Context own, const CallSite& site, std::uint32_t* word, std::uint32_t value) {
  write(own, site, word, sizeof *word);
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
inline void load_atomic(Context own, const CallSite& site, const std::uint32_t* word) {
  read(own, site, word, sizeof *word);
}
inline void push_callers(const CallSite&) {}
inline void pop_callers(const CallSite&) {}
inline void push_thread(std::uint64_t) {}
inline void pop_thread() {}

#endif

/// " at ring.cu:59", the innermost line of the program at a return address, or "" if it is not known. In all
/// builds; for reports that end something, since another program is started for it.
std::string line_at(const void* return_address);

/// The runtime works in its caller's stead until the end of the scope.
class RuntimeScope {
 public:
  RuntimeScope() : caller_(running_context()) { enter(runtime_context()); }
  ~RuntimeScope() { enter(caller_); }
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  [[maybe_unused]] Context caller_;
};

}  // namespace vgpu::hb

namespace vgpu {

/// " at x.cu:12", the line of a return address into a kernel; "" if it is not known: outside the race build
/// and the check build.
inline std::string at_line(const void* caller) {
  const bool is_known = caller != nullptr && (hb::kEnabled || memcheck::kEnabled);
  return is_known ? hb::line_at(caller) : "";
}
/// ", initialised at x.cu:12", likewise.
inline std::string at_line(const char* what, const void* caller) {
  const std::string line = at_line(caller);
  return line.empty() ? "" : std::string(", ") + what + line;
}

}  // namespace vgpu

#include "race/happens_before.hpp"

#if VGPU_RACE

#include <execinfo.h>

#include <iterator>

#include "race/race_report.hpp"

// ThreadSanitizer's interface; no header of g++ 12 declares all of it.
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_set_fiber_name(void* fiber, const char* name);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void __tsan_ignore_thread_begin();
void __tsan_func_entry(void* pc);
void __tsan_func_exit();
void __tsan_read_range(void* address, unsigned long bytes);
void __tsan_write_range(void* address, unsigned long bytes);
void __tsan_atomic32_store(volatile std::uint32_t* word, std::uint32_t value, int order);
std::uint32_t __tsan_atomic32_load(const volatile std::uint32_t* word, int order);
std::uint16_t __tsan_atomic16_load(const volatile std::uint16_t* word, int order);
std::uint64_t __tsan_atomic64_load(const volatile std::uint64_t* word, int order);
std::uint16_t __tsan_atomic16_fetch_or(volatile std::uint16_t* word, std::uint16_t bits, int order);
std::uint32_t __tsan_atomic32_fetch_or(volatile std::uint32_t* word, std::uint32_t bits, int order);
std::uint64_t __tsan_atomic64_fetch_or(volatile std::uint64_t* word, std::uint64_t bits, int order);
}

namespace vgpu::hb {
namespace {

// A switch must not order one context after the other.
constexpr unsigned kNoSync = 1;

struct Contexts {
  Context host = nullptr;
  Context runtime = nullptr;
  // A new context is ordered after its creator. This one never acquires anything, so that its children are
  // unordered.
  Context birth = nullptr;
  Context running = nullptr;
  std::uint64_t host_number = 0;
};
Contexts contexts;

// Marks are frames that point here, because for addresses in no module ThreadSanitizer reads the process's
// mappings for each frame. Entries are reused after so many calls or threads.
Mark call_marks[std::size_t{1} << 20];
std::uint64_t thread_marks[std::size_t{1} << 22];
constexpr int kHostBit = 48;  // of a call's number: the host thread's is above it
// So many frames name a thread: the functions that return after it was suspended drop as many of them.
constexpr int kThreadFrames = 3;

void* frame_of(const Mark& mark) {
  if (mark.kind == Mark::kThread) {
    // Linear in blocks and threads; launches of other shapes have other places.
    constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
    const std::uint64_t place = mark.number + (mark.number >> 44) * kSpread;
    return &(thread_marks[place % std::size(thread_marks)] = mark.number);
  }
  return &(call_marks[mark.number % std::size(call_marks)] = mark);
}

/// Runs `action` as `context`, then goes on as before.
template <class Action>
void as(Context context, Action action) {
  const Context before = contexts.running;
  enter(context);
  action();
  enter(before);
}

template <class Action>
void access(Context context, const CallSite& site, const void* caller, Action action) {
  // A kernel's thread that runs has its callers already.
  const bool runs = contexts.running == context && context != contexts.host;
  as(context, [&] {
    if (!runs) push_callers(site);
    if (caller != nullptr) __tsan_func_entry(const_cast<void*>(caller));
    action();
    if (caller != nullptr) __tsan_func_exit();
    if (!runs) pop_callers(site);
  });
}

/// Calls `visit` for each aligned word of eight bytes, and for smaller ones that are left before or behind
/// them. Each takes one of the four places that ThreadSanitizer has for eight bytes.
template <class Visit>
void for_each_word(const void* memory, std::size_t bytes, Visit visit) {
  auto* at = static_cast<std::byte*>(const_cast<void*>(memory));
  const std::byte* const end = at + bytes;
  const auto fits = [&](std::size_t size) {
    return reinterpret_cast<std::uintptr_t>(at) % size == 0 && static_cast<std::size_t>(end - at) >= size;
  };
  while (end - at >= 2) {  // no element that is added, and no flag, has fewer
    if (fits(8)) {
      visit(reinterpret_cast<std::uint64_t*>(at));
      at += 8;
    } else if (fits(4)) {
      visit(reinterpret_cast<std::uint32_t*>(at));
      at += 4;
    } else {
      visit(reinterpret_cast<std::uint16_t*>(at));
      at += 2;
    }
  }
}

void read_word(const std::uint64_t* word) { __tsan_atomic64_load(word, __ATOMIC_RELAXED); }
void read_word(const std::uint32_t* word) { __tsan_atomic32_load(word, __ATOMIC_RELAXED); }
void read_word(const std::uint16_t* word) { __tsan_atomic16_load(word, __ATOMIC_RELAXED); }
void write_word(std::uint64_t* word) { __tsan_atomic64_fetch_or(word, 0, __ATOMIC_RELAXED); }
void write_word(std::uint32_t* word) { __tsan_atomic32_fetch_or(word, 0, __ATOMIC_RELAXED); }
void write_word(std::uint16_t* word) { __tsan_atomic16_fetch_or(word, 0, __ATOMIC_RELAXED); }

}  // namespace

void start() {
  if (contexts.host != nullptr) return;
  contexts.host = contexts.running = __tsan_get_current_fiber();
  contexts.birth = __tsan_create_fiber(0);
  contexts.runtime = __tsan_create_fiber(0);
  __tsan_set_fiber_name(contexts.host, "the host");
  as(contexts.runtime, [] { __tsan_ignore_thread_begin(); });
}

void enter(Context context) {
  if (contexts.running == context) return;
  contexts.running = context;
  __tsan_switch_to_fiber(context, kNoSync);
}

Context running_context() { return contexts.running; }
Context runtime_context() { return contexts.runtime; }
Context host_context() { return contexts.host; }
void become_host(Context context, int number) {
  contexts.host = context;
  contexts.host_number = static_cast<std::uint64_t>(number) % 256;
}

Context make_context(const std::string& name) {
  Context made = nullptr;
  as(contexts.birth, [&] { made = __tsan_create_fiber(0); });
  __tsan_set_fiber_name(made, name.c_str());
  return made;
}

void destroy_context(Context context) { __tsan_destroy_fiber(context); }

void release(Context context, const void* sync) {
  as(context, [sync] { __tsan_release(const_cast<void*>(sync)); });
}

void acquire(Context context, const void* sync) {
  as(context, [sync] { __tsan_acquire(const_cast<void*>(sync)); });
}

void read(Context context, const CallSite& site, const void* memory, std::size_t bytes, const void* caller) {
  access(context, site, caller, [&] { __tsan_read_range(const_cast<void*>(memory), bytes); });
}

void write(Context context, const CallSite& site, const void* memory, std::size_t bytes, const void* caller) {
  access(context, site, caller, [&] { __tsan_write_range(const_cast<void*>(memory), bytes); });
}

void access_of_host(const void* memory, std::size_t bytes, bool write, const void* caller) {
  __tsan_func_entry(const_cast<void*>(caller));
  (write ? __tsan_write_range : __tsan_read_range)(const_cast<void*>(memory), bytes);
  __tsan_func_exit();
}

void read_atomically(Context context, const CallSite& site, const void* memory, std::size_t bytes,
                     const void* caller) {
  access(context, site, caller,
         [&] { for_each_word(memory, bytes, [](const auto* word) { read_word(word); }); });
}

void write_atomically(Context context, const CallSite& site, const void* memory, std::size_t bytes,
                      const void* caller) {
  access(context, site, caller, [&] { for_each_word(memory, bytes, [](auto* word) { write_word(word); }); });
}

void store_atomic(Context context, const CallSite& site, std::uint32_t* word, std::uint32_t value) {
  access(context, site, nullptr, [&] { __tsan_atomic32_store(word, value, __ATOMIC_RELEASE); });
}

void load_atomic(Context context, const CallSite& site, const std::uint32_t* word) {
  access(context, site, nullptr, [&] { __tsan_atomic32_load(word, __ATOMIC_RELAXED); });
}

Mark mark(const void* frame) {
  if (frame >= std::begin(thread_marks) && frame < std::end(thread_marks))
    return {Mark::kThread, *static_cast<const std::uint64_t*>(frame)};
  if (frame >= std::begin(call_marks) && frame < std::end(call_marks))
    return *static_cast<const Mark*>(frame);
  return {Mark::kNone, 0};
}

void push_thread(std::uint64_t number) {
  for (int i = 0; i < kThreadFrames; ++i) __tsan_func_entry(frame_of({Mark::kThread, number}));
}

void pop_thread() {
  for (int i = 0; i < kThreadFrames; ++i) __tsan_func_exit();
}

CallSite call_site(bool through_kernel) {
  static std::uint64_t calls = 0;
  CallSite site;
  site.number = contexts.host_number << kHostBit | ++calls;
  site.through_kernel = through_kernel;
  site.size = backtrace(site.frames.data(), static_cast<int>(site.frames.size()));
  return site;
}

void push_callers(const CallSite& site) {
  for (int i = site.size; i-- > 0;) __tsan_func_entry(site.frames[i]);
  if (site.call != nullptr) __tsan_func_entry(const_cast<char*>(site.call));
  const Mark::Kind called = site.through_kernel ? Mark::kLaunch : Mark::kCall;
  __tsan_func_entry(frame_of({site.call != nullptr ? Mark::kNamedCall : called, site.number}));
}

void pop_callers(const CallSite& site) {
  const int marks = site.call != nullptr ? 2 : 1;
  for (int i = 0; i < site.size + marks; ++i) __tsan_func_exit();
}

}  // namespace vgpu::hb

#endif

#include "race/race_advice.hpp"

#if VGPU_RACE

#include <cctype>
#include <cstring>
#include <string_view>

#include "race/run_facts.hpp"

namespace vgpu {
namespace {

/// "(anonymous namespace)::rotate(int*)::{lambda()#1}::operator()() const" -> "rotate"; "operator()(int)" ->
/// "operator()".
std::string short_function(std::string name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous)) {
    name.erase(at, kAnonymous.size());
  }
  std::size_t end = name.find('(');
  if (name.substr(0, end).ends_with("operator")) end += std::strlen("()");
  return name.substr(0, end);
}

/// The host's own code, or a call of it that reads or writes at once.
bool by_host(const Access& access) { return !access.who.starts_with("gpu"); }

/// Of the running block: what the thread's last wait for an mbarrier was, if it did not wait.
std::string passed_wait(const Access& access) {
  const std::string wait = access.thread ? describe_passed_wait(*access.thread) : "";
  return wait.empty() ? "" : " " + wait;
}

/// What is missing if one of the two is a bulk copy's; empty if none is.
std::string bulk_cure(const Access& earlier, const Access& later) {
  // The probe comes behind the engine, which has found that the two are ordered.
  if (later.who.find(" (TMA, async proxy)") != std::string::npos) {
    std::string text = "The bulk copy comes after that access, but no proxy fence is between them: ";
    text += "fence_proxy_async() by the thread that ";
    text += earlier.write ? "wrote" : "read";
    return text += ", before the barrier, or by the thread that issues the copy, after it saw the flag.";
  }
  if (later.who.find(" (TMA") == std::string::npos && earlier.who.find(" (TMA") == std::string::npos)
    return {};
  return "Nothing orders the bulk copy and that access: wait for its mbarrier or its bulk group before the "
         "memory is used again, and let all who used it arrive before the copy is issued." +
         passed_wait(earlier) + passed_wait(later);
}

/// The same of a wgmma. It writes its Fragment alone, and reads its operands.
std::string wgmma_cure(const Access& earlier, const Access& later) {
  constexpr const char* kProxy = " (wgmma, async proxy)";
  const auto by = [](const Access& access, const char* who) {
    return access.who.find(who) != std::string::npos;
  };
  if (by(later, kProxy))
    return "The wgmma comes after that access, but no proxy fence is between them: fence_proxy_async() by "
           "the thread that wrote, before the barrier.";
  if (!by(later, " (wgmma") && !by(earlier, " (wgmma")) return {};
  const Access& own = by(later, " (wgmma") ? later : earlier;
  if (own.write) return "The wgmma may still write its Fragment: commit() and wait() before it is touched.";
  return "Nothing orders the wgmma and that access to its operands: wait for the mbarrier of the copy that "
         "brings them before the wgmma is issued, and for the wgmma before they change.";
}

/// The same of a kernel's asynchronous copy.
std::string copy_cure(const Access& first, const Access& second) {
  for (const Access* copy : {&second, &first}) {
    const Access& other = copy == &second ? first : second;
    const std::size_t name = copy->who.find(" (memcpy_async)");
    if (name == std::string::npos || other.who.compare(0, name, copy->who, 0, name) != 0) continue;
    return "Nothing orders the kernel's asynchronous copy and that access: consumer_wait() before the data "
           "is used, and __syncthreads if other threads use it.";
  }
  return {};
}

/// The same of a block that ends.
std::string end_cure(const Access& first, const Access& second) {
  const auto ends = [](const Access& access) { return access.who.ends_with(" (end of block)"); };
  if (!ends(first) && !ends(second)) return {};
  return "A block ends while another one of its cluster may still access its shared memory: end with "
         "the cluster's barrier, barrier_cluster_arrive(sem_release) and barrier_cluster_wait(sem_acquire).";
}

/// Between what kernels did: which of two accesses is no atomic one; which atomic operations between them
/// order nothing. "" if neither is it.
std::string atomic_cure(const Access& first, const Access& second) {
  if (first.atomic != second.atomic) {
    const Access &atomic = first.atomic ? first : second, &plain = first.atomic ? second : first;
    const auto name = [](const Access& access) {
      return (access.write ? "write at " : "read at ") +
             (access.line.empty() ? access.enqueued : access.line);
    };
    if (was_volatile(atomic.address))
      return "The " + name(atomic) + " is volatile, which alone orders nothing: the " + name(plain) +
             " has to be volatile, too, and __threadfence() before the write and behind the read; or both "
             "are "
             "atomic, with release and acquire.";
    return "The " + name(atomic) + " is atomic, the " + name(plain) +
           " is not: both have to be, or something has to order them.";
  }
  if (!first.thread || !second.thread) return {};
  return describe_handover(*first.thread, *second.thread);
}

/// Two threads of one kernel.
std::string thread_cure(const Access& first, const Access& second) {
  if (!first.thread || !second.thread)
    return "Nothing orders these two threads of the kernel: __syncthreads between the accesses if they are "
           "of one block, release and acquire on a word in memory if not, or atomic operations.";
  const KernelThread a = kernel_thread(*first.thread), b = kernel_thread(*second.thread);
  if (a.block == b.block && a.warp == b.warp)
    return "Nothing orders these two threads of a warp: __syncwarp or __syncthreads between the accesses, or "
           "an atomic operation.";
  if (a.block == b.block)
    return "Nothing orders these two threads of a block: __syncthreads between the accesses, or an atomic "
           "operation.";
  if (a.cluster == b.cluster)
    return "Nothing orders these two blocks of a cluster: the cluster's barrier between the accesses, "
           "barrier_cluster_arrive(sem_release) and barrier_cluster_wait(sem_acquire). __syncthreads orders "
           "threads of one block alone.";
  return "Nothing orders these two blocks: __syncthreads orders threads of one block alone. Use atomic "
         "operations, release and acquire on a word in memory, or a second kernel.";
}

/// Kernels on two GPUs, which may run at the same time.
bool two_gpus(const Access& a, const Access& b) {
  const auto gpu = [](const Access& access) { return access.who.substr(0, access.who.find('/')); };
  return a.call.empty() && b.call.empty() && gpu(a) != gpu(b);
}

std::string host_cure(const Access& first, const Access& second) {
  const Access &host = by_host(first) ? first : second, &gpu = by_host(first) ? second : first;
  std::string text = host.who + " does not wait for " + gpu.who +
                     " between them: synchronise the stream, or an event recorded after that operation";
  text[0] = static_cast<char>(std::toupper(text[0]));
  if (!host.write && !host.enqueued.empty())
    text += ". Pinned memory is read in the stream's order, pageable memory in the call";
  return text + ".";
}

}  // namespace

std::string what(const Access& access) {
  std::string text = access.write ? "write" : "read";
  text += " by " + access.who + ": ";
  if (access.enqueued.empty() && access.line.empty()) return text + "ThreadSanitizer has forgotten where";
  if (access.enqueued.empty()) return text + short_function(access.function) + " at " + access.line;
  const std::string place = "'" + short_function(access.function) + "' at " + access.line;
  if (access.call.empty()) {
    text += "kernel " + place + (access.thread ? ", " + kernel_thread(*access.thread).text : "");
  } else {
    text += access.call + (access.line.empty() ? "" : ", in " + place);  // a function that the call got
  }
  if (!by_host(access)) return text + ", enqueued at " + access.enqueued;
  return text + " at " + access.enqueued + (access.write ? "" : ", in the call: the memory is pageable");
}

std::string advice(const Access& first, const Access& second) {
  for (const auto& cure : {end_cure, wgmma_cure, bulk_cure, copy_cure}) {
    if (std::string text = cure(first, second); !text.empty()) return text;
  }
  if (by_host(first) && by_host(second))
    return "Nothing orders " + second.who + " after " + first.who +
           ": they meet at a barrier, or not at all.";
  if (by_host(first) || by_host(second)) return host_cure(first, second);
  if (std::string text = atomic_cure(first, second); !text.empty()) return text;
  if (first.who == second.who && first.number == second.number) return thread_cure(first, second);
  // What one host thread enqueued is meant to happen in that order, whatever ran first in this schedule.
  const bool one_host = first.number >> 48 == second.number >> 48;
  const bool exchanged = one_host && second.number < first.number;
  const Access &before = exchanged ? second : first, &after = exchanged ? first : second;
  if (first.who == second.who)
    return "A launch with cudaLaunchAttributeProgrammaticStreamSerialization orders the kernel after nothing "
           "in its stream: "
           "cudaGridDependencySynchronize() comes before that access, in this kernel and in those between "
           "the two. A trigger orders "
           "nothing.";
  std::string text = "No event or synchronisation orders " + after.who + " after " + before.who;
  if (two_gpus(before, after)) text += ", nor a word in memory, by release and acquire";
  return text + ".";
}

}  // namespace vgpu

#endif

#include "engine/kernel/fault_handler.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "engine/host/own_thread.hpp"
#include "engine/kernel/block.hpp"
#include "engine/machine_state.hpp"

namespace vgpu {
namespace {

int fault_signal = 0;
const void* fault_address = nullptr;
const void* fault_instruction = nullptr;
const void* fault_stack[32];  // the innermost words
MachineState* machine = nullptr;
// A block is being abandoned: another fault is the runtime's.
bool abandoning = false;

// The signals, and what the program did with them before.
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction previous[std::size(kSignals)];

const struct sigaction& previous_of(int signal) {
  return previous[std::find(std::begin(kSignals), std::end(kSignals), signal) - std::begin(kSignals)];
}

/// What the running thread of that block has done.
std::string describe_fault(Block& block) {
  std::string line = hb::line_at(fault_instruction);
  // Far from all memory it is ThreadSanitizer that faults, looking up the access that its caller makes.
  for (std::size_t i = 0; hb::kEnabled && line.empty() && i < std::size(fault_stack); ++i)
    line = hb::line_at(fault_stack[i]);
  if (fault_signal == SIGFPE)
    return "divided an integer by zero, or the least one by -1" + line +
           ": on real GPUs the result is undefined";
  if (fault_signal == SIGILL) return "executed an invalid instruction" + line + ", such as __builtin_trap()";
  if (block.current().fiber->overflows_at(fault_address))
    return "has used up its stack: the recursion is too deep, or local arrays are too large";
  const std::string beside = block.shared().locate(fault_address);
  // An address that the kernel has passed on, as to an asynchronous copy; or the runtime is wrong.
  const std::string by = block.current().in_runtime ? " in a function of the runtime that it called" : "";
  return "accessed memory that is not allocated" + by + line + ": " +
         (beside.empty() ? machine->memory().locate(fault_address) : beside);
}

/// Runs in place of the kernel's code after the handler has returned.
void abandon_block() {
  Block& block = *current_block();
  const bool is_address = fault_signal == SIGSEGV || fault_signal == SIGBUS;
  const std::string sentence = running_thread() + describe_fault(block);
  abandoning = false;
  block.fault(sentence, is_address ? cudaErrorIllegalAddress : cudaErrorLaunchFailure);
}

/// Ends the program if the address is in memory that is registered, but no longer the program's: an operation
/// needed it. Elsewhere such a fault is one of the program's own.
void explain_freed_memory(const void* address) {
  const Allocation* memory = machine == nullptr ? nullptr : machine->memory().find(address);
  if (memory == nullptr || memory->kind != MemoryKind::kRegistered) return;
  std::fprintf(stderr, "virtual GPUs: memory is gone, %s: it was freed before cudaHostUnregister",
               machine->memory().locate(address).c_str());
  for (const auto& device : machine->devices()) {
    for (const auto& stream : device->streams()) {
      const Operation* head = stream->head();
      if (head != nullptr && head->begun)
        std::fprintf(stderr, "\n  under way: %s: %s", head->origin().c_str(), head->describe().c_str());
    }
  }
  std::fputc('\n', stderr);
  std::fflush(nullptr);
  _exit(kExitReported);
}

/// What line_at() takes for a return address: the running instruction's first byte is before it.
const void* behind_instruction(void* context) {
#ifdef __x86_64__
  return reinterpret_cast<const char*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]) + 1;
#else
  (void)context;
  return nullptr;
#endif
}

/// A fault of the host's code is about to end the program, as on real GPUs; here its line is known. What it
/// calls is not made for signal handlers.
void describe_host_fault(const void* address, const void* instruction) {
  alarm(10);  // should another thread hold what finding the line needs
  std::fprintf(stderr, "virtual GPUs: the host accessed memory that is not allocated%s: %s\n",
               hb::line_at(instruction).c_str(), machine->memory().locate(address).c_str());
}

/// Does what the program did with that signal before there were virtual GPUs.
void pass_on(int signal, siginfo_t* information, void* context) {
  const struct sigaction& action = previous_of(signal);
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, information, context);
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) return action.sa_handler(signal);
  const bool was_sent = information->si_code <= 0;  // by a process: no instruction would be repeated
  if (was_sent && action.sa_handler == SIG_IGN) return;
  sigaction(signal, &action, nullptr);  // the instruction is repeated and ends the program
  if (was_sent) raise(signal);
}

void handle(int signal, siginfo_t* information, void* context) {
  // Sent by a process, it is none of the running thread. Nor is a fault of another thread of the operating
  // system: no block runs there.
  const bool is_fault = information->si_code > 0;
  if (is_fault && current_block() != nullptr && !abandoning) {
    abandoning = true;
    fault_signal = signal;
    fault_address = information->si_addr;
#ifdef __x86_64__
    // Continue in abandon_block() on the thread's own stack, as if it had just been called there. Whatever
    // the stack held is given up, so its top will do; this also serves a stack that overflowed.
    auto* machine_context = &static_cast<ucontext_t*>(context)->uc_mcontext;
    fault_instruction = behind_instruction(context);
    const Fiber& fiber = *current_block()->current().fiber;
    const auto top = reinterpret_cast<std::uintptr_t>(fiber.stack_top);
    if (hb::kEnabled && !fiber.overflows_at(fault_address)) {
      const auto* stack = reinterpret_cast<const void* const*>(machine_context->gregs[REG_RSP]);
      const auto words = (top - reinterpret_cast<std::uintptr_t>(stack)) / sizeof(void*);
      std::fill(std::copy_n(stack, std::min(words, std::size(fault_stack)), fault_stack),
                std::end(fault_stack), nullptr);
    }
    machine_context->gregs[REG_RSP] = static_cast<greg_t>(top - sizeof(void*));
    machine_context->gregs[REG_RIP] = reinterpret_cast<greg_t>(&abandon_block);
    return;
#else
    (void)context;
    const std::string sentence = "virtual GPUs: a kernel accessed memory that is not allocated: " +
                                 machine->memory().locate(fault_address) + "\n";
    (void)!write(STDERR_FILENO, sentence.data(), sentence.size());
    _exit(2);
#endif
  }
  if (is_fault && (signal == SIGSEGV || signal == SIGBUS) && on_own_thread()) {
    explain_freed_memory(information->si_addr);
    if (previous_of(signal).sa_handler == SIG_DFL && machine != nullptr)
      describe_host_fault(information->si_addr, behind_instruction(context));
  }
  pass_on(signal, information, context);
}

}  // namespace

std::string running_thread() {
  Block& block = *current_block();
  return "kernel '" + block.grid().name + "', " + block.name() + ", thread " +
         position(block.current().index) + " ";
}

void install_fault_handler(MachineState* its_machine) {
  machine = its_machine;
  static std::byte stack[64 * 1024];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  // Once: what the program has installed since then is its affair.
  static const bool installed = [&action] {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &previous[i]);
    return true;
  }();
  (void)installed;
}

}  // namespace vgpu

// What assert() calls when its condition does not hold, in place of the C library's, which ends the process:
// in a kernel, real GPUs stop the kernel instead.
extern "C" [[noreturn]] void __assert_fail(const char* assertion, const char* file, unsigned int line,
                                           const char* function) noexcept {
  const std::string sentence = std::string(file) + ":" + std::to_string(line) + ": " + function +
                               ": Assertion `" + assertion + "' failed.";
  if (vgpu::Block* block = vgpu::current_block())
    block->fault(vgpu::running_thread() + "failed an assertion: " + sentence, cudaErrorAssert);
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::abort();
}

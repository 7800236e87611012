#include "engine/kernel/fault_handler.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/hopper/caller_line.hpp"
#include "engine/host/program_end.hpp"
#include "engine/kernel/block.hpp"
#include "engine/runtime.hpp"

// The kernel's built-in variables; block.cpp defines them.
extern uint3 threadIdx;
extern uint3 blockIdx;

namespace vgpu {
namespace {

const void* fault_address = nullptr;
const void* fault_instruction = nullptr;

std::string position(const uint3& p) {
  return "(" + std::to_string(p.x) + "," + std::to_string(p.y) + "," + std::to_string(p.z) + ")";
}

/// "kernel 'k', block (0,0,0), thread (1,0,0) ": which thread runs.
std::string who() {
  return "kernel '" + current_block()->grid().name + "', block " + position(blockIdx) + ", thread " +
         position(threadIdx) + " ";
}
/// Runs in place of the kernel's code after the handler has returned.
void abandon_block() {
  Block& block = *current_block();
  const std::string what =
      block.current().fiber->overflows_at(fault_address)
          ? "has used up its stack: the recursion is too deep, or local arrays are too large"
          : "accessed memory that is not there" + at_line(fault_instruction) + ": " +
                runtime().memory().locate(fault_address);
  block.fault(who() + what, cudaErrorIllegalAddress);
}

/// Ends the program if the address is in memory that is registered, but no longer the program's: an operation
/// needed it. Elsewhere such a fault is one of the program's own.
void explain_freed_memory(const void* address) {
  Runtime* started = runtime_if_started();
  const Allocation* memory = started == nullptr ? nullptr : started->memory().find(address);
  if (memory == nullptr || memory->kind != MemoryKind::kRegistered) return;
  std::fprintf(stderr,
               "virtual GPUs: memory is not there any more, %s: it was freed before cudaHostUnregister",
               started->memory().locate(address).c_str());
  for (const auto& device : started->devices()) {
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

void handle(int signal, siginfo_t* information, void* context) {
  if (current_block() != nullptr) {
    fault_address = information->si_addr;
#ifdef __x86_64__
    // Continue in abandon_block() on the thread's own stack, as if it had just been called there. Whatever
    // the stack held is given up, so its top will do; this also serves a stack that overflowed.
    auto* machine_context = &static_cast<ucontext_t*>(context)->uc_mcontext;
    // at_line() takes a return address, which is behind the instruction's first byte.
    fault_instruction = reinterpret_cast<const char*>(machine_context->gregs[REG_RIP]) + 1;
    const auto top = reinterpret_cast<std::uintptr_t>(current_block()->current().fiber->stack_top);
    machine_context->gregs[REG_RSP] = static_cast<greg_t>(top - sizeof(void*));
    machine_context->gregs[REG_RIP] = reinterpret_cast<greg_t>(&abandon_block);
    return;
#else
    (void)context;
    const std::string sentence = "virtual GPUs: a kernel accessed memory that is not there: " +
                                 runtime().memory().locate(fault_address) + "\n";
    (void)!write(STDERR_FILENO, sentence.data(), sentence.size());
    _exit(2);
#endif
  }
  explain_freed_memory(information->si_addr);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);  // the access is repeated and ends the program
}

}  // namespace

void install_fault_handler() {
  static std::byte stack[64 * 1024];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace vgpu

// What assert() calls when its condition does not hold, in place of the C library's, which ends the process:
// in a kernel, real GPUs stop the kernel instead.
extern "C" [[noreturn]] void __assert_fail(const char* assertion, const char* file, unsigned int line,
                                           const char* function) noexcept {
  const std::string sentence = std::string(file) + ":" + std::to_string(line) + ": " + function +
                               ": Assertion `" + assertion + "' failed.";
  if (vgpu::Block* block = vgpu::current_block())
    block->fault(vgpu::who() + "found that an assertion does not hold: " + sentence, cudaErrorAssert);
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::abort();
}

namespace {

// What -fsanitize=alignment passes on (the interface of GCC and Clang).
struct SourceLocation {
  const char* file;
  std::uint32_t line, column;
};
struct TypeDescriptor {
  std::uint16_t kind, information;
  char name[];
};
struct TypeMismatch {
  SourceLocation location;
  const TypeDescriptor* type;
  unsigned char log_alignment, access;
};

}  // namespace

// What -fsanitize=alignment calls before an access whose address does not fit its type. In a kernel this is
// the error that it is on real GPUs. Host code may do it: these processors can.
extern "C" void __ubsan_handle_type_mismatch_v1(const TypeMismatch* mismatch, std::uintptr_t address) {
  vgpu::Block* block = vgpu::current_block();
  const std::uintptr_t alignment = std::uintptr_t{1} << mismatch->log_alignment;
  if (block == nullptr || address % alignment == 0) return;
  const SourceLocation& where = mismatch->location;
  block->fault(vgpu::who() + "accessed a " + mismatch->type->name + " whose address is no multiple of " +
                   std::to_string(alignment) + ", at " + where.file + ":" + std::to_string(where.line) +
                   ", " + vgpu::runtime().memory().locate(reinterpret_cast<const void*>(address)),
               cudaErrorMisalignedAddress);
}

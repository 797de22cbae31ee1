// Fibers: a stack each, and a switch that saves what the ABI says a call preserves. No system call is made.
#ifndef CUTEMPLATE_HOST_FIBER_H
#define CUTEMPLATE_HOST_FIBER_H

#include "state.h"

#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_BOUNDS
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" void cutemplate_host_switch(void **save, void *load);

#if defined(__x86_64__)
// System V ABI, section 3.2.1: rbx, rbp and r12 to r15 belong to the caller. The floating-point control words do too,
// and a kernel has no way to change them.
asm(R"(
.text
.globl cutemplate_host_switch
.type cutemplate_host_switch, @function
cutemplate_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cutemplate_host_switch, .-cutemplate_host_switch
)");
#elif defined(__aarch64__)
// Procedure call standard, section 6.1: x19 to x30 and the low halves of v8 to v15 belong to the caller.
asm(R"(
.text
.globl cutemplate_host_switch
.type cutemplate_host_switch, %function
cutemplate_host_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size cutemplate_host_switch, .-cutemplate_host_switch
)");
#else
#error "the executor switches fibers on x86-64 and aarch64"
#endif

namespace cutemplate_host {

struct Fiber {
  void *sp = nullptr;
  unsigned char *low = nullptr, *high = nullptr;  // the usable stack
  void *fake_stack = nullptr;                     // AddressSanitizer's
  Fiber *next = nullptr;
};

constexpr size_t stack_bytes = 256 * 1024;
constexpr size_t guard_bytes = 64 * 1024;  // more than one page: a large frame must not step over it

inline Fiber *running;

inline void switch_to(Fiber *to) {
  Fiber *from = running;
  running = to;
#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_BOUNDS
  __sanitizer_start_switch_fiber(&from->fake_stack, to->low, size_t(to->high - to->low));
#endif
  cutemplate_host_switch(&from->sp, to->sp);
#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_BOUNDS
  __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
#endif
}

// Gives the fiber a stack whose first switch enters `body`, which never returns.
inline void make_fiber(Fiber *fiber, size_t index, void (*body)()) {
  auto *memory = static_cast<unsigned char *>(map_memory(stack_bytes + guard_bytes, MAP_PRIVATE | MAP_STACK));
  mprotect(memory, guard_bytes, PROT_NONE);
  fiber->low = memory + guard_bytes;
  fiber->high = fiber->low + stack_bytes;
  // Stacks that all start at the same place of a page would share a few cache sets.
  auto *top = reinterpret_cast<void **>(fiber->high - 256 - 320 * (index % 48));
#if defined(__x86_64__)
  *--top = nullptr;  // where `body` would return to; keeps the stack misaligned by 8 as after a call
  *--top = reinterpret_cast<void *>(body);
  top -= 6;
#else
  top -= 20;
  top[11] = reinterpret_cast<void *>(body);  // x30
#endif
  fiber->sp = top;
}

}  // namespace cutemplate_host

#endif  // CUTEMPLATE_HOST_FIBER_H

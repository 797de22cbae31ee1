// The functions that an instrumented kernel calls before each load and store.
//
// *Bounds* compiles with AddressSanitizer, which checks by calls (instrumentation threshold 0); the linker sends those
// calls here first (`--wrap`), where tensors and shared variables are checked to the element, and the rest (registers,
// that is, arrays on the stack) is left to AddressSanitizer's own 8-byte granules. *Races* compiles with the
// instrumentation of ThreadSanitizer and supplies its runtime here: which accesses are ordered is CUDA's to say, every
// access is remembered, and no address space layout or thread limit is asked for.
#ifndef CUTEMPLATE_HOST_HOOKS_H
#define CUTEMPLATE_HOST_HOOKS_H

#include "memory.h"

#define CUTEMPLATE_HOST_ACCESS(ADDRESS, SIZE, FLAGS)                                                        \
  cutemplate_host::on_access({reinterpret_cast<uint64_t>(ADDRESS), uint64_t(SIZE), FLAGS,                   \
                              reinterpret_cast<uint64_t>(__builtin_return_address(0)), __builtin_frame_address(0)})

// Every mode compiles with the check of alignment alone of UndefinedBehaviorSanitizer's checks of pointers, which calls this
// where it fails. Bounds links the sanitizer's own runtime, whose function of this name is passed by.
#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_BOUNDS
#define CUTEMPLATE_HOST_TYPE_MISMATCH __wrap___ubsan_handle_type_mismatch_v1
#else
#define CUTEMPLATE_HOST_TYPE_MISMATCH __ubsan_handle_type_mismatch_v1
#endif

namespace cutemplate_host {

// What compilers pass (compiler-rt, "ubsan_handlers.h").
struct TypeMismatch {
  char const *file;
  uint32_t line, column;
  struct Type { uint16_t kind, info; char name[1]; } const *type;
  uint8_t log_alignment, check;  // a check of 1 is one of a store
};

}  // namespace cutemplate_host

extern "C" void CUTEMPLATE_HOST_TYPE_MISMATCH(cutemplate_host::TypeMismatch const *what, void *address) {
  using namespace cutemplate_host;
  report_access(misaligned, {reinterpret_cast<uint64_t>(address), uint64_t(1) << what->log_alignment,
                             what->check == 1 ? uint32_t(is_write) : 0,
                             reinterpret_cast<uint64_t>(__builtin_return_address(0)), __builtin_frame_address(0)});
}

#if CUTEMPLATE_HOST_MODE != CUTEMPLATE_HOST_PLAIN

// Copies and fills are library calls, which no compiler instruments.
extern "C" {
void *__real_memcpy(void *, void const *, size_t);
void *__real_memmove(void *, void const *, size_t);
void *__real_memset(void *, int, size_t);

void *__wrap_memcpy(void *to, void const *from, size_t bytes) {
  CUTEMPLATE_HOST_ACCESS(from, bytes, 0);
  CUTEMPLATE_HOST_ACCESS(to, bytes, cutemplate_host::is_write);
  return __real_memcpy(to, from, bytes);
}
void *__wrap_memmove(void *to, void const *from, size_t bytes) {
  CUTEMPLATE_HOST_ACCESS(from, bytes, 0);
  CUTEMPLATE_HOST_ACCESS(to, bytes, cutemplate_host::is_write);
  return __real_memmove(to, from, bytes);
}
void *__wrap_memset(void *to, int value, size_t bytes) {
  CUTEMPLATE_HOST_ACCESS(to, bytes, cutemplate_host::is_write);
  return __real_memset(to, value, bytes);
}
}

#endif

#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_BOUNDS

#include <sanitizer/asan_interface.h>

extern "C" {

#define CUTEMPLATE_HOST_HOOK(SIZE)                                     \
  void __real___asan_load##SIZE(void *);                               \
  void __real___asan_store##SIZE(void *);                              \
  void __wrap___asan_load##SIZE(void *address) {                       \
    CUTEMPLATE_HOST_ACCESS(address, SIZE, 0);                          \
    __real___asan_load##SIZE(address);                                 \
  }                                                                    \
  void __wrap___asan_store##SIZE(void *address) {                      \
    CUTEMPLATE_HOST_ACCESS(address, SIZE, cutemplate_host::is_write);  \
    __real___asan_store##SIZE(address);                                \
  }
CUTEMPLATE_HOST_HOOK(1)
CUTEMPLATE_HOST_HOOK(2)
CUTEMPLATE_HOST_HOOK(4)
CUTEMPLATE_HOST_HOOK(8)
CUTEMPLATE_HOST_HOOK(16)
#undef CUTEMPLATE_HOST_HOOK

void __real___asan_loadN(void *, size_t);
void __real___asan_storeN(void *, size_t);
void __wrap___asan_loadN(void *address, size_t bytes) {
  CUTEMPLATE_HOST_ACCESS(address, bytes, 0);
  __real___asan_loadN(address, bytes);
}
void __wrap___asan_storeN(void *address, size_t bytes) {
  CUTEMPLATE_HOST_ACCESS(address, bytes, cutemplate_host::is_write);
  __real___asan_storeN(address, bytes);
}

char const *__asan_default_options() {
  // Signals are the runner's: it knows block and thread. Source lines are found later, from the addresses.
  return "detect_leaks=0:detect_stack_use_after_return=0:symbolize=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:"
         "handle_sigill=0:handle_abort=0:use_sigaltstack=0:exitcode=3";
}

char const *__ubsan_default_options() { return "print_stacktrace=0:symbolize=0"; }

// AddressSanitizer has found something, and is about to print it and end the process.
void __asan_on_error() {
  using namespace cutemplate_host;
  in_kernel = false;
  if (Finding *finding = new_finding(address_error)) {
    take_frames(finding, reinterpret_cast<uint64_t>(__asan_get_report_pc()), __asan_get_report_bp());
    locate(finding, reinterpret_cast<uint64_t>(__asan_get_report_address()));
    finding->size = __asan_get_report_access_size();
    finding->flags = __asan_get_report_access_type() != 0 ? uint32_t(is_write) : 0;
    std::snprintf(finding->text, sizeof finding->text, "%s", __asan_get_report_description());
  }
  __atomic_store_n(&verdicts->stop, 1, __ATOMIC_RELAXED);
}

void __ubsan_get_current_report_data(char const **kind, char const **message, char const **file, unsigned *line,
                                     unsigned *column, char **address);

// UndefinedBehaviorSanitizer has found something, prints it and goes on. It reports each place once.
void __ubsan_on_report() {
  using namespace cutemplate_host;
  char const *kind = "", *message = "", *file = "";
  unsigned line = 0, column = 0;
  char *address = nullptr;
  __ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &address);
  if (Finding *finding = new_finding(undefined)) {
    std::snprintf(finding->text, sizeof finding->text, "%s", message);
    std::snprintf(finding->file, sizeof finding->file, "%s", file);
    finding->line = line;
  }
}

}  // extern "C"

#elif CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_RACES

extern "C" {

#define CUTEMPLATE_HOST_HOOK(NAME, SIZE, FLAGS) \
  void __tsan_##NAME##SIZE(void *address) { CUTEMPLATE_HOST_ACCESS(address, SIZE, FLAGS); }
#define CUTEMPLATE_HOST_HOOKS(SIZE)                                      \
  CUTEMPLATE_HOST_HOOK(read, SIZE, 0)                                    \
  CUTEMPLATE_HOST_HOOK(write, SIZE, cutemplate_host::is_write)           \
  CUTEMPLATE_HOST_HOOK(unaligned_read, SIZE, 0)                          \
  CUTEMPLATE_HOST_HOOK(unaligned_write, SIZE, cutemplate_host::is_write) \
  CUTEMPLATE_HOST_HOOK(volatile_read, SIZE, 0)                           \
  CUTEMPLATE_HOST_HOOK(volatile_write, SIZE, cutemplate_host::is_write)
CUTEMPLATE_HOST_HOOKS(1)
CUTEMPLATE_HOST_HOOKS(2)
CUTEMPLATE_HOST_HOOKS(4)
CUTEMPLATE_HOST_HOOKS(8)
CUTEMPLATE_HOST_HOOKS(16)
#undef CUTEMPLATE_HOST_HOOKS
#undef CUTEMPLATE_HOST_HOOK

void __tsan_read_range(void *address, size_t bytes) { CUTEMPLATE_HOST_ACCESS(address, bytes, 0); }
void __tsan_write_range(void *address, size_t bytes) {
  CUTEMPLATE_HOST_ACCESS(address, bytes, cutemplate_host::is_write);
}
void __tsan_vptr_read(void **) {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_init() {}

// Clang's names for copies and fills.
void *__tsan_memcpy(void *to, void const *from, size_t bytes) { return __wrap_memcpy(to, from, bytes); }
void *__tsan_memmove(void *to, void const *from, size_t bytes) { return __wrap_memmove(to, from, bytes); }
void *__tsan_memset(void *to, int value, size_t bytes) { return __wrap_memset(to, value, bytes); }

}  // extern "C"

#include "tsan_atomics.h"

#endif

#endif  // CUTEMPLATE_HOST_HOOKS_H

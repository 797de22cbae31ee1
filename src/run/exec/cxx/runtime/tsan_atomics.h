// What ThreadSanitizer's instrumentation makes of the compiler's atomic builtins, such as those of cuda::std::atomic.
#ifndef CUTEMPLATE_HOST_TSAN_ATOMICS_H
#define CUTEMPLATE_HOST_TSAN_ATOMICS_H

#include "hooks.h"

extern "C" {

#define CUTEMPLATE_HOST_FETCH(NAME, BITS, T)                                                                     \
  T __tsan_atomic##BITS##_fetch_##NAME(T volatile *address, T value, int) {                                      \
    CUTEMPLATE_HOST_ACCESS(address, sizeof(T), cutemplate_host::is_write | cutemplate_host::is_atomic);          \
    return __atomic_fetch_##NAME(address, value, __ATOMIC_SEQ_CST);                                              \
  }
#define CUTEMPLATE_HOST_EXCHANGE_IF(NAME, BITS, T, WEAK)                                                         \
  int __tsan_atomic##BITS##_compare_exchange_##NAME(T volatile *address, T *expected, T value, int, int) {       \
    CUTEMPLATE_HOST_ACCESS(address, sizeof(T), cutemplate_host::is_write | cutemplate_host::is_atomic);          \
    return __atomic_compare_exchange_n(address, expected, value, WEAK, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
  }
#define CUTEMPLATE_HOST_ATOMICS(BITS, T)                                                                         \
  T __tsan_atomic##BITS##_load(T const volatile *address, int) {                                                 \
    CUTEMPLATE_HOST_ACCESS(address, sizeof(T), cutemplate_host::is_atomic);                                      \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                                           \
  }                                                                                                              \
  void __tsan_atomic##BITS##_store(T volatile *address, T value, int) {                                          \
    CUTEMPLATE_HOST_ACCESS(address, sizeof(T), cutemplate_host::is_write | cutemplate_host::is_atomic);          \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                          \
  }                                                                                                              \
  T __tsan_atomic##BITS##_exchange(T volatile *address, T value, int) {                                          \
    CUTEMPLATE_HOST_ACCESS(address, sizeof(T), cutemplate_host::is_write | cutemplate_host::is_atomic);          \
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);                                                \
  }                                                                                                              \
  CUTEMPLATE_HOST_FETCH(add, BITS, T)                                                                            \
  CUTEMPLATE_HOST_FETCH(sub, BITS, T)                                                                            \
  CUTEMPLATE_HOST_FETCH(and, BITS, T)                                                                            \
  CUTEMPLATE_HOST_FETCH(or, BITS, T)                                                                             \
  CUTEMPLATE_HOST_FETCH(xor, BITS, T)                                                                            \
  CUTEMPLATE_HOST_FETCH(nand, BITS, T)                                                                           \
  CUTEMPLATE_HOST_EXCHANGE_IF(strong, BITS, T, false)                                                            \
  CUTEMPLATE_HOST_EXCHANGE_IF(weak, BITS, T, true)                                                               \
  T __tsan_atomic##BITS##_compare_exchange_val(T volatile *address, T expected, T value, int, int) {             \
    CUTEMPLATE_HOST_ACCESS(address, sizeof(T), cutemplate_host::is_write | cutemplate_host::is_atomic);          \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
    return expected;                                                                                             \
  }
CUTEMPLATE_HOST_ATOMICS(8, uint8_t)
CUTEMPLATE_HOST_ATOMICS(16, uint16_t)
CUTEMPLATE_HOST_ATOMICS(32, uint32_t)
CUTEMPLATE_HOST_ATOMICS(64, uint64_t)
#undef CUTEMPLATE_HOST_ATOMICS
#undef CUTEMPLATE_HOST_EXCHANGE_IF
#undef CUTEMPLATE_HOST_FETCH

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

}  // extern "C"

#endif  // CUTEMPLATE_HOST_TSAN_ATOMICS_H

// CUDA C++ as a host compiler sees it: the qualifiers, the built-in variables and the device functions of a kernel.
//
// This header is put ahead of a kernel's text (`-include`), and the text itself is compiled as it stands. What a thread
// block has to agree on (barriers, warp intrinsics), what it shares with others (atomics) and what goes on beside it
// (asynchronous copies) is done by the executor, behind the functions declared first. Meanings follow the CUDA C++ Programming Guide, "C++ Language Extensions".
#ifndef CUTEMPLATE_HOST_SHIM_H
#define CUTEMPLATE_HOST_SHIM_H

#include <device_launch_parameters.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

// One process runs one block at a time, so a thread-local variable of the process is a variable of the block. It has
// static storage in a function, and may be declared `extern` without a size: both are forms that `__shared__` has.
#undef __shared__
#define __shared__ thread_local

// Promises to nvcc that change nothing that a kernel computes.
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __maxnreg__
#define __maxnreg__(...)

#define CUTEMPLATE_HOST_SITE char const *file = __builtin_FILE(), int line = __builtin_LINE()

extern "C" {
// Waits for every thread of the block; `op` says what is made of the predicates.
int cutemplate_host_barrier(int op, int predicate, char const *file, int line);
// Waits for every lane in `mask`, then gives what `op` makes of the lanes' values.
uint64_t cutemplate_host_warp(int op, unsigned mask, uint64_t value, int argument, int width, char const *file,
                              int line);
// An atomic operation on 4 or 8 bytes; gives the old value.
uint64_t cutemplate_host_atomic(int op, int type, void *address, uint64_t value, uint64_t compare);
// Lets other threads of the block run.
void cutemplate_host_yield();
// An asynchronous copy of `bytes`, of which the first `read` are read and the others zero; the end of a group; waiting
// until no more than `pending` groups are left.
void cutemplate_host_cp_async(void *to, void const *from, unsigned bytes, unsigned read);
void cutemplate_host_cp_async_commit();
void cutemplate_host_cp_async_wait(unsigned pending);
// Ends the kernel with a verdict.
[[noreturn]] void cutemplate_host_trap(char const *file, int line);
// Lanes of the warp that have not returned.
unsigned cutemplate_host_active_lanes();
}

// ---------------------------------------------------------------------------------------------------------------------
// Synchronization
// ---------------------------------------------------------------------------------------------------------------------

inline void __syncthreads(CUTEMPLATE_HOST_SITE) { cutemplate_host_barrier(0, 0, file, line); }
inline int __syncthreads_count(int p, CUTEMPLATE_HOST_SITE) { return cutemplate_host_barrier(1, p, file, line); }
inline int __syncthreads_and(int p, CUTEMPLATE_HOST_SITE) { return cutemplate_host_barrier(2, p, file, line); }
inline int __syncthreads_or(int p, CUTEMPLATE_HOST_SITE) { return cutemplate_host_barrier(3, p, file, line); }

inline void __threadfence() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { cutemplate_host_yield(); }
[[noreturn]] inline void __trap(CUTEMPLATE_HOST_SITE) { cutemplate_host_trap(file, line); }

// ---------------------------------------------------------------------------------------------------------------------
// Warps
// ---------------------------------------------------------------------------------------------------------------------

namespace cutemplate_host {

enum WarpOp { sync, shfl_idx, shfl_up, shfl_down, shfl_xor, ballot, all, any, match_any, match_all,
              add_u32, min_u32, max_u32, min_i32, max_i32, and_b32, or_b32, xor_b32 };

template <class T>
uint64_t to_bits(T value) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "a value of at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace cutemplate_host

inline void __syncwarp(unsigned mask = 0xffffffffu, CUTEMPLATE_HOST_SITE) {
  cutemplate_host_warp(cutemplate_host::sync, mask, 0, 0, 32, file, line);
}

#define CUTEMPLATE_HOST_SHFL(NAME, OP)                                                                                \
  template <class T>                                                                                                  \
  T NAME(unsigned mask, T value, int argument, int width = 32, CUTEMPLATE_HOST_SITE) {                                \
    return cutemplate_host::from_bits<T>(cutemplate_host_warp(                                                        \
        cutemplate_host::OP, mask, cutemplate_host::to_bits(value), argument, width, file, line));                    \
  }
CUTEMPLATE_HOST_SHFL(__shfl_sync, shfl_idx)
CUTEMPLATE_HOST_SHFL(__shfl_up_sync, shfl_up)
CUTEMPLATE_HOST_SHFL(__shfl_down_sync, shfl_down)
CUTEMPLATE_HOST_SHFL(__shfl_xor_sync, shfl_xor)
#undef CUTEMPLATE_HOST_SHFL

#define CUTEMPLATE_HOST_VOTE(RETURN, NAME, OP, ARGUMENT)                                                              \
  inline RETURN NAME(unsigned mask, ARGUMENT value, CUTEMPLATE_HOST_SITE) {                                           \
    uint64_t const bits = cutemplate_host::to_bits(value);                                                            \
    return RETURN(cutemplate_host_warp(cutemplate_host::OP, mask, bits, 0, 32, file, line));                          \
  }
CUTEMPLATE_HOST_VOTE(unsigned, __ballot_sync, ballot, int)
CUTEMPLATE_HOST_VOTE(int, __all_sync, all, int)
CUTEMPLATE_HOST_VOTE(int, __any_sync, any, int)
CUTEMPLATE_HOST_VOTE(unsigned, __reduce_add_sync, add_u32, unsigned)
CUTEMPLATE_HOST_VOTE(int, __reduce_add_sync, add_u32, int)
CUTEMPLATE_HOST_VOTE(unsigned, __reduce_min_sync, min_u32, unsigned)
CUTEMPLATE_HOST_VOTE(int, __reduce_min_sync, min_i32, int)
CUTEMPLATE_HOST_VOTE(unsigned, __reduce_max_sync, max_u32, unsigned)
CUTEMPLATE_HOST_VOTE(int, __reduce_max_sync, max_i32, int)
CUTEMPLATE_HOST_VOTE(unsigned, __reduce_and_sync, and_b32, unsigned)
CUTEMPLATE_HOST_VOTE(unsigned, __reduce_or_sync, or_b32, unsigned)
CUTEMPLATE_HOST_VOTE(unsigned, __reduce_xor_sync, xor_b32, unsigned)
#undef CUTEMPLATE_HOST_VOTE

template <class T>
unsigned __match_any_sync(unsigned mask, T value, CUTEMPLATE_HOST_SITE) {
  return unsigned(
      cutemplate_host_warp(cutemplate_host::match_any, mask, cutemplate_host::to_bits(value), 0, 32, file, line));
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int *equal, CUTEMPLATE_HOST_SITE) {
  unsigned const lanes = unsigned(
      cutemplate_host_warp(cutemplate_host::match_all, mask, cutemplate_host::to_bits(value), 0, 32, file, line));
  *equal = lanes != 0;
  return lanes;
}
inline unsigned __activemask() { return cutemplate_host_active_lanes(); }

// ---------------------------------------------------------------------------------------------------------------------
// Atomics
// ---------------------------------------------------------------------------------------------------------------------

namespace cutemplate_host {

enum AtomicOp { atomic_add, atomic_sub, atomic_exch, atomic_min, atomic_max, atomic_inc, atomic_dec, atomic_cas,
                atomic_and, atomic_or, atomic_xor };
enum AtomicType { type_i32, type_u32, type_i64, type_u64, type_f32, type_f64 };

template <class T>
constexpr int atomic_type() {
  static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "4 or 8 bytes");
  return std::is_floating_point<T>::value ? (sizeof(T) == 4 ? type_f32 : type_f64)
                                          : (sizeof(T) == 4 ? type_i32 : type_i64) + int(std::is_unsigned<T>::value);
}

}  // namespace cutemplate_host

#define CUTEMPLATE_HOST_ATOMIC(NAME, OP, T)                                                                           \
  inline T NAME(T *address, T value) {                                                                                \
    return cutemplate_host::from_bits<T>(cutemplate_host_atomic(                                                      \
        cutemplate_host::OP, cutemplate_host::atomic_type<T>(), address, cutemplate_host::to_bits(value), 0));        \
  }
#define CUTEMPLATE_HOST_ATOMIC_INTEGERS(NAME, OP)                                                                     \
  CUTEMPLATE_HOST_ATOMIC(NAME, OP, int)                                                                               \
  CUTEMPLATE_HOST_ATOMIC(NAME, OP, unsigned)                                                                          \
  CUTEMPLATE_HOST_ATOMIC(NAME, OP, long long)                                                                         \
  CUTEMPLATE_HOST_ATOMIC(NAME, OP, unsigned long long)
CUTEMPLATE_HOST_ATOMIC_INTEGERS(atomicAdd, atomic_add)
CUTEMPLATE_HOST_ATOMIC(atomicAdd, atomic_add, float)
CUTEMPLATE_HOST_ATOMIC(atomicAdd, atomic_add, double)
CUTEMPLATE_HOST_ATOMIC_INTEGERS(atomicSub, atomic_sub)
CUTEMPLATE_HOST_ATOMIC_INTEGERS(atomicExch, atomic_exch)
CUTEMPLATE_HOST_ATOMIC(atomicExch, atomic_exch, float)
CUTEMPLATE_HOST_ATOMIC_INTEGERS(atomicMin, atomic_min)
CUTEMPLATE_HOST_ATOMIC_INTEGERS(atomicMax, atomic_max)
CUTEMPLATE_HOST_ATOMIC_INTEGERS(atomicAnd, atomic_and)
CUTEMPLATE_HOST_ATOMIC_INTEGERS(atomicOr, atomic_or)
CUTEMPLATE_HOST_ATOMIC_INTEGERS(atomicXor, atomic_xor)
CUTEMPLATE_HOST_ATOMIC(atomicInc, atomic_inc, unsigned)
CUTEMPLATE_HOST_ATOMIC(atomicDec, atomic_dec, unsigned)
#undef CUTEMPLATE_HOST_ATOMIC_INTEGERS
#undef CUTEMPLATE_HOST_ATOMIC

#define CUTEMPLATE_HOST_CAS(T)                                                                                        \
  inline T atomicCAS(T *address, T compare, T value) {                                                                \
    return cutemplate_host::from_bits<T>(                                                                             \
        cutemplate_host_atomic(cutemplate_host::atomic_cas, cutemplate_host::atomic_type<T>(), address,               \
                               cutemplate_host::to_bits(value), cutemplate_host::to_bits(compare)));                  \
  }
CUTEMPLATE_HOST_CAS(int)
CUTEMPLATE_HOST_CAS(unsigned)
CUTEMPLATE_HOST_CAS(unsigned long long)
#undef CUTEMPLATE_HOST_CAS

#include "device_math.h"

#endif  // CUTEMPLATE_HOST_SHIM_H

// cp.async as the executor does it. This header is found ahead of CuTe's of the same name, whose operations are PTX, and
// gives what that one gives: the copy operations of SM80 and their groups.
#pragma once

#include <cute/config.hpp>

#include <cute/arch/copy.hpp>
#include <cute/numeric/integral_constant.hpp>

// The architecture has them: `copy(AutoCopyAsync{}, ..)` uses them here too.
#define CUTE_ARCH_CP_ASYNC_SM80_ENABLED

namespace cute {

// Sizes in bytes: those that an instruction copies (PTX ISA, "cp.async": cp-size, 16 only for .cg).
#define CUTEMPLATE_HOST_CP_ASYNC(NAME, LEGAL, PREDICATE, READ)                                        \
  template <class TS, class TD = TS>                                                                  \
  struct NAME {                                                                                       \
    using SRegisters = TS[1];                                                                         \
    using DRegisters = TD[1];                                                                         \
    static constexpr unsigned bytes = sizeof(TS);                                                     \
    static_assert(sizeof(TD) == bytes && (LEGAL), "one size, which cp.async has");                    \
    inline static void copy PREDICATE { cutemplate_host_cp_async(&to, &from, bytes, READ); }          \
  };
CUTEMPLATE_HOST_CP_ASYNC(SM80_CP_ASYNC_CACHEALWAYS, bytes == 4 || bytes == 8 || bytes == 16,
                         (TS const& from, TD& to), bytes)
CUTEMPLATE_HOST_CP_ASYNC(SM80_CP_ASYNC_CACHEGLOBAL, bytes == 16, (TS const& from, TD& to), bytes)
CUTEMPLATE_HOST_CP_ASYNC(SM80_CP_ASYNC_CACHEALWAYS_ZFILL, bytes == 4 || bytes == 8 || bytes == 16,
                         (TS const& from, TD& to, bool pred), pred ? bytes : 0)
CUTEMPLATE_HOST_CP_ASYNC(SM80_CP_ASYNC_CACHEGLOBAL_ZFILL, bytes == 16, (TS const& from, TD& to, bool pred),
                         pred ? bytes : 0)
#undef CUTEMPLATE_HOST_CP_ASYNC

// cp.async.commit_group
inline void cp_async_fence() { cutemplate_host_cp_async_commit(); }

// cp.async.wait_group N; for N = 0 cp.async.wait_all, which commits first.
template <int N>
inline void cp_async_wait() {
  if constexpr (N == 0) {
    cutemplate_host_cp_async_commit();
  }
  cutemplate_host_cp_async_wait(N);
}

template <int N>
inline void cp_async_wait(Int<N>) {
  cp_async_wait<N>();
}

}  // namespace cute

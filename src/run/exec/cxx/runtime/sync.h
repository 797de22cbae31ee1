// The functions behind the shim: barriers, warp intrinsics and atomics.
#ifndef CUTEMPLATE_HOST_SYNC_H
#define CUTEMPLATE_HOST_SYNC_H

#include "block.h"

namespace cutemplate_host {

// The numbers of the shim.
enum WarpOp { op_sync, op_shfl_idx, op_shfl_up, op_shfl_down, op_shfl_xor, op_ballot, op_all, op_any, op_match_any,
              op_match_all, op_add, op_min_u32, op_max_u32, op_min_i32, op_max_i32, op_and, op_or, op_xor };

// The lanes of a warp that exist and have not returned.
inline uint32_t live_lanes(uint32_t warp) {
  uint32_t live = 0;
  for (uint32_t lane = 0; lane < 32 && warp * 32 + lane < threads.size(); ++lane) {
    live |= uint32_t(threads[warp * 32 + lane].state != State::returned) << lane;
  }
  return live;
}

// The lane that a shuffle reads (CUDA C++ Programming Guide, "Warp Shuffle Functions").
inline int shuffle_source(int op, int lane, int argument, int width) {
  int const first = lane & ~(width - 1), last = first + width - 1;
  switch (op) {
    case op_shfl_idx: return first | (argument & (width - 1));
    case op_shfl_up: return lane - argument < first ? lane : lane - argument;
    case op_shfl_down: return lane + argument > last ? lane : lane + argument;
    default: return (lane ^ argument) > last ? lane : lane ^ argument;
  }
}

inline uint64_t reduce(int op, Thread const *lanes, uint32_t mask) {
  uint64_t total = 0;
  bool first = true;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) == 0) {
      continue;
    }
    auto const value = uint32_t(lanes[lane].value), so_far = uint32_t(total);
    switch (first ? -1 : op) {
      case -1: total = value; break;
      case op_add: total = so_far + value; break;
      case op_min_u32: total = std::min(so_far, value); break;
      case op_max_u32: total = std::max(so_far, value); break;
      case op_min_i32: total = uint32_t(std::min(int32_t(so_far), int32_t(value))); break;
      case op_max_i32: total = uint32_t(std::max(int32_t(so_far), int32_t(value))); break;
      case op_and: total = so_far & value; break;
      case op_or: total = so_far | value; break;
      default: total = so_far ^ value; break;
    }
    first = false;
  }
  return uint32_t(total);
}

// Lanes of `mask` whose value is that of `lane`.
inline uint32_t matching(Thread const *lanes, uint32_t mask, uint32_t lane) {
  uint32_t same = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    same |= uint32_t((mask >> i & 1) != 0 && lanes[i].value == lanes[lane].value) << i;
  }
  return same;
}

inline uint64_t warp_result(Thread const *lanes, uint32_t mask, uint32_t lane, uint32_t votes) {
  Thread const &t = lanes[lane];
  switch (t.op) {
    case op_sync: return 0;
    case op_shfl_idx: case op_shfl_up: case op_shfl_down: case op_shfl_xor: {
      int const source = shuffle_source(t.op, int(lane), t.argument, t.width);
      // What a lane outside the mask holds is undefined: all ones is a NaN.
      return source >= 0 && (mask >> source & 1) != 0 ? lanes[source].value : ~uint64_t(0);
    }
    case op_ballot: return votes;
    case op_all: return votes == mask;
    case op_any: return votes != 0;
    case op_match_any: return matching(lanes, mask, lane);
    case op_match_all: return matching(lanes, mask, lane) == mask ? mask : 0;
    default: return reduce(t.op, lanes, mask);
  }
}

// Whether all lanes that `t` waits for have come to the same intrinsic.
inline bool warp_is_complete(Thread const *lanes, Thread const &t, uint32_t mask) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0) {
      Thread const &u = lanes[lane];
      if (u.state != State::at_warp || u.op != t.op || u.mask != t.mask) {
        return false;
      }
    }
  }
  return true;
}

// Lets go the lanes of a warp that wait for nobody any more.
inline void complete_warp(uint32_t warp) {
  Thread *lanes = &threads[warp * 32];
  uint32_t const live = live_lanes(warp);
  for (uint32_t first = 0; first < 32; ++first) {
    uint32_t const mask = (live >> first & 1) != 0 ? lanes[first].mask & live : 0;
    if (mask == 0 || lanes[first].state != State::at_warp || !warp_is_complete(lanes, lanes[first], mask)) {
      continue;
    }
    uint32_t votes = 0;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      votes |= uint32_t((mask >> lane & 1) != 0 && lanes[lane].value != 0) << lane;
    }
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) != 0) {
        lanes[lane].result = warp_result(lanes, mask, lane, votes);
      }
    }
    if (lanes[first].op == op_sync) {
      warp_passed(warp * 32, mask);
    }
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) != 0) {
        make_ready(&lanes[lane]);
      }
    }
  }
}

// A verdict about the call itself, after which the kernel means nothing.
[[noreturn]] inline void refuse(Kind kind, char const *text, char const *file, int line) {
  if (Finding *finding = new_finding(kind)) {
    std::snprintf(finding->text, sizeof finding->text, "%s", text);
    std::snprintf(finding->file, sizeof finding->file, "%s", file);
    finding->line = uint64_t(line);
  }
  stop_worker();
}

template <class T>
T bits_to(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// The numbers of the shim.
enum AtomicOp { do_add, do_sub, do_exch, do_min, do_max, do_inc, do_dec, do_cas, do_and, do_or, do_xor };

template <class T>
T apply(int op, T old, T value, T compare) {
  switch (op) {
    case do_add: return T(old + value);
    case do_sub: return T(old - value);
    case do_exch: return value;
    case do_min: return std::min(old, value);
    case do_max: return std::max(old, value);
    case do_inc: return old >= value ? T(0) : T(old + 1);
    case do_dec: return old == T(0) || old > value ? value : T(old - 1);
    default: return std::memcmp(&old, &compare, sizeof old) == 0 ? value : old;
  }
}

// `Bits` is the unsigned type of the same size: what the hardware compares and exchanges.
template <class T, class Bits>
uint64_t atomic(int op, void *address, uint64_t value, uint64_t compare) {
  auto *memory = static_cast<Bits *>(address);
  Bits old = __atomic_load_n(memory, __ATOMIC_RELAXED), fresh;
  do {
    switch (op) {
      case do_and: fresh = Bits(old & value); break;
      case do_or: fresh = Bits(old | value); break;
      case do_xor: fresh = Bits(old ^ value); break;
      default: fresh = Bits(to_bits(apply<T>(op, bits_to<T>(old), bits_to<T>(value), bits_to<T>(compare))));
    }
  } while (!__atomic_compare_exchange_n(memory, &old, fresh, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

}  // namespace cutemplate_host

extern "C" {

int cutemplate_host_barrier(int op, int predicate, char const *file, int line) {
  using namespace cutemplate_host;
  if (barrier.file == nullptr) {
    barrier.file = file;
    barrier.line = line;
    barrier.op = op;
  }
  barrier.diverged = barrier.diverged || barrier.line != line || std::strcmp(barrier.file, file) != 0;
  barrier.count += predicate != 0;
  current->file = file;
  current->line = line;
  current->mask = 0;
  uint64_t const phase = barrier.phase;
  current->state = State::at_barrier;
  if (++barrier.arrived == threads.size()) {
    if (barrier.diverged) {
      report_deadlock();
    }
    release_barrier();
  }
  suspend();
  return barrier.result[phase & 1];
}

uint64_t cutemplate_host_warp(int op, unsigned mask, uint64_t value, int argument, int width, char const *file,
                              int line) {
  using namespace cutemplate_host;
  uint32_t const number = thread_number(current);
  if ((mask >> number % 32 & 1) == 0) {
    refuse(undefined, "the mask of a warp intrinsic does not name the lane that calls it", file, line);
  }
  if (width < 1 || width > 32 || (width & (width - 1)) != 0) {
    refuse(undefined, "the width of a shuffle is not a power of two up to 32", file, line);
  }
  current->state = State::at_warp;
  current->op = op;
  current->mask = mask;
  current->value = value;
  current->argument = argument;
  current->width = width;
  current->file = file;
  current->line = line;
  complete_warp(number / 32);
  suspend();
  return current->result;
}

uint64_t cutemplate_host_atomic(int op, int type, void *address, uint64_t value, uint64_t compare) {
  using namespace cutemplate_host;
  enum { type_i32, type_u32, type_i64, type_u64, type_f32, type_f64 };
  bool const wide = type == type_i64 || type == type_u64 || type == type_f64;
#if CUTEMPLATE_HOST_MODE != CUTEMPLATE_HOST_PLAIN
  on_access({reinterpret_cast<uint64_t>(address), wide ? 8u : 4u, is_write | is_atomic,
             reinterpret_cast<uint64_t>(__builtin_return_address(0)), __builtin_frame_address(0)});
#endif
  if (reinterpret_cast<uint64_t>(address) % (wide ? 8 : 4) != 0) {
    refuse(address_error, "the address of an atomic is not a multiple of its size", "", 0);
  }
  switch (type) {
    case type_i32: return atomic<int32_t, uint32_t>(op, address, value, compare);
    case type_u32: return atomic<uint32_t, uint32_t>(op, address, value, compare);
    case type_i64: return atomic<int64_t, uint64_t>(op, address, value, compare);
    case type_u64: return atomic<uint64_t, uint64_t>(op, address, value, compare);
    case type_f32: return atomic<float, uint32_t>(op, address, value, compare);
    default: return atomic<double, uint64_t>(op, address, value, compare);
  }
}

void cutemplate_host_yield() {
  cutemplate_host::make_ready(cutemplate_host::current);
  cutemplate_host::suspend();
}

void cutemplate_host_trap(char const *file, int line) {
  cutemplate_host::refuse(cutemplate_host::trap, "the kernel called __trap", file, line);
}

unsigned cutemplate_host_active_lanes() {
  using namespace cutemplate_host;
  return live_lanes(thread_number(current) / 32);
}

}  // extern "C"

#endif  // CUTEMPLATE_HOST_SYNC_H

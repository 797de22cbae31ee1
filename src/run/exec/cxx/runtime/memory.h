// What a kernel may touch: the elements of its tensors and its shared variables, and nothing between or behind them.
#ifndef CUTEMPLATE_HOST_MEMORY_H
#define CUTEMPLATE_HOST_MEMORY_H

#include <algorithm>
#include <cstring>

#include "fiber.h"

namespace cutemplate_host {

// The bytes of shared memory that hold variables: [first shared byte, behind the last).
inline unsigned char *shared_base() { return cutemplate_host_shared_begin; }
inline uint64_t shared_bytes() { return uint64_t(cutemplate_host_shared_end - cutemplate_host_shared_begin); }

// Fills memory that a block must write before it reads: all ones is a NaN in every floating-point format.
inline void forget_shared_memory() {
  std::memset(shared_base(), 0xff, shared_bytes());
  std::memset(cutemplate_host_dynamic, 0xff, job.launch().dynamic_bytes);
}

// The return addresses from `pc` outwards, by the chain of frame pointers.
template <class T>
void take_frames(T *to, uint64_t pc, void const *frame) {
  to->pcs[0] = pc;
  to->frames = 1;
  auto at = reinterpret_cast<uint64_t>(frame);
  auto const low = reinterpret_cast<uint64_t>(running->low), high = reinterpret_cast<uint64_t>(running->high);
  while (to->frames < max_frames) {
    if (at < low || at + 16 > high || at % 8 != 0) {
      return;
    }
    auto const *words = reinterpret_cast<uint64_t const *>(at);
    if (words[1] == 0 || words[0] <= at) {
      return;
    }
    // The first word pair may be the frame that `pc` was taken from.
    if (words[1] != pc) {
      to->pcs[to->frames++] = words[1];
    }
    at = words[0];
  }
}

// Where an address lies, and how far from the start of that.
struct Place {
  Space space;
  uint64_t offset;
};

inline Place place_of(uint64_t address) {
  uint64_t offset = address - reinterpret_cast<uint64_t>(arena);
  if (offset < job.arena_bytes) {
    return {arena_space, offset};
  }
  offset = address - reinterpret_cast<uint64_t>(shared_base());
  if (offset < shared_bytes()) {
    return {shared_space, offset};
  }
  offset = address - reinterpret_cast<uint64_t>(cutemplate_host_dynamic);
  if (offset < cutemplate_host_dynamic_size) {
    return {dynamic_space, offset};
  }
  return {nowhere, address};
}

// Says where an address lies, as far as the job knows it.
inline void locate(Finding *finding, uint64_t address) {
  Place const place = place_of(address);
  finding->space = place.space;
  finding->offset = int64_t(place.offset);
}

// Where and when a thread issued an asynchronous copy: the phase, and what it had seen of the lanes of its warp. Only mode
// races looks at it afterwards.
struct Issue {
#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_RACES
  uint64_t pcs[max_frames];
  uint32_t frames, phase, seen[32];
#endif
};

struct Access {
  uint64_t address, size;
  uint32_t flags;
  uint64_t pc;
  void const *frame;
  Issue const *issue = nullptr;  // of an asynchronous copy that ends now
};

struct Other {
  uint64_t block, thread, pc;
  bool write, atomic;
};

// Whether two findings are the same thing at the same place of the kernel's text, called from the same places.
inline bool same_place(Finding const &a, Finding const &b) {
  return a.kind == b.kind && a.other_pc == b.other_pc && a.frames == b.frames &&
         std::equal(a.pcs, a.pcs + a.frames, b.pcs) && std::strcmp(a.text, b.text) == 0;
}

inline void take_site(Finding *finding, Access const &access) {
#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_RACES
  if (access.issue != nullptr) {
    finding->frames = access.issue->frames;
    std::copy(access.issue->pcs, access.issue->pcs + finding->frames, finding->pcs);
    return;
  }
#endif
  take_frames(finding, access.pc, access.frame);
}

// One verdict for each place: the first occurrence, and how many there were.
inline void report_access(Kind kind, Access const &access, Other const *other = nullptr, char const *text = "") {
  Finding found;
  found.kind = kind;
  found.launch = job.current;
  found.block = current_block;
  found.thread = current_thread;
  take_site(&found, access);
  std::snprintf(found.text, sizeof found.text, "%s", text);
  locate(&found, access.address);
  found.size = access.size;
  found.flags = access.flags;
  if (other != nullptr) {
    found.flags |= has_other;
    found.flags |= other->write ? uint32_t(other_is_write) : 0;
    found.flags |= other->atomic ? uint32_t(other_is_atomic) : 0;
    found.other_block = other->block;
    found.other_thread = other->thread;
    found.other_pc = other->pc;
  }
  uint32_t const known = std::min(verdicts->count, max_findings);
  for (uint32_t i = 0; i < known; ++i) {
    if (same_place(verdicts->findings[i], found)) {
      ++verdicts->findings[i].count;
      return;
    }
  }
  if (Finding *finding = new_finding(kind)) {
    *finding = found;
  }
}

// Whether all bytes of an access are elements of the tensor.
inline bool covers(Tensor const &t, uint64_t offset, uint64_t size) {
  uint64_t at = offset - t.offset, run = t.element_bytes;
  uint32_t outer = uint32_t(t.rank);
  // The innermost modes that lie side by side are one run of bytes.
  while (outer > 0 && t.stride[outer - 1] * t.element_bytes == run) {
    run *= t.shape[--outer];
  }
  // Each stride is larger than all offsets of the modes inside, so that the coordinate is unique.
  for (uint32_t i = 0; i < outer; ++i) {
    uint64_t const pitch = t.stride[i] * t.element_bytes, c = std::min(at / pitch, t.shape[i] - 1);
    at -= c * pitch;
  }
  return at < run && size <= run - at;
}

// Whether some tensor has these bytes as elements, and may be accessed so.
inline bool allowed(uint64_t offset, uint64_t size, bool write, bool *input) {
  for (Tensor const &t : job.tensors) {
    if (covers(t, offset, size)) {
      if (!write || t.writable) {
        return true;
      }
      *input = true;
    }
  }
  return false;
}

// Whether the kernel may do it; if not, says so, and at which byte of the access it begins.
inline bool check_arena(Access const &access) {
  uint64_t const offset = access.address - reinterpret_cast<uint64_t>(arena);
  bool const write = (access.flags & is_write) != 0;
  bool input = false;
  if (allowed(offset, access.size, write, &input)) {
    return true;
  }
  Access part = access;
  for (uint64_t i = 0; i < access.size; ++i) {
    input = false;
    if (!allowed(offset + i, 1, write, &input)) {
      part.address += i;
      break;
    }
  }
  report_access(input ? write_to_input : out_of_bounds, part);
  return false;
}

inline bool check_shared(Access const &access, uint64_t offset) {
  // The last variable that starts at or before the access.
  size_t low = 0, high = job.shared.size() / 2;
  while (low < high) {
    size_t const middle = (low + high) / 2;
    if (job.shared[2 * middle] <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low > 0 && offset + access.size <= job.shared[2 * low - 2] + job.shared[2 * low - 1]) {
    return true;
  }
  report_access(out_of_bounds, access);
  return false;
}

inline bool check_dynamic(Access const &access, uint64_t offset) {
  if (offset + access.size <= job.launch().dynamic_bytes) {
    return true;
  }
  report_access(out_of_bounds, access);
  return false;
}

}  // namespace cutemplate_host

#include "races.h"

namespace cutemplate_host {

// Whether an access hits what the kernel may touch; says so where it does not.
inline bool check_access(Place const &place, Access const &access) {
  switch (place.space) {
    case arena_space: return check_arena(access);
    case shared_space: return check_shared(access, place.offset);
    case dynamic_space: return check_dynamic(access, place.offset);
    default: return false;
  }
}

// Compares an access with those of other threads, and remembers it.
inline void race_access(Place const &place, Access const &access) {
  switch (place.space) {
    case arena_space: race_arena(access, place.offset); break;
    case shared_space: race_shared(access, place.offset); break;
    case dynamic_space: race_dynamic(access, place.offset); break;
    default: break;
  }
}

// Every load and store that a checked kernel makes comes by here.
inline void on_access(Access const &access) {
  if (!in_kernel || access.size == 0) {
    return;
  }
  last_access = access.pc;
  Place const place = place_of(access.address);
  if (check_access(place, access)) {
    race_access(place, access);
  }
}

}  // namespace cutemplate_host

#endif  // CUTEMPLATE_HOST_MEMORY_H

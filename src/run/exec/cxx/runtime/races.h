// Which accesses are ordered, as CUDA orders them, and which are a race.
//
// Two accesses of one element race where they come from different threads, at least one writes, not both are atomic,
// and nothing orders them. Threads of one block are ordered by the block's barriers, lanes of one warp by __syncwarp
// too; threads of different blocks are ordered by nothing while the kernel runs (CUDA C++ Programming Guide,
// "Synchronization Functions", "Memory Fence Functions"). Each element of an output, and each byte of shared memory
// and of the workspace, has a cell that remembers the last write and enough of the reads since to find a race with any later access.
// Hand-made ordering between blocks by atomics and fences is not modelled. Entries of one launch run one after the other,
// so each starts with cells that nobody has touched.
#ifndef CUTEMPLATE_HOST_RACES_H
#define CUTEMPLATE_HOST_RACES_H

#include <numeric>

#include "memory.h"

namespace cutemplate_host {

#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_RACES

constexpr uint16_t nobody = 0xffff;

// Blocks are numbered from 1 here, so that zeroed memory is a cell that nobody has touched.
struct Cell {
  struct {
    uint32_t block, phase, epoch, pc;
    uint16_t thread, atomic;
  } write;
  // Two reads of the last block that read, in one phase, by threads that nothing orders.
  struct {
    uint32_t block, phase, pc[2], epoch[2];
    uint16_t thread[2];
  } read;
  // A read of another block before that.
  struct {
    uint32_t block, pc;
    uint16_t thread, unused;
  } foreign;
};

inline std::vector<Cell *> region_cells;
inline std::vector<uint64_t> region_element;  // bytes that share a cell
inline Cell *shared_cells, *dynamic_cells;
// Which bytes of the workspace have been written, by whatever entry: the processes of all entries share it.
inline unsigned char *workspace_written;
inline uint32_t phase;  // barriers that the block has passed
// What each thread knows of the lanes of its warp: seen[thread][lane] is the last epoch of that lane that is ordered
// before what the thread does now.
inline std::vector<uint32_t> seen;

inline uint32_t epoch_of(uint64_t thread) { return seen[thread * 32 + thread % 32]; }

inline Cell *map_cells(uint64_t count) {
  return static_cast<Cell *>(map_memory(count * sizeof(Cell), MAP_PRIVATE));
}

inline void make_workspace_map() {
  for (Region const &region : job.regions) {
    if (region.owner == workspace) {
      workspace_written = static_cast<unsigned char *>(map_memory(region.bytes, MAP_SHARED));
    }
  }
}

inline void make_cells() {
  for (Region const &region : job.regions) {
    uint64_t element = 16;
    for (Tensor const &t : job.tensors) {
      if (&job.regions[t.region] == &region) {
        element = std::gcd(element, std::gcd(t.element_bytes, t.offset - region.offset));
      }
    }
    region_element.push_back(element);
    // What nobody may write cannot race.
    region_cells.push_back(region.owner != input ? map_cells(region.bytes / element + 1) : nullptr);
  }
  shared_cells = map_cells(shared_bytes() + 1);
  dynamic_cells = map_cells(job.launch().dynamic_bytes + 1);
  seen.assign(size_t(job.launch().threads()) * 32, 0);
}

inline void barrier_passed() { ++phase; }

inline void races_start_block() {
  phase = 0;
  std::fill(seen.begin(), seen.end(), 0);
  for (size_t thread = 0; thread < seen.size() / 32; ++thread) {
    seen[thread * 32 + thread % 32] = 1;
  }
}

// __syncwarp: what any of the lanes did before is ordered before what each of them does from now on.
inline void warp_passed(uint32_t first_thread, uint32_t lanes) {
  uint32_t joined[32] = {};
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; (lanes >> lane & 1) != 0 && i < 32; ++i) {
      joined[i] = std::max(joined[i], seen[(first_thread + lane) * 32 + i]);
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) != 0) {
      std::copy(joined, joined + 32, &seen[(first_thread + lane) * 32]);
      ++seen[(first_thread + lane) * 32 + lane];
    }
  }
}

// What the current thread knows at a moment: all that was done in earlier phases, and of each lane of its warp what was
// done up to an epoch.
struct Moment {
  uint32_t phase;
  uint32_t const *seen;

  // Whether something that a thread of this block did is ordered before it.
  bool follows(uint32_t then_phase, uint32_t then_epoch, uint32_t then_thread) const {
    return then_phase < phase || (then_thread / 32 == current_thread / 32 && seen[then_thread % 32] >= then_epoch);
  }
};

inline Moment now() { return {phase, &seen[current_thread * 32]}; }

// When an access begins: for an asynchronous copy, when it was issued.
inline Moment start_of(Access const &access) {
  return access.issue != nullptr ? Moment{access.issue->phase, access.issue->seen} : now();
}

// What the thread does from now on comes after the issue.
inline void note_issue(Issue *issue, uint64_t pc, void const *frame) {
  take_frames(issue, pc, frame);
  issue->phase = phase;
  uint32_t *const mine = &seen[current_thread * 32];
  std::copy(mine, mine + 32, issue->seen);
  ++mine[current_thread % 32];
}

inline uint32_t this_block() { return uint32_t(current_block) + 1; }

// Reports a race with the last write; whether there was one.
inline bool race_with_write(Cell const &cell, Access const &access) {
  auto const &w = cell.write;
  if (w.block == 0 || (w.atomic != 0 && (access.flags & is_atomic) != 0)) {
    return false;
  }
  if (w.block == this_block() && start_of(access).follows(w.phase, w.epoch, w.thread)) {
    return false;
  }
  Other const other{w.block - 1, w.thread, w.pc, true, w.atomic != 0};
  report_access(race, access, &other);
  return true;
}

// Reports a race with a read since; whether there was one.
inline bool race_with_reads(Cell const &cell, Access const &access) {
  if (cell.foreign.block != 0 && cell.foreign.block != this_block()) {
    Other const other{cell.foreign.block - 1, cell.foreign.thread, cell.foreign.pc, false, false};
    report_access(race, access, &other);
    return true;
  }
  auto const &r = cell.read;
  Moment const start = start_of(access);
  for (int i = 0; r.block != 0 && i < 2; ++i) {
    if (r.thread[i] != nobody && (r.block != this_block() || !start.follows(r.phase, r.epoch[i], r.thread[i]))) {
      Other const other{r.block - 1, r.thread[i], r.pc[i], false, false};
      report_access(race, access, &other);
      return true;
    }
  }
  return false;
}

inline void remember_read(Cell &cell, Access const &access) {
  auto &r = cell.read;
  auto const me = uint16_t(current_thread);
  uint32_t const epoch = epoch_of(current_thread);
  bool const same = r.block == this_block() && r.phase == phase;
  if (same && r.thread[0] != me && !now().follows(r.phase, r.epoch[0], r.thread[0])) {
    // Of the second reader, one in another warp says more: __syncwarp cannot order both before one thread.
    if (r.thread[1] == nobody || r.thread[1] / 32 == r.thread[0] / 32) {
      r.thread[1] = me;
      r.epoch[1] = epoch;
      r.pc[1] = uint32_t(access.pc);
    }
    return;
  }
  if (r.block != 0 && r.block != this_block()) {
    cell.foreign = {r.block, r.pc[0], r.thread[0], 0};
  }
  if (!same) {
    r.thread[1] = nobody;
  }
  r.block = this_block();
  r.phase = phase;
  r.pc[0] = uint32_t(access.pc);
  r.epoch[0] = epoch;
  r.thread[0] = me;
}

// What a block left in shared memory is gone when the next block comes; whether the access reads such a cell.
inline bool forget_other_blocks(Cell &cell, Access const &access) {
  bool const written = cell.write.block == this_block();
  if (!written) {
    cell.write = {};
  }
  if (cell.read.block != this_block()) {
    cell.read = {};
  }
  return !written && (access.flags & (is_write | is_atomic)) != is_write;
}

inline void remember(Cell &cell, Access const &access) {
  if ((access.flags & is_write) != 0) {
    cell.write = {this_block(), phase, epoch_of(current_thread), uint32_t(access.pc), uint16_t(current_thread),
                  uint16_t((access.flags & is_atomic) != 0)};
  } else if ((access.flags & is_atomic) == 0) {
    remember_read(cell, access);
  }
}

// The cells of an access to `base`, of `element` bytes each. `lasting`: the memory outlives the block, so that accesses
// of other blocks count. An access is reported once, at the first byte where something is wrong with it.
inline void race_cells(Cell *cells, uint64_t offset, uint64_t element, Access const &access, bool lasting) {
  uint64_t const first = offset / element, last = (offset + access.size - 1) / element;
  bool wrong = false;
  for (uint64_t i = first; i <= last; ++i) {
    Cell &cell = cells[i];
    Access part = access;
    part.address += std::max(i * element, offset) - offset;
    if (!lasting && forget_other_blocks(cell, access) && !wrong) {
      report_access(uninitialized, part);
      wrong = true;
    }
    wrong = wrong || race_with_write(cell, part);
    if ((access.flags & is_write) != 0) {
      wrong = wrong || race_with_reads(cell, part);
    }
    remember(cell, access);
  }
}

// Reports a read of what no entry has written, at its first byte.
inline void check_workspace(Access const &access, uint64_t at) {
  if ((access.flags & is_write) != 0) {
    std::memset(workspace_written + at, 1, access.size);
    return;
  }
  for (uint64_t i = 0; i < access.size; ++i) {
    if (workspace_written[at + i] == 0) {
      Access part = access;
      part.address += i;
      report_access(uninitialized, part);
      return;
    }
  }
}

inline void race_arena(Access const &access, uint64_t offset) {
  for (size_t i = 0; i < job.regions.size(); ++i) {
    uint64_t const at = offset - job.regions[i].offset;
    if (at < job.regions[i].bytes && region_cells[i] != nullptr) {
      if (job.regions[i].owner == workspace) {
        check_workspace(access, at);
      }
      race_cells(region_cells[i], at, region_element[i], access, true);
    }
  }
}

inline void race_shared(Access const &access, uint64_t offset) {
  race_cells(shared_cells, offset, 1, access, false);
}

inline void race_dynamic(Access const &access, uint64_t offset) {
  race_cells(dynamic_cells, offset, 1, access, false);
}

#else

inline void make_workspace_map() {}
inline void make_cells() {}
inline void barrier_passed() {}
inline void races_start_block() {}
inline void warp_passed(uint32_t, uint32_t) {}
inline void note_issue(Issue *, uint64_t, void const *) {}
inline void race_arena(Access const &, uint64_t) {}
inline void race_shared(Access const &, uint64_t) {}
inline void race_dynamic(Access const &, uint64_t) {}

#endif

}  // namespace cutemplate_host

#endif  // CUTEMPLATE_HOST_RACES_H

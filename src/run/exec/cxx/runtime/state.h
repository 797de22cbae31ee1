// What the parts of the executor share: the job, the verdicts, and which thread of which block is running.
#ifndef CUTEMPLATE_HOST_STATE_H
#define CUTEMPLATE_HOST_STATE_H

#include <signal.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Which checks the kernel was compiled with.
#define CUTEMPLATE_HOST_PLAIN 0
#define CUTEMPLATE_HOST_BOUNDS 1
#define CUTEMPLATE_HOST_RACES 2

namespace cutemplate_host {

// The numbers are those of `FindingKind` in report.rs.
enum Kind : uint32_t {
  out_of_bounds = 1, write_to_input, race, uninitialized, deadlock, crash, timeout, undefined, trap, address_error,
  misaligned
};

// Where an address lies.
enum Space : uint32_t { nowhere, arena_space, shared_space, dynamic_space };

enum Flags : uint32_t { is_write = 1, is_atomic = 2, other_is_write = 4, other_is_atomic = 8, has_other = 16 };

constexpr uint64_t no_thread = ~uint64_t(0);
constexpr int max_frames = 16;

struct Finding {
  uint32_t kind = 0, space = 0, flags = 0, frames = 0;
  uint64_t launch = 0;  // which grid of the job
  uint64_t block = no_thread, thread = no_thread;
  uint64_t other_block = no_thread, other_thread = no_thread, other_pc = 0;
  int64_t offset = 0;
  uint64_t size = 0, count = 1, signal = 0, line = 0;
  uint64_t pcs[max_frames] = {};
  char file[256] = {}, text[1536] = {};
};

constexpr uint32_t max_findings = 32;

// Lies in memory that all processes of the job share, so that it outlives a crash.
struct Verdicts {
  uint32_t count = 0;    // findings claimed; those from max_findings on are only counted
  uint32_t stop = 0;     // a worker has seen something after which nothing more can be run
  uint64_t next_block = 0, finished_blocks = 0;
  Finding findings[max_findings];
};

// Whose the memory of a region is: the caller's, read or written, or the executor's own. The numbers are those of
// `Owner` in job.rs.
enum Owner : uint64_t { input, output, workspace };

struct Region { uint64_t offset, bytes, owner; };

constexpr uint32_t max_rank = 5;

// Extents and strides of the modes, in elements, the largest stride first; modes of one element or stride 0 are left out.
struct Tensor {
  uint64_t offset, rank, shape[max_rank], stride[max_rank], element_bytes, writable, region, param_offset;
};

// The grid of one entry of the kernel.
struct Launch {
  uint64_t entry;
  uint32_t grid[3], block[3];
  uint64_t dynamic_bytes;
  uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

struct Job {
  uint64_t arena_bytes, workers, limit_ms, params_bytes;
  std::vector<Launch> launches;  // they run one after the other
  uint64_t current = 0;          // the one that runs
  // As large as CUDA lets it be (CUDA C++ Programming Guide, "Function Parameters"), aligned for any of its fields.
  alignas(128) unsigned char params[32768];
  std::vector<Region> regions;
  std::vector<Tensor> tensors;
  std::vector<uint64_t> shared;  // offset and size of each shared variable, ascending
  Launch const &launch() const { return launches[current]; }
};

inline Job job;
inline Verdicts *verdicts;
inline unsigned char *arena;
inline uint64_t current_block = no_thread;
inline uint64_t current_thread = no_thread;
// Where the kernel made its last access that was checked.
inline uint64_t last_access;
// Whether a kernel's own code is running, as opposed to the executor's.
inline bool in_kernel;

[[noreturn]] inline void fail(char const *what) {
  std::fprintf(stderr, "cutemplate executor: %s\n", what);
  _Exit(70);
}

inline void *map_memory(size_t bytes, int sharing) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail("not enough address space for the job");
  }
  return memory;
}

// The next free verdict, filled with where we are; null where there are too many already.
inline Finding *new_finding(Kind kind) {
  uint32_t const index = __atomic_fetch_add(&verdicts->count, 1, __ATOMIC_RELAXED);
  if (index >= max_findings) {
    return nullptr;
  }
  Finding *finding = &verdicts->findings[index];
  *finding = Finding{};
  finding->kind = kind;
  finding->launch = job.current;
  finding->block = current_block;
  finding->thread = current_thread;
  return finding;
}

// Ends this process after a verdict that leaves nothing to go on with.
[[noreturn]] inline void stop_worker() {
  __atomic_store_n(&verdicts->stop, 1, __ATOMIC_RELAXED);
  _Exit(3);
}

}  // namespace cutemplate_host

// What the compiled kernel gives.
extern "C" {
// One function for each entry, and the size of its parameter.
extern void (*const cutemplate_host_entries[])(void const *params);
extern uint64_t const cutemplate_host_params_sizes[];
// Everything between them is shared memory of the block: the linker keeps the order of the objects.
extern thread_local unsigned char cutemplate_host_shared_begin[];
extern thread_local unsigned char cutemplate_host_shared_end[];
extern thread_local unsigned char cutemplate_host_dynamic[];
extern uint64_t const cutemplate_host_dynamic_size;
}

#endif  // CUTEMPLATE_HOST_STATE_H

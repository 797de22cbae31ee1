// One thread block: its threads run in turn, each until it has to wait for others.
//
// A thread runs on the fiber that started it. A fiber whose thread returns goes on with the next thread, so that a
// kernel without barriers never switches; a fiber whose thread waits gives way to a thread that can go on, or to a
// fiber that starts the next one. The order is fixed: it depends on nothing but the kernel and its arguments.
#ifndef CUTEMPLATE_HOST_BLOCK_H
#define CUTEMPLATE_HOST_BLOCK_H

#include "fiber.h"
#include "memory.h"

struct Uint3 { unsigned x, y, z; };

// The built-in variables; the shim declares them for the kernel as CUDA does.
extern "C" {
Uint3 threadIdx, blockIdx, blockDim, gridDim;
int warpSize = 32;
}

namespace cutemplate_host {

enum class State : uint8_t { not_started, running, ready, at_barrier, at_warp, returned };

struct Thread {
  Uint3 index;
  State state;
  Fiber *fiber;
  Thread *next;           // in the ready queue
  char const *file;       // where it waits
  int line;
  // The warp intrinsic it waits at.
  int op, argument, width;
  unsigned mask;
  uint64_t value, result;
};

inline std::vector<Thread> threads;
inline Fiber scheduler;
inline Fiber *free_fibers;
inline size_t fiber_count;
inline uint32_t next_start, returned_count;
inline Thread *ready_head, **ready_tail = &ready_head;
inline Thread *current;

struct Barrier {
  uint32_t arrived = 0;
  uint64_t phase = 0;
  int op = 0;
  uint32_t count = 0;   // predicates that are not zero
  int result[2] = {};   // by parity of the phase: a thread may read one while another waits at the next barrier
  char const *file = nullptr;  // where its first thread came
  int line = 0;
  bool diverged = false;       // whether another thread came elsewhere
};
inline Barrier barrier;

inline uint32_t thread_number(Thread const *t) { return uint32_t(t - threads.data()); }

inline void enter(Thread *t) {
  current = t;
  t->state = State::running;
  threadIdx = t->index;
  current_thread = thread_number(t);
}

inline void make_ready(Thread *t) {
  t->state = State::ready;
  t->next = nullptr;
  *ready_tail = t;
  ready_tail = &t->next;
}

inline Thread *pop_ready() {
  Thread *t = ready_head;
  if (t != nullptr) {
    ready_head = t->next;
    if (ready_head == nullptr) {
      ready_tail = &ready_head;
    }
  }
  return t;
}

void complete_warp(uint32_t warp);
void finish_all_copies();

inline void run_threads() {
#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_BOUNDS
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  auto *const entry = cutemplate_host_entries[job.launch().entry];
  for (;;) {
    while (next_start < threads.size()) {
      Thread *t = &threads[next_start++];
      t->fiber = running;
      enter(t);
      in_kernel = true;
      entry(job.params);
      in_kernel = false;
      finish_all_copies();
      t = current;
      t->state = State::returned;
      ++returned_count;
      complete_warp(thread_number(t) / 32);
      if (ready_head != nullptr) {
        break;
      }
    }
    Fiber *self = running;
    self->next = free_fibers;
    free_fibers = self;
    Thread *t = pop_ready();
    if (t != nullptr) {
      enter(t);
      switch_to(t->fiber);
    } else {
      switch_to(&scheduler);
    }
  }
}

inline Fiber *take_fiber() {
  Fiber *fiber = free_fibers;
  if (fiber == nullptr) {
    fiber = new Fiber;
    make_fiber(fiber, fiber_count++, run_threads);
  } else {
    free_fibers = fiber->next;
  }
  return fiber;
}

// Lets others run until this thread is ready again.
inline void suspend() {
  Thread *self = current;
  in_kernel = false;
  Thread *t = pop_ready();
  if (t != nullptr) {
    if (t != self) {
      enter(t);
      switch_to(t->fiber);
    }
  } else if (next_start < threads.size()) {
    switch_to(take_fiber());
  } else {
    switch_to(&scheduler);  // nobody can go on
  }
  enter(self);
  in_kernel = true;
}

inline void release_barrier() {
  int const parity = int(barrier.phase & 1);
  uint32_t const total = uint32_t(threads.size());
  barrier.result[parity] = barrier.op == 1   ? int(barrier.count)
                           : barrier.op == 2 ? int(barrier.count == total)
                                             : int(barrier.count != 0);
  for (Thread &t : threads) {
    if (t.state == State::at_barrier) {
      make_ready(&t);
    }
  }
  barrier.arrived = barrier.count = 0;
  barrier.file = nullptr;
  ++barrier.phase;
  barrier_passed();
}

inline void start_threads(uint64_t block) {
  current_block = block;
  uint32_t const *const grid = job.launch().grid;
  blockIdx = {unsigned(block % grid[0]), unsigned(block / grid[0] % grid[1]), unsigned(block / grid[0] / grid[1])};
  next_start = returned_count = 0;
  barrier = Barrier{};
  forget_shared_memory();
  races_start_block();
  switch_to(take_fiber());
  current = nullptr;
  current_thread = no_thread;
}

// Whether two threads are stuck in the same way at the same place.
inline bool same_wait(Thread const &t, Thread const &u) {
  return t.state == u.state && (t.state == State::returned || (t.line == u.line && t.mask == u.mask &&
                                                               std::strcmp(t.file, u.file) == 0));
}

// Says which threads wait where: one line for each place.
inline void describe_waiting(Finding *finding) {
  size_t used = 0;
  std::vector<bool> told(threads.size());
  for (size_t i = 0; i < threads.size() && used < sizeof finding->text; ++i) {
    Thread const &t = threads[i];
    if (told[i]) {
      continue;
    }
    size_t count = 0;
    for (size_t j = i; j < threads.size(); ++j) {
      bool const same = same_wait(t, threads[j]);
      told[j] = told[j] || same;
      count += same;
    }
    char where[400] = "returned";
    if (t.state != State::returned) {
      char const *what = t.state == State::at_barrier ? "wait at the barrier" : "wait for the lanes of their mask";
      std::snprintf(where, sizeof where, "%s at %s:%d", what, t.file, t.line);
    }
    if (t.state != State::returned && finding->line == 0) {
      std::snprintf(finding->file, sizeof finding->file, "%s", t.file);
      finding->line = uint64_t(t.line);
      finding->thread = i;
    }
    int const wrote = std::snprintf(finding->text + used, sizeof finding->text - used,
                                    "%zu of %zu threads %s, the first of them (%u,%u,%u)\n", count, threads.size(),
                                    where, t.index.x, t.index.y, t.index.z);
    used += wrote > 0 ? size_t(wrote) : 0;
  }
}

[[noreturn]] inline void report_deadlock() {
  if (Finding *finding = new_finding(deadlock)) {
    describe_waiting(finding);
  }
  stop_worker();
}

inline void run_block(uint64_t block) {
  for (Thread &t : threads) {
    t.state = State::not_started;
  }
  start_threads(block);
  if (returned_count != threads.size()) {
    report_deadlock();
  }
}

inline void make_threads() {
  Launch const &launch = job.launch();
  uint32_t const *const grid = launch.grid, *const block = launch.block;
  threads.resize(launch.threads());
  for (uint32_t i = 0; i < threads.size(); ++i) {
    threads[i] = Thread{};
    threads[i].index = {i % block[0], i / block[0] % block[1], i / block[0] / block[1]};
  }
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  running = &scheduler;
}

}  // namespace cutemplate_host

#endif  // CUTEMPLATE_HOST_BLOCK_H

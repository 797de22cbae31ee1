// Asynchronous copies from global to shared memory, as PTX defines them (PTX ISA, "Data Movement and Conversion
// Instructions: Asynchronous copy").
//
// A copy is done at the latest moment that the definition allows: when its thread waits for its group, or returns. Whoever
// looks before that sees what was there, so that a wait that is too weak gives a wrong result and not a right one by
// chance. An address is judged when the copy is issued, at the line that issues it. As accesses of the thread, both ends
// last from the issue to the end: what any thread does to the source or the destination in between is a race with them.
#ifndef CUTEMPLATE_HOST_ASYNC_H
#define CUTEMPLATE_HOST_ASYNC_H

#include <deque>

#include "block.h"

namespace cutemplate_host {

struct AsyncCopy {
  unsigned char *to;
  unsigned char const *from;
  uint32_t bytes, read;  // what is not read is filled with zeros
  uint64_t pc;
  bool from_checked, to_checked;  // whether each end may be touched
  Issue issue;
};

struct AsyncQueue {
  std::deque<AsyncCopy> copies;  // the oldest first
  std::deque<uint32_t> groups;   // how many of them each committed group has
  uint32_t open = 0;             // how many came since
};
// One for each thread of the block, once any of them has asked for it.
inline std::vector<AsyncQueue> async_queues;

inline AsyncQueue &own_queue() {
  if (async_queues.empty()) {
    async_queues.resize(threads.size());
  }
  return async_queues[current_thread];
}

// A copy of one of the sizes there are, without a call that the executor would look at.
inline void copy_bytes(unsigned char *to, unsigned char const *from, uint32_t bytes) {
  switch (bytes) {
    case 4: __builtin_memcpy(to, from, 4); break;
    case 8: __builtin_memcpy(to, from, 8); break;
    default: __builtin_memcpy(to, from, 16); break;
  }
}

inline void finish_copy(AsyncCopy const &copy) {
  Access access{reinterpret_cast<uint64_t>(copy.from), copy.read, 0, copy.pc, nullptr, &copy.issue};
  if (copy.read > 0 && copy.from_checked) {
    race_access(place_of(access.address), access);
  }
  access.address = reinterpret_cast<uint64_t>(copy.to);
  access.size = copy.bytes;
  access.flags = is_write;
  if (copy.to_checked) {
    race_access(place_of(access.address), access);
  }
  static unsigned char const zeros[16] = {};
  copy_bytes(copy.to, copy.read > 0 ? copy.from : zeros, copy.bytes);
}

// Ends the oldest groups of the running thread until `pending` are left.
inline void finish_groups(AsyncQueue &queue, uint32_t pending) {
  while (queue.groups.size() > pending) {
    for (uint32_t left = queue.groups.front(); left > 0; --left) {
      finish_copy(queue.copies.front());
      queue.copies.pop_front();
    }
    queue.groups.pop_front();
  }
}

inline void commit_group(AsyncQueue &queue) {
  queue.groups.push_back(queue.open);
  queue.open = 0;
}

// The running thread has returned.
inline void finish_all_copies() {
  if (!async_queues.empty()) {
    AsyncQueue &queue = own_queue();
    commit_group(queue);
    finish_groups(queue, 0);
  }
}

inline bool is_shared(Place const &place) {
  return place.space == shared_space || place.space == dynamic_space;
}

// Whether an end of a copy may be touched; says so where it may not.
inline bool check_end(Access const &access, bool shared, uint32_t alignment) {
  Place const place = place_of(access.address);
  if (is_shared(place) != shared) {
    report_access(undefined, access, nullptr,
                  shared ? "the destination of cp.async does not lie in shared memory"
                         : "the source of cp.async lies in shared memory");
    return false;
  }
  if (access.address % alignment != 0) {
    Access whole = access;
    whole.size = alignment;
    report_access(misaligned, whole, nullptr, "by cp.async");
    return false;
  }
  return CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_PLAIN || access.size == 0 || check_access(place, access);
}

inline void issue_copy(void *to, void const *from, uint32_t bytes, uint32_t read, uint64_t pc, void const *frame) {
  AsyncQueue &queue = own_queue();
  queue.copies.emplace_back();
  ++queue.open;
  AsyncCopy &copy = queue.copies.back();
  copy.to = static_cast<unsigned char *>(to);
  copy.from = static_cast<unsigned char const *>(from);
  copy.bytes = bytes;
  copy.read = read;
  copy.pc = pc;
  // Where nothing is read, the address is looked at nevertheless: it has to be aligned.
  copy.from_checked = check_end({reinterpret_cast<uint64_t>(from), read, 0, pc, frame}, false, bytes);
  copy.to_checked = check_end({reinterpret_cast<uint64_t>(to), bytes, is_write, pc, frame}, true, bytes);
  note_issue(&copy.issue, pc, frame);
}

}  // namespace cutemplate_host

extern "C" {

void cutemplate_host_cp_async(void *to, void const *from, unsigned bytes, unsigned read) {
  using namespace cutemplate_host;
  in_kernel = false;
  issue_copy(to, from, bytes, read, reinterpret_cast<uint64_t>(__builtin_return_address(0)),
             __builtin_frame_address(0));
  in_kernel = true;
}

void cutemplate_host_cp_async_commit() { cutemplate_host::commit_group(cutemplate_host::own_queue()); }

void cutemplate_host_cp_async_wait(unsigned pending) {
  using namespace cutemplate_host;
  in_kernel = false;
  finish_groups(own_queue(), pending);
  in_kernel = true;
}

}  // extern "C"

#endif  // CUTEMPLATE_HOST_ASYNC_H

// How a job comes in and how its verdicts go out: words and bytes on standard input and output.
//
// In:  a header of 64-bit words, the parameter struct, then the bytes of every region of the caller's.
// Out: the length of a JSON text as a 64-bit word, the text, then the bytes of every writable region.
#ifndef CUTEMPLATE_HOST_PROTOCOL_H
#define CUTEMPLATE_HOST_PROTOCOL_H

#include <errno.h>
#include <unistd.h>

#include <string>

#include "state.h"

namespace cutemplate_host {

constexpr uint64_t protocol_version = 3;
constexpr uint64_t page = 4096;

inline void read_exactly(void *to, size_t bytes) {
  auto *at = static_cast<unsigned char *>(to);
  while (bytes > 0) {
    ssize_t const got = read(0, at, std::min(bytes, size_t(1) << 30));
    if (got <= 0) {
      if (got < 0 && errno == EINTR) {
        continue;
      }
      fail("the job ended early");
    }
    at += got;
    bytes -= size_t(got);
  }
}

inline void write_exactly(int to, void const *from, size_t bytes) {
  auto const *at = static_cast<unsigned char const *>(from);
  while (bytes > 0) {
    ssize_t const put = write(to, at, std::min(bytes, size_t(1) << 30));
    if (put < 0) {
      if (errno == EINTR) {
        continue;
      }
      _Exit(71);  // nobody listens any more
    }
    at += put;
    bytes -= size_t(put);
  }
}

inline uint64_t read_word() {
  uint64_t word;
  read_exactly(&word, sizeof word);
  return word;
}

inline void read_launch(Launch &launch) {
  launch.entry = read_word();
  for (uint32_t &extent : launch.grid) {
    extent = uint32_t(read_word());
  }
  for (uint32_t &extent : launch.block) {
    extent = uint32_t(read_word());
  }
  launch.dynamic_bytes = read_word();
}

// Everything but the bytes of the regions.
inline void read_job() {
  if (read_word() != protocol_version) {
    fail("the job is of another version");
  }
  job.arena_bytes = read_word();
  job.workers = read_word();
  job.limit_ms = read_word();
  job.launches.resize(read_word());
  job.params_bytes = read_word();
  job.regions.resize(read_word());
  job.tensors.resize(read_word());
  job.shared.resize(2 * read_word());
  for (Launch &launch : job.launches) {
    read_launch(launch);
  }
  if (job.params_bytes > sizeof job.params) {
    fail("the parameter struct is larger than a kernel can have");
  }
  read_exactly(job.params, job.params_bytes);
  read_exactly(job.regions.data(), job.regions.size() * sizeof(Region));
  read_exactly(job.tensors.data(), job.tensors.size() * sizeof(Tensor));
  read_exactly(job.shared.data(), job.shared.size() * sizeof(uint64_t));
}

// The memory of the tensors, its pages shared with the workers. The page next to each region is filled with ones, a NaN
// in every floating-point format, and what lies farther out cannot be touched at all in plain mode. The workspace holds
// nothing but ones.
inline void read_arena() {
  arena = static_cast<unsigned char *>(map_memory(job.arena_bytes, MAP_SHARED));
  for (Region const &region : job.regions) {
    unsigned char *first = arena + region.offset, *last = first + region.bytes;
    std::memset(first - page, 0xff, page);
    std::memset(last, 0xff, page);
    if (region.owner == workspace) {
      std::memset(first, 0xff, region.bytes);
    } else {
      read_exactly(first, region.bytes);
    }
  }
  for (Tensor const &tensor : job.tensors) {
    unsigned char *address = arena + tensor.offset;
    std::memcpy(job.params + tensor.param_offset, &address, sizeof address);
  }
}

inline uint64_t round_up(uint64_t value) { return (value + page - 1) / page * page; }

// Plain mode has no hooks: what lies farther out than the canaries, and whole pages of inputs, are left to the MMU.
inline void protect_arena() {
  uint64_t open = 0;  // up to here the arena has been dealt with
  for (Region const &region : job.regions) {
    uint64_t const first = (region.offset - page) / page * page, last = round_up(region.offset + region.bytes + page);
    mprotect(arena + open, first - open, PROT_NONE);
    uint64_t const inner = round_up(region.offset), outer = (region.offset + region.bytes) / page * page;
    if (region.owner == input && inner < outer) {
      mprotect(arena + inner, outer - inner, PROT_READ);
    }
    open = last;
  }
  mprotect(arena + open, job.arena_bytes - open, PROT_NONE);
}

// A canary that changed: somebody wrote there, nobody knows who.
inline void check_canary(uint64_t from) {
  for (uint64_t offset = from; offset < from + page; ++offset) {
    if (arena[offset] != 0xff) {
      if (Finding *finding = new_finding(out_of_bounds)) {
        finding->space = arena_space;
        finding->offset = int64_t(offset);
        finding->size = 1;
        finding->flags = is_write;
      }
      std::memset(arena + from, 0xff, page);  // it is told once
      return;
    }
  }
}

inline void check_canaries() {
  for (Region const &region : job.regions) {
    check_canary(region.offset - page);
    check_canary(region.offset + region.bytes);
  }
}

inline void append_text(std::string &json, char const *text) {
  json += '"';
  for (; *text != 0; ++text) {
    auto const c = static_cast<unsigned char>(*text);
    if (c < 0x20 || c == '"' || c == '\\' || c >= 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", unsigned(c));
      json += escape;
    } else {
      json += char(c);
    }
  }
  json += '"';
}

inline void append_number(std::string &json, char const *key, uint64_t value) {
  json += std::string(",\"") + key + "\":";
  json += value == no_thread ? "null" : std::to_string(value);
}

inline void append_finding(std::string &json, Finding const &finding) {
  json += "{\"kind\":" + std::to_string(finding.kind) + ",\"offset\":" + std::to_string(finding.offset);
  append_number(json, "space", finding.space);
  append_number(json, "flags", finding.flags);
  append_number(json, "launch", finding.launch);
  append_number(json, "block", finding.block);
  append_number(json, "thread", finding.thread);
  append_number(json, "other_block", finding.other_block);
  append_number(json, "other_thread", finding.other_thread);
  append_number(json, "other_pc", finding.other_pc);
  append_number(json, "size", finding.size);
  append_number(json, "count", finding.count);
  append_number(json, "signal", finding.signal);
  append_number(json, "line", finding.line);
  json += ",\"file\":";
  append_text(json, finding.file);
  json += ",\"text\":";
  append_text(json, finding.text);
  json += ",\"pcs\":[";
  for (uint32_t i = 0; i < finding.frames; ++i) {
    json += (i == 0 ? "" : ",") + std::to_string(finding.pcs[i]);
  }
  json += "]}";
}

inline void write_result(int to) {
  std::string json = "{\"finished_blocks\":" + std::to_string(verdicts->finished_blocks);
  append_number(json, "found", verdicts->count);
  json += ",\"findings\":[";
  for (uint32_t i = 0; i < std::min(verdicts->count, max_findings); ++i) {
    json += i == 0 ? "" : ",";
    append_finding(json, verdicts->findings[i]);
  }
  json += "]}";
  uint64_t const length = json.size();
  write_exactly(to, &length, sizeof length);
  write_exactly(to, json.data(), json.size());
  for (Region const &region : job.regions) {
    if (region.owner == output) {
      write_exactly(to, arena + region.offset, region.bytes);
    }
  }
}

}  // namespace cutemplate_host

#endif  // CUTEMPLATE_HOST_PROTOCOL_H

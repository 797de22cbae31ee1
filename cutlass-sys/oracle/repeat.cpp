// Loops for a benchmark: every result is made in full, and none is looked at.

#include "oracle.h"
#include "ops.hpp"

namespace {

struct Keep {
  template <class R>
  void operator()(R const& result) const {
    oracle::keep(result);
  }
};

template <class I>
bool repeat_unary(uint32_t op, oracle_batch const& a) {
  bool known = true;
  return oracle::with_profile<I>(a.profile, [&](auto like) {
    for (size_t i = 0; i < a.count; ++i) {
      known = oracle::unary(op, oracle::layout_at<decltype(like)>(a, i), Keep{}) && known;
    }
  }) && known;
}

template <class I>
bool repeat_binary(uint32_t op, oracle_batch const& a, oracle_batch const& b) {
  bool known = a.count == b.count;
  return known && oracle::with_profile<I>(a.profile, [&](auto like_a) {
    known = oracle::with_right_profile<I>(b.profile, [&](auto like_b) {
      for (size_t i = 0; i < a.count; ++i) {
        auto const la = oracle::layout_at<decltype(like_a)>(a, i);
        auto const lb = oracle::layout_at<decltype(like_b)>(b, i);
        known = oracle::binary(op, la, lb, Keep{}) && known;
      }
    }) && known;
  }) && known;
}

template <class I>
uint64_t repeat_crd2idx(oracle_batch const& a, int64_t const* coords) {
  uint64_t sum = 0;
  oracle::with_profile<I>(a.profile, [&](auto like) {
    for (size_t i = 0; i < a.count; ++i) {
      auto const layout = oracle::layout_at<decltype(like)>(a, i);
      sum += static_cast<uint64_t>(cute::crd2idx(static_cast<I>(coords[i]), layout.shape(), layout.stride()));
    }
  });
  return sum;
}

}  // namespace

extern "C" int oracle_repeat_unary(uint32_t op, uint32_t bits, oracle_batch a) {
  return !(bits == 32 ? repeat_unary<int32_t>(op, a) : repeat_unary<int64_t>(op, a));
}

extern "C" int oracle_repeat_binary(uint32_t op, uint32_t bits, oracle_batch a, oracle_batch b) {
  return !(bits == 32 ? repeat_binary<int32_t>(op, a, b) : repeat_binary<int64_t>(op, a, b));
}

extern "C" uint64_t oracle_repeat_crd2idx(uint32_t bits, oracle_batch a, int64_t const* coords) {
  return bits == 32 ? repeat_crd2idx<int32_t>(a, coords) : repeat_crd2idx<int64_t>(a, coords);
}

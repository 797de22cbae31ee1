// Answers batches of cases: the operations of CuTe on run-time integers of 64 bits.

#include "oracle.h"
#include "ops.hpp"

namespace {

using I = int64_t;

/// Writes what a result is: its size, and its first values.
struct Values {
  oracle_values out;
  size_t index;

  template <class R>
  void operator()(R const& result) const {
    if constexpr (oracle::refused<R>) {
      out.sizes[index] = ORACLE_DIVIDES_BY_ZERO;
    } else {
      int64_t const size = static_cast<int64_t>(cute::size(result));
      int64_t const count = size < static_cast<int64_t>(out.most) ? size : static_cast<int64_t>(out.most);
      out.sizes[index] = size;
      for (int64_t j = 0; j < count; ++j) {
        out.values[index * out.most + j] = static_cast<int64_t>(result(j));
      }
    }
  }
};

/// Calls `f(layout, index)` for every case of a batch.
template <class F>
int each(oracle_batch const& a, F&& f) {
  return oracle::with_profile<I>(a.profile, [&](auto like) {
    for (size_t i = 0; i < a.count; ++i) {
      f(oracle::layout_at<decltype(like)>(a, i), i);
    }
  }) ? 0 : 1;
}

}  // namespace

extern "C" int oracle_unary(uint32_t op, oracle_batch a, oracle_values out) {
  bool known = true;
  int const missing = each(a, [&](auto const& layout, size_t i) {
    known = oracle::unary(op, layout, Values{out, i}) && known;
  });
  return missing || !known;
}

extern "C" int oracle_binary(uint32_t op, oracle_batch a, oracle_batch b, oracle_values out) {
  bool known = a.count == b.count;
  bool const found = known && oracle::with_profile<I>(a.profile, [&](auto like_a) {
    known = oracle::with_right_profile<I>(b.profile, [&](auto like_b) {
      for (size_t i = 0; i < a.count; ++i) {
        auto const la = oracle::layout_at<decltype(like_a)>(a, i);
        auto const lb = oracle::layout_at<decltype(like_b)>(b, i);
        known = oracle::binary(op, la, lb, Values{out, i}) && known;
      }
    }) && known;
  });
  return !(found && known);
}

extern "C" int oracle_cosize(oracle_batch a, int64_t* out) {
  return each(a, [&](auto const& layout, size_t i) { out[i] = static_cast<int64_t>(cute::cosize(layout)); });
}

extern "C" int oracle_crd2idx(oracle_batch a, int64_t const* coords, int64_t* out) {
  return each(a, [&](auto const& layout, size_t i) {
    out[i] = static_cast<int64_t>(cute::crd2idx(coords[i], layout.shape(), layout.stride()));
  });
}

extern "C" int oracle_crd2idx_congruent(oracle_batch a, int64_t const* coords, int64_t* out) {
  return each(a, [&](auto const& layout, size_t i) {
    auto const shape = layout.shape();
    auto const coord = oracle::tuple_at<cute::remove_cvref_t<decltype(shape)>>(coords, i);
    out[i] = static_cast<int64_t>(cute::crd2idx(coord, shape, layout.stride()));
  });
}

extern "C" int oracle_idx2crd(oracle_batch a, int64_t const* indices, int64_t* out) {
  return each(a, [&](auto const& layout, size_t i) {
    oracle::write_leaves(cute::idx2crd(indices[i], layout.shape()), out);
  });
}

extern "C" int oracle_crd2crd(oracle_batch a, int64_t const* coords, int64_t* out) {
  return each(a, [&](auto const& layout, size_t i) {
    auto const shape = layout.shape();
    auto const coord = oracle::tuple_at<cute::remove_cvref_t<decltype(shape)>>(coords, i);
    out[i] = static_cast<int64_t>(cute::crd2crd(coord, shape, cute::size(shape)));
  });
}

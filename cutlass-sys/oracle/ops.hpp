// The operations, each on operands of any profile; whether they are defined is decided at compile time.
#pragma once

#include "profiles.hpp"

namespace oracle {

struct DividesByZero {};

template <class T>
inline constexpr bool refused = cute::is_same<T, DividesByZero>::value;

/// Whether a layout has one leaf that is no tuple.
template <class L>
inline constexpr bool is_leaf = cute::is_integral<cute::remove_cvref_t<decltype(cute::declval<L>().shape())>>::value;

/// A layout's first leaf stride as a static 1: right_inverse looks at static strides only.
template <class Stride>
auto static_first(Stride const& stride) {
  if constexpr (cute::is_tuple<Stride>::value) {
    return cute::replace<0>(stride, static_first(cute::get<0>(stride)));
  } else {
    return cute::Int<1>{};
  }
}

/// Calls `use` with the result of a unary operation; false where the operation does not take this profile.
template <class L, class Use>
bool unary(uint32_t op, L const& a, Use&& use) {
  switch (op) {
    case ORACLE_LAYOUT:            use(a); return true;
    case ORACLE_COALESCE:          use(cute::coalesce(a)); return true;
    case ORACLE_MAKE_LAYOUT:       use(cute::make_layout(a.shape())); return true;
    case ORACLE_MAKE_LAYOUT_RIGHT: use(cute::make_layout(a.shape(), cute::LayoutRight{})); return true;
    case ORACLE_RIGHT_INVERSE:
      use(cute::right_inverse(cute::make_layout(a.shape(), static_first(a.stride()))));
      return true;
    case ORACLE_COMPLEMENT:
      if constexpr (is_leaf<L>) {
        if (any_zero(a.stride())) {
          use(DividesByZero{});
        } else {
          use(cute::complement(a));
        }
        return true;
      }
      return false;
    default: return false;
  }
}

/// Calls `use` with the result of a binary operation; false where the operation does not take these profiles.
template <class A, class B, class Use>
bool binary(uint32_t op, A const& a, B const& b, Use&& use) {
  if (op == ORACLE_COMPOSITION) {
    if (any_zero(b.stride())) {
      use(DividesByZero{});
    } else {
      use(cute::composition(a, b));
    }
    return true;
  }
  if constexpr (is_leaf<B>) {
    if (op == ORACLE_LOGICAL_DIVIDE || op == ORACLE_ZIPPED_DIVIDE) {
      if (any_zero(b.stride())) {
        use(DividesByZero{});
      } else if (op == ORACLE_LOGICAL_DIVIDE) {
        use(cute::logical_divide(a, b));
      } else {
        use(cute::zipped_divide(a, b));
      }
      return true;
    }
  }
  if constexpr (is_leaf<A>) {
    if (op == ORACLE_LOGICAL_PRODUCT) {
      if (any_zero(a.stride()) || any_zero(b.stride())) {
        use(DividesByZero{});
      } else {
        use(cute::logical_product(a, b));
      }
      return true;
    }
  }
  return false;
}

}  // namespace oracle

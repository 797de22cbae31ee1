// Profiles as types: building a cute tuple from leaves in memory, and taking one apart again.
#pragma once

#include <cute/layout.hpp>

#include "oracle.h"

namespace oracle {

template <class I> using P1 = I;
template <class I> using P2 = cute::tuple<I, I>;
template <class I> using P3 = cute::tuple<I, I, I>;
template <class I> using P4 = cute::tuple<I, I, I, I>;
template <class I> using P21 = cute::tuple<cute::tuple<I, I>, I>;
template <class I> using P12 = cute::tuple<I, cute::tuple<I, I>>;
template <class I> using P22 = cute::tuple<cute::tuple<I, I>, cute::tuple<I, I>>;

template <class T>
struct Profile {
  static constexpr size_t leaves = 1;

  static T read(int64_t const*& at) { return static_cast<T>(*at++); }
};

template <class... Ts>
struct Profile<cute::tuple<Ts...>> {
  static constexpr size_t leaves = (Profile<Ts>::leaves + ...);

  // Braces, so that the modes are read left to right.
  static cute::tuple<Ts...> read(int64_t const*& at) { return cute::tuple<Ts...>{Profile<Ts>::read(at)...}; }
};

template <class T>
T tuple_at(int64_t const* leaves, size_t index) {
  int64_t const* at = leaves + index * Profile<T>::leaves;
  return Profile<T>::read(at);
}

template <class T>
auto layout_at(oracle_batch const& batch, size_t index) {
  return cute::make_layout(tuple_at<T>(batch.shape, index), tuple_at<T>(batch.stride, index));
}

template <class T>
void write_leaves(T const& t, int64_t*& at) {
  if constexpr (cute::is_tuple<T>::value) {
    cute::for_each(t, [&](auto const& x) { write_leaves(x, at); });
  } else {
    *at++ = static_cast<int64_t>(t);
  }
}

/// Whether a stride of the tuple is a run-time 0. CuTe's composition divides by a run-time stride of its right operand.
template <class T>
bool any_zero(T const& t) {
  if constexpr (cute::is_tuple<T>::value) {
    bool found = false;
    cute::for_each(t, [&](auto const& x) { found = found || any_zero(x); });
    return found;
  } else {
    return static_cast<int64_t>(t) == 0;
  }
}

/// Calls `f` with a value of the profile's type; false where there is no such profile.
template <class I, class F>
bool with_profile(uint32_t profile, F&& f) {
  switch (profile) {
    case ORACLE_1:  f(P1<I>{});  return true;
    case ORACLE_2:  f(P2<I>{});  return true;
    case ORACLE_3:  f(P3<I>{});  return true;
    case ORACLE_4:  f(P4<I>{});  return true;
    case ORACLE_21: f(P21<I>{}); return true;
    case ORACLE_12: f(P12<I>{}); return true;
    case ORACLE_22: f(P22<I>{}); return true;
    default: return false;
  }
}

/// The same for the profiles that the right operand of a composition may have.
template <class I, class F>
bool with_right_profile(uint32_t profile, F&& f) {
  switch (profile) {
    case ORACLE_1:  f(P1<I>{});  return true;
    case ORACLE_2:  f(P2<I>{});  return true;
    case ORACLE_3:  f(P3<I>{});  return true;
    case ORACLE_12: f(P12<I>{}); return true;
    default: return false;
  }
}

/// Makes the compiler compute a value in full.
template <class T>
inline void keep(T const& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace oracle

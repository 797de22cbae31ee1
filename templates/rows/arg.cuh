// The column of the largest, or of the smallest: NaN comes first, then the value, then the lower column.
struct Best {
  Number x;
  int column;
};

template <bool Largest>
struct Arg {
  using State = Best;
  CUTE_DEVICE static State nothing() {
    return {Largest ? -numeric_limits<Number>::infinity() : numeric_limits<Number>::infinity(), INT32_MAX};
  }
  // After what came before it in the row.
  CUTE_DEVICE static State next(State a, Number x, int column) {
    bool const before = Largest ? !(x <= a.x) : !(x >= a.x);
    return before && a.x == a.x ? Best{x, column} : a;
  }
  CUTE_DEVICE static State of(State a, State b) {
    bool const a_nan = a.x != a.x;
    bool const b_nan = b.x != b.x;
    bool const alike = a_nan == b_nan && (a_nan || a.x == b.x);
    bool const before = a_nan || (!b_nan && (Largest ? a.x > b.x : a.x < b.x));
    return (alike ? a.column < b.column : before) ? a : b;
  }
  CUTE_DEVICE static Number result(State best) { return best.column == INT32_MAX ? 0 : best.column; }
};

CUTE_DEVICE Best from_lane(Best x, int lanes) {
  return {from_lane(x.x, lanes), __shfl_xor_sync(0xffffffff, x.column, lanes)};
}

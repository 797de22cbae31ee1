// The column of the largest, or of the smallest: NaN comes first, then the value, then the lower column.
struct Best {
  Number x;
  int column;
};

// The lower column.
struct First {
  using State = int;
  CUTE_DEVICE static State of(State a, State b) { return cute::min(a, b); }
};

template <bool Largest>
struct Arg {
  using State = Best;
  using Most = conditional_t<Largest, Max, Min>;
  CUTE_DEVICE static State nothing() { return {Most::nothing(), INT32_MAX}; }
  CUTE_DEVICE static bool alike(Number a, Number b) { return a == b || (a != a && b != b); }
  // After what came before it in the row.
  CUTE_DEVICE static State next(State a, Number x, int column) {
    bool const before = Largest ? !(x <= a.x) : !(x >= a.x);
    return before && a.x == a.x ? Best{x, column} : a;
  }
  CUTE_DEVICE static State of(State a, State b) {
    Number const most = Most::of(a.x, b.x);
    return {most, cute::min(alike(a.x, most) ? a.column : INT32_MAX, alike(b.x, most) ? b.column : INT32_MAX)};
  }
  CUTE_DEVICE static Number result(State best) { return best.column == INT32_MAX ? 0 : best.column; }
};

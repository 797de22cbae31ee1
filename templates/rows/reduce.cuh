// Reductions: what nothing gives, and how two become one, in either order alike.
struct Plain {
  using State = Number;
  CUTE_DEVICE static Number result(State x) { return x; }
};

{% if self.has("Sum") %}struct Sum : Plain {
  CUTE_DEVICE static State nothing() { return 0; }
  CUTE_DEVICE static State of(State a, State b) { return [[ rounded[0] ]](a, b); }
};

{% endif %}{% if self.has("Product") %}struct Product : Plain {
  CUTE_DEVICE static State nothing() { return 1; }
  CUTE_DEVICE static State of(State a, State b) { return [[ rounded[1] ]](a, b); }
};

{% endif %}{% if self.has("Max") || self.has("Min") %}// NaN where there is one; 0 is larger than -0.
struct Max : Plain {
  CUTE_DEVICE static State nothing() { return -numeric_limits<Number>::infinity(); }
  CUTE_DEVICE static State of(State a, State b) {
{% if single %}    asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
{% else %}    return a > b || a != a || (a == b && !signbit(a)) ? a : b;
{% endif %}  }
};

{% endif %}{% if self.has("Min") %}struct Min : Plain {
  CUTE_DEVICE static State nothing() { return numeric_limits<Number>::infinity(); }
  CUTE_DEVICE static State of(State a, State b) { return -Max::of(-a, -b); }
};

{% endif %}{% if self.has("Any") %}// Of 1 and 0.
struct Any : Plain {
  CUTE_DEVICE static State nothing() { return 0; }
  CUTE_DEVICE static State of(State a, State b) { return a > b ? a : b; }
};

{% endif %}{% if self.has("All") %}// Of 1 and 0.
struct All : Plain {
  CUTE_DEVICE static State nothing() { return 1; }
  CUTE_DEVICE static State of(State a, State b) { return a < b ? a : b; }
};

{% endif %}{% if self.has("Arg") %}// The column of the largest, or of the smallest: NaN comes first, then the value, then the lower column.
struct Best {
  Number x;
  int column;
};

template <bool Largest>
struct Arg {
  using State = Best;
  // After what came before it in the row.
  CUTE_DEVICE static State next(State a, Number x, int column) {
    bool const before = Largest ? !(x <= a.x) : !(x >= a.x);
    return before && a.x == a.x ? Best{x, column} : a;
  }
  CUTE_DEVICE static Number result(State best) { return best.column == INT32_MAX ? 0 : best.column; }
  CUTE_DEVICE static State nothing() {
    return {Largest ? -numeric_limits<Number>::infinity() : numeric_limits<Number>::infinity(), INT32_MAX};
  }
  CUTE_DEVICE static State of(State a, State b) {
    bool const a_nan = a.x != a.x;
    bool const b_nan = b.x != b.x;
    bool const alike = a_nan == b_nan && (a_nan || a.x == b.x);
    bool const before = a_nan || (!b_nan && (Largest ? a.x > b.x : a.x < b.x));
    return (alike ? a.column < b.column : before) ? a : b;
  }
};

{% endif %}CUTE_DEVICE Number from_lane(Number x, int lanes) { return __shfl_xor_sync(0xffffffff, x, lanes); }
{% if self.has("Arg") %}CUTE_DEVICE Best from_lane(Best x, int lanes) {
  return {from_lane(x.x, lanes), __shfl_xor_sync(0xffffffff, x.column, lanes)};
}
{% endif %}

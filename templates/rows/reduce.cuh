// Reductions: what nothing gives, and how two become one, in either order alike.
CUTE_DEVICE float add(float a, float b) { return __fadd_rn(a, b); }
CUTE_DEVICE double add(double a, double b) { return __dadd_rn(a, b); }
CUTE_DEVICE float multiply(float a, float b) { return __fmul_rn(a, b); }
CUTE_DEVICE double multiply(double a, double b) { return __dmul_rn(a, b); }

{% include "larger.cuh" %}
CUTE_DEVICE double larger(double a, double b) { return a > b || a != a || (a == b && !signbit(a)) ? a : b; }

struct Plain {
  using State = Number;
  CUTE_DEVICE static Number result(State x) { return x; }
};

struct Sum : Plain {
  CUTE_DEVICE static State nothing() { return 0; }
  CUTE_DEVICE static State of(State a, State b) { return add(a, b); }
  // With a product, which is not rounded.
  CUTE_DEVICE static State of(State a, Number x, Number y) { return fma(x, y, a); }
};

struct Product : Plain {
  CUTE_DEVICE static State nothing() { return 1; }
  CUTE_DEVICE static State of(State a, State b) { return multiply(a, b); }
};

struct Max : Plain {
  CUTE_DEVICE static State nothing() { return -numeric_limits<Number>::infinity(); }
  CUTE_DEVICE static State of(State a, State b) { return larger(a, b); }
};

struct Min : Plain {
  CUTE_DEVICE static State nothing() { return numeric_limits<Number>::infinity(); }
  CUTE_DEVICE static State of(State a, State b) { return -larger(-a, -b); }
};

// Of 1 and 0.
struct Any : Plain {
  CUTE_DEVICE static State nothing() { return 0; }
  CUTE_DEVICE static State of(State a, State b) { return a > b ? a : b; }
};

struct All : Plain {
  CUTE_DEVICE static State nothing() { return 1; }
  CUTE_DEVICE static State of(State a, State b) { return a < b ? a : b; }
};

template <class T>
CUTE_DEVICE T from_lane(T x, int lanes) { return __shfl_xor_sync(0xffffffff, x, lanes); }

{% include "rows/arg.cuh" %}
{%- if d.passes.pairs().len() > 0 %}

{% include "rows/online.cuh" %}
{%- endif %}

// The largest, and the sum of exponentials below it.
struct Most {
  Number most;
  Number sum;
};

template <class Exponential>
struct Online {
  using State = Most;
  CUTE_DEVICE static State nothing() { return {Max::nothing(), 0}; }
  // What terms are compared with: there is no difference of -inf and -inf.
  CUTE_DEVICE static Number base(Number most) { return most == Max::nothing() ? 0 : most; }
  // The sum, relative to another maximum.
  CUTE_DEVICE static Number below(State a, Number most) { return multiply(a.sum, Exponential{}(a.most - base(most))); }
  CUTE_DEVICE static State of(State a, State b) {
    Number const most = larger(a.most, b.most);
    return {most, add(below(a, most), below(b, most))};
  }
  // With the terms of a vector.
  template <class Terms>
  CUTE_DEVICE static State next(State a, Terms const& terms) {
    Number most = a.most;
    CUTE_UNROLL
    for (int v = 0; v < size(terms); ++v) {
      most = larger(most, terms(v));
    }
    Number const from = base(most);
    Number sum = below(a, most);
    CUTE_UNROLL
    for (int v = 0; v < size(terms); ++v) {
      sum = add(sum, Exponential{}(terms(v) - from));
    }
    return {most, sum};
  }
  CUTE_DEVICE static Number result(State all) { return all.most; }
  // A row of -inf has a sum of NaN, one without columns has 0.
  CUTE_DEVICE static Number second(State all, int width) {
    return all.most == Max::nothing() && width > 0 ? numeric_limits<Number>::quiet_NaN() : all.sum;
  }
};

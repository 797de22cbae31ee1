// Sums have no scales.
struct Scales {
  CUTE_DEVICE
  void
  read(int, int)
  {}

  // Adds a wave's sums to those in f32.
  template <class TCrP, class TCrC>
  CUTE_DEVICE
  void
  promote(TCrP const& tCrP, TCrC& tCrC) const
  {
    CUTE_UNROLL
    for (int i = 0; i < size(tCrP); ++i) {
      tCrC(i) += tCrP(i);
    }
  }
};

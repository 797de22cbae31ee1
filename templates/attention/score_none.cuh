// Scores as they are.
struct Scoring
{
  float scale;  // of scores to base 2; a scale of 0 has made products 0

  CUTE_DEVICE
  Scoring(Params const& params)
  {
    scale = params.scale == 0 ? 1 : __fmul_rn(fabsf(params.scale), 1.44269504088896f);
  }

  template <class Scores, class Crd>
  CUTE_DEVICE
  void
  apply(Params const&, Work const&, Scores&&, Crd const&, int) const
  {}
};

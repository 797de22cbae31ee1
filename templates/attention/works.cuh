// The works of a CTA, one in each round of all CTAs. Every other round goes back, so that long and short ones even out.
struct Works
{
  Params const& params;
  int round = 0;

  // The next work with queries; false behind the last.
  CUTE_DEVICE
  bool
  next(Work& work)
  {
    int const all  = works(params);
    int const ctas = gridDim.x;
    while (round * ctas < all) {
      int const number = round * ctas + (round % 2 == 0 ? int(blockIdx.x) : ctas - 1 - int(blockIdx.x));
      ++round;
      if (number < all) {
        work = work_of(params, number);
        if (work.first < work.len_q) {
          return true;
        }
      }
    }
    return false;
  }
};

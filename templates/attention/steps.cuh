// The steps of keys that the queries of a tile see, from the last to the first, so that steps with a mask come first.
struct Steps
{
  using Step = decltype(size<0>(TileK{}));  // keys

  Mask mask;
  int query;  // the first of the tile
  int begin;  // the first step
  int count;
  int whole;  // from this number on every query sees all keys of a step
  int left;   // up to this one

  CUTE_DEVICE
  Steps(Params const& params, Work const& work) : mask(params, work.len_q, work.len_k), query(work.first)
  {
    int const last = cute::min(query + size<0>(TileQ{}), work.len_q) - 1;
    begin = mask.first(query) / Step{};
    count = cute::max(0, ceil_div(cute::max(0, mask.end(last)), Step{}) - begin);
    whole = cute::min(count, cute::max(0, begin + count - cute::max(0, mask.end(query)) / Step{}));
    left  = cute::min(count, cute::max(whole, begin + count - ceil_div(mask.first(last), Step{})));
  }

  CUTE_DEVICE
  int
  at(int i) const
  {
    return begin + count - 1 - i;
  }

  // The first key of step number i.
  CUTE_DEVICE
  int
  key(int i) const
  {
    return at(i) * Step{};
  }

  // Scores of keys that a query does not see become -inf.
  template <class Rows, class Crd>
  CUTE_DEVICE
  void
  hide(Rows&& rows_s, Crd const& rows_c, int i) const
  {
    if (i < whole || i >= left) {
      apply(mask, rows_s, rows_c, query, key(i));
    }
  }
};

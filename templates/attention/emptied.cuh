  Empties empties;
  int first_row;
  int last_row;

  // Whether the function of scores makes -inf of all scores of two steps and those between, by their numbers.
  CUTE_DEVICE
  bool
  empty(int i, int j) const
  {
    int const aligned = work.len_k - work.len_q;
    Range const heads([[ c.heads() ]]);
    Range const queries(work.query(first_row) + aligned, work.query(last_row) + aligned);
    Range const keys(key(cute::max(i, j)), cute::min(key(cute::min(i, j)) + Step{}, work.len_k) - 1);
    return empties(work.batch, heads, queries, keys);
  }

  // The number nearest to i, in this direction, whose step is not empty; past the end where there is none. Steps are looked at
  // together, twice as many each time.
  CUTE_DEVICE
  int
  skip(int i, int way) const
  {
    int steps = 1;
    CUTE_NO_UNROLL
    while (steps > 0 && 0 <= i && i < count) {
      int const last = cute::max(0, cute::min(i + way * (steps - 1), count - 1));
      bool const all = empty(i, last);
      i += all ? way * steps : 0;
      steps = all ? 2 * steps : steps / 2;
    }
    return cute::max(-1, cute::min(i, count));
  }

  // Leaves out empty steps at both ends.
  CUTE_DEVICE
  void
  trim()
  {
    keep(at(skip(count - 1, -1)), at(skip(0, 1)) + 1);
    whole = cute::min(whole, count);
    left  = cute::min(left, count);
  }

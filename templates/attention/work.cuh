// The rows of a tensor: of which sequence, by its number, or by its first row, and of which head.
struct Place
{
  int sequence;
  int head;
};

// The work of a CTA: a tile of queries of one head of one sequence. O lies where Q does.
struct Work
{
  static constexpr bool packed = [[ c.recipe.varlen ]];  // whether sequences lie one after the other

  Place q;
  Place k;
  Place v;
  int first;  // the first query
  int len_q;  // queries of the sequence
  int len_k;  // keys of the sequence
  int batch;  // the number of the sequence

  CUTE_DEVICE int rows() const { return len_q; }
  CUTE_DEVICE int query(int row) const { return first + row; }
  CUTE_DEVICE int head(int) const { return q.head; }
};

// With a diagonal the last queries see the most keys: they come first, so that no CTA begins with much work late.
CUTE_DEVICE
int
first_query(int tile, int tiles)
{
  return (Mask::diagonal ? tiles - 1 - tile : tile) * size<0>(TileQ{});
}

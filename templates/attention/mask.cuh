{% let diagonal = c.recipe.has_diagonal() -%}
// The keys that queries see: from first(query) to before end(query). The last query is aligned with the last key.
struct Mask
{
  static constexpr bool diagonal = [[ diagonal ]];  // whether a query sees no keys behind its own, or behind a window
  static constexpr bool window   = [[ c.window ]];  // whether it sees those of a window

  int own;    // the key that query 0 is aligned with
  int left;   // keys ahead of a query's own that it sees
  int right;  // keys behind it
  int len_k;

  CUTE_DEVICE
  Mask(Params const& params, int len_q, int len_k) : own(len_k - len_q), left(most), right(0), len_k(len_k)
  {
{%- if c.window %}
    left  = bound(params.left);
    right = bound(params.right);
{%- endif %}
  }

  CUTE_DEVICE
  int
  first(int query) const
  {
    return window ? cute::max(0, query + own - left) : 0;
  }

  CUTE_DEVICE
  int
  end(int query) const
  {
    return diagonal ? cute::min(len_k, query + own + right + 1) : len_k;
  }

private:
  static constexpr int most = 1 << 29;  // more than any extent; sums of three are integers of 32 bits

  CUTE_DEVICE
  static int
  bound(int keys)
  {
    return keys < 0 || keys > most ? most : keys;
  }
};

// Scores of keys that a query does not see become -inf.
template <class Scores, class Crd, class Work>
CUTE_DEVICE
void
apply(Mask const& mask, Scores&& scores, Crd const& crd, Work const& work, int key)
{
  CUTE_UNROLL
  for (int row = 0; row < size<0>(scores); ++row) {
    int const own   = work.query(get<0>(crd(row,_0{})));
    int const first = mask.first(own) - key;
    int const end   = mask.end(own) - key;
    CUTE_UNROLL
    for (int n = 0; n < size<1>(scores); ++n) {
      int const at = get<1>(crd(row,n));
      if (at < first || at >= end) {
        scores(row,n) = -INFINITY;
      }
    }
  }
}

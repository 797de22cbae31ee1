{% if let Some(score) = c.emptied() -%}
[[ score.helpers ]]
[[ score.emptied ]]
{% endif -%}
// The steps of keys that queries of a tile see, from the last to the first, so that steps with a mask come first.
struct Steps
{
  using Step = decltype(size<0>(TileK{}));  // keys

  Mask mask;
  Work const& work;
  int begin;  // the first step
  int count;
  int whole;  // from this number on every query sees all keys of a step
  int left;   // up to this one

  // Those of so many rows of the tile, from a row on.
  CUTE_DEVICE
  Steps(Params const& params, Work const& work, int row = 0, int rows = size<0>(TileQ{}))
    : mask(params, work.len_q, work.len_k), work(work)
  {
    rows = cute::min(rows, work.rows() - work.first - row);
    int const query = work.query(row);
    int const last  = work.query(row + rows - 1);
    begin = mask.first(query) / Step{};
    count = rows <= 0 ? 0 : cute::max(0, ceil_div(cute::max(0, mask.end(last)), Step{}) - begin);
    whole = cute::min(count, cute::max(0, begin + count - cute::max(0, mask.end(query)) / Step{}));
    left  = cute::min(count, cute::max(whole, begin + count - ceil_div(mask.first(last), Step{})));
{%- if let Some(score) = c.emptied() %}
    empties   = {[[ score.scalars ]]};
    first_row = row;
    last_row  = row + rows - 1;
{%- endif %}
  }

  // Keeps those from `first` to before `end`.
  CUTE_DEVICE
  void
  keep(int first, int end)
  {
    int const behind = cute::max(0, begin + count - end);
    int const ahead  = cute::max(0, first - begin);
    begin += ahead;
    count  = cute::max(0, count - behind - ahead);
    whole -= behind;
    left  -= behind;
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
      apply(mask, rows_s, rows_c, work, key(i));
    }
  }
{%- if let Some(score) = c.emptied() %}

{% include "attention/emptied.cuh" %}
{%- endif %}
};
{%- if c.emptied().is_some() %}

{% include "attention/walk.cuh" %}
{%- endif %}

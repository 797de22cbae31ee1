// The rows of a tensor: of which sequence, by its number, or by its first row, and of which head.
struct Place
{
  int sequence;
  int head;
};

// The work of a CTA: some rows of one key head of one sequence, and the keys of a split. Rows are the queries of all heads that
// share the key head, those of one query one after the other.
struct Work
{
  static constexpr bool packed = [[ c.recipe.varlen ]];  // whether queries of sequences lie one after the other

  Place q;    // its first head
  Place k;    // keys of each sequence are numbered from 0 on
  int first;  // the first row
  int group;  // query heads of a key head
  int len_q;  // queries of the sequence
  int len_k;  // keys of the sequence
  int batch;  // the number of the sequence
  int split;

  CUTE_DEVICE int rows() const { return len_q * group; }
  CUTE_DEVICE int query(int row) const { return (first + row) / group; }
  CUTE_DEVICE int head(int row) const { return q.head + (first + row) % group; }

  // The number of a row among all rows of O, heads first.
  CUTE_DEVICE
  int
  output(Params const& params, int row) const
  {
    int const ahead = packed ? q.sequence : q.sequence * len_q;  // queries of earlier sequences
    return (ahead + query(row)) * params.hq + head(row);
  }
};

CUTE_DEVICE
int
group_of(Params const& params)
{
  return params.hq / params.hk;
}

{% include "attention/keys_of.cuh" %}

{% if c.recipe.varlen -%}
{% include "attention/work_pages_varlen.cuh" %}
{%- else -%}
{% include "attention/work_pages_dense.cuh" %}
{%- endif %}

// Where rows of K and V lie, in elements. The entries of the table are asked for one step ahead, once for each key.
struct Pages
{
  using Keys = decltype(size<0>(TileK{}));
  static constexpr int threads = [[ c.threads ]];
  using Offsets = int64_t[2][2][Keys::value];  // (KEY,TENSOR,STEP): those of K and of V, of two steps

  Params const& params;
  int const* table;
  Offsets& offsets;
  cutlass::FastDivmod by_page;
  static constexpr int each = ceil_div(Keys{}, Int<threads>{});  // keys of a thread
  int entries[each];

  CUTE_DEVICE
  Pages(Params const& params, int batch, Offsets& offsets)
    : params(params),
      table(static_cast<int const*>(params.table) + batch * params.table_stride0),
      offsets(offsets),
      by_page(cute::max(1, params.page))
  {}

  // Asks for the entries of the step with this first key.
  CUTE_DEVICE
  void
  ask(int first)
  {
    CUTE_UNROLL
    for (int n = 0; n < each; ++n) {
      int const key = first + threadIdx.x + n * threads;
      entries[n] = table[cute::min(by_page.div(key), params.entries - 1)];
    }
  }

  // Gives all threads the offsets of the step that was asked for. An entry that names no page is taken for the nearest.
  // It overwrites those of the step before the last, which all have read.
  CUTE_DEVICE
  void
  give(int step, int first)
  {
    CUTE_UNROLL
    for (int n = 0; n < each; ++n) {
      int const at = threadIdx.x + n * threads;
      if (Keys{} % Int<threads>{} == 0 || at < Keys{}) {
        int entry, row;
        by_page(entry, row, first + at);
        int64_t const page = cute::max(0, cute::min(entries[n], params.pages - 1));
        offsets[step % 2][0][at] = page * params.k_page + row * params.k_row;
        offsets[step % 2][1][at] = page * params.v_page + row * params.v_row;
      }
    }
    __syncthreads();
  }
};

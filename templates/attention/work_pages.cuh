// The work of a CTA: some rows of one key head of one sequence, and the keys of a split. Rows are the queries of all heads that
// share the key head, those of one query one after the other.
struct Work
{
  static constexpr bool packed = false;

  int number;
  int batch;
  int key_head;
  int first;  // the first row
  int group;  // query heads of a key head
  int len_q;  // queries of the sequence
  int len_k;  // keys of the sequence
  int split;

  CUTE_DEVICE int rows() const { return len_q * group; }
  CUTE_DEVICE int query(int row) const { return (first + row) / group; }
  CUTE_DEVICE int head(int row) const { return key_head * group + (first + row) % group; }
{%- if c.narrow %}
  CUTE_DEVICE int head_of_keys() const { return key_head; }
{%- endif %}
};

CUTE_DEVICE
int
group_of(Params const& params)
{
  return params.hq / params.hk;
}

// Numbers of works.
CUTE_DEVICE
auto
works(Params const& params)
{
  int const tiles = ceil_div(params.sq * group_of(params), size<0>(TileQ{}));
  return make_layout(make_shape(tiles, params.hk, params.splits, params.b));                   // (tile,head,split,batch) -> number
}

// Keys of a sequence, at most those that its pages and auxiliary tensors have.
CUTE_DEVICE
int
keys_of(Params const& params, int batch)
{
  int const most = params.pages > 0 ? [[ most ]] : 0;
  return cute::max(0, cute::min(static_cast<int const*>(params.lengths)[batch], most));
}

CUTE_DEVICE
Work
work_of(Params const& params, int number)
{
  auto const [tile, head, split, batch] = idx2crd(number, shape(works(params)));
  int const first = tile * size<0>(TileQ{});
  return {number, batch, head, first, group_of(params), params.sq, keys_of(params, batch), split};
}

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

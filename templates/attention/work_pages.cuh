// The work of a CTA: some rows of one key head of one sequence, and the keys of a split. Rows are the queries of all heads that
// share the key head, those of one query one after the other.
struct Work
{
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

// Keys of a sequence, at most those that its pages have.
CUTE_DEVICE
int
keys_of(Params const& params, int batch)
{
  int const most = params.pages > 0 ? params.entries * params.page : 0;
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

// Where rows of K and V lie. An entry of the table that names no page is taken for the nearest.
struct Pages
{
  int const* table;
  int pages;
  cutlass::FastDivmod by_page;

  CUTE_DEVICE
  Pages(Params const& params, int batch)
    : table(static_cast<int const*>(params.table) + batch * params.table_stride0),
      pages(params.pages),
      by_page(cute::max(1, params.page))
  {}

  CUTE_DEVICE
  int64_t
  offset(int key, int64_t page_stride, int64_t row_stride) const
  {
    int entry, row;
    by_page(entry, row, key);
    int const page = cute::max(0, cute::min(table[entry], pages - 1));
    return page * page_stride + row * row_stride;
  }
};

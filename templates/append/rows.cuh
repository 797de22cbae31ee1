[[ rows_of ]]

// Where a row goes in a tensor (PAGES,PAGE,H,D): nowhere, if its position is not in the table, or if its page is none.
template <class Kept>
CUTE_DEVICE
Kept*
place_in(Params const& params, Kept* tensor, int64_t page, int64_t of_page, int64_t head, Row const& row)
{
  if (row.position < 0 || row.position >= params.entries * params.page) {
    return nullptr;
  }
  auto const entries = static_cast<int const*>(params.table) + row.batch * params.table_stride0;
  int const number = entries[row.position / params.page];
  if (number < 0 || number >= params.pages) {
    return nullptr;
  }
  return tensor + (number * page + row.position % params.page * of_page + row.head * head);
}

// What is stored of a number: it is rounded. An element stays as it is.
struct Rounded
{
  CUTE_DEVICE Element operator()(float x) const { return Element(x); }
  CUTE_DEVICE Element operator()(Element x) const { return x; }
};
{% if let Some(kept) = kept %}
using Stored = [[ kept ]];

// A number of 8 bits, relative to the scale of its head. It is rounded once, and saturates.
struct Narrowed
{
  float scale;

  CUTE_DEVICE Stored operator()(float x) const { return Stored(__fdiv_rn(x, scale)); }
  CUTE_DEVICE Stored operator()(Element x) const { return (*this)(float(x)); }
};
{% endif %}
struct AsTheyAre
{
  template <class Src, class Dst, class Keep, class Crd>
  CUTE_DEVICE
  void
  operator()(Row const&, Src const& src, Dst&& dst, Keep const& keep, Crd const&) const
  {
    CUTE_UNROLL
    for (int i = 0; i < size(src); ++i) {
      dst(i) = keep(src(i));
    }
  }
};

// Moves a tile of rows, from element `first` on, through registers, where `change` makes of them what is kept. A thread loads all
// that it has of a row before it stores any of it: both may be one memory.
template <class Load, class Store, class Tile, class From, class To, class Keep, class Change>
CUTE_DEVICE
void
move(Params const& params, int heads, int first, From const& from, To const& to, Keep const& keep, Change const& change)
{
{%- if recipe.varlen %}
  int const first_row = int(blockIdx.x) * size<0>(Tile{});
  if (first_row >= params.tq * heads) {
    return;
  }
  int const behind = first_behind(params, first_row / heads);
{%- endif %}
  if (threadIdx.x >= size(Load{})) {
    return;
  }
  Tensor tXcX = Load{}.get_slice(threadIdx.x).partition_S(make_identity_tensor(Tile{}));  // (CPY,CPY_M,CPY_N) -> (row,element)
  CUTE_UNROLL
  for (int m = 0; m < size<1>(tXcX); ++m) {
    int const number = int(blockIdx.x) * size<0>(Tile{}) + get<0>(tXcX(_0{},m,_0{}));
    if (number >= [[ new ]] * heads) {
      continue;
    }
    Row const row = row_of(params, number, heads[[ hint ]]);
    Element const* const src = from(row);
    auto* const dst = to(row);
    if (dst != nullptr) {
      Tensor rX = make_tensor<Element>(make_shape(size<0>(tXcX), size<2>(tXcX)));                // (CPY,CPY_N)
      Tensor rY = make_tensor<remove_pointer_t<decltype(to(row))>>(rX.layout());                 // (CPY,CPY_N)
      auto const element = [&](int v, int n) { return int(get<1>(tXcX(v,m,n))); };
      auto const vector = [&](auto* ptr, int n) {
        return make_tensor(make_gmem_ptr(ptr + first + element(0, n)), make_layout(size<0>(rX)));  // (CPY)
      };
      CUTE_UNROLL
      for (int n = 0; n < size<1>(rX); ++n) {
        copy_all(Load{}, vector(src, n), rX(_,n));
      }
      change(row, rX, rY, keep(row), element);
      CUTE_UNROLL
      for (int n = 0; n < size<1>(rX); ++n) {
        copy_all(Store{}, rY(_,n), vector(dst, n));
      }
    }
  }
}

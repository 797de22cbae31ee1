// D, or E: row m of the product is the row that an index names, and is not written where D has no such row.
template <class Rows>
struct Named {
  Rows rows;         // (ROWS,N)
  int const* index;  // of the first row of the tile's group
  int count;         // rows of the product from there on

  // Row m, or none.
  CUTE_DEVICE
  auto
  row(int m) const
  {
    int const row = m < count ? index[m] : -1;
    auto* const first = raw_pointer_cast(rows.data());
    return 0 <= row && row < size<0>(rows) ? first + row * stride<0>(rows) : nullptr;
  }
};

struct Scattered {
  Params const& params;

  template <class Rows, class Crd>
  CUTE_DEVICE
  auto
  operator()(Rows const& rows, Crd const& crd_D) const
  {
    auto const index = static_cast<int const*>(params.scatter);
{%- match c.grouped() %}
{%- when true %}
    return Named<Rows>{rows, index + get<3>(crd_D), rows_of(crd_D)};
{%- when false %}
    return Named<Rows>{rows, index, params.m};
{%- endmatch %}
  }
};

// Stores a slice of a tile from shared memory, from row m and column n of the product on. Aligned vectors that do not cross the end
// of a row are stored whole.
template <class SD, class Rows>
CUTE_DEVICE
void
scatter(SD const& sD, Named<Rows> const& mD, int thread, int m, int n)
{
  if (thread >= size(CopyD{})) {
    return;
  }
  int const columns = size<1>(mD.rows);
  uintptr_t const apart = uintptr_t(stride<0>(mD.rows)) * sizeof(typename Rows::value_type);
  bool const aligned = (reinterpret_cast<uintptr_t>(raw_pointer_cast(mD.rows.data())) | apart) % 16 == 0;
  Tensor tDsD = partition_S(CopyD{}, thread, sD);                                              // (CPY,CPY_M,CPY_N)
  Tensor tDcD = CopyD{}.get_slice(thread).partition_D(make_identity_tensor(shape(sD)));        // (CPY,CPY_M,CPY_N) -> (m,n)
  #pragma unroll 2  // bounds registers: accumulators of later slices are live
  for (int i = 0; i < size<1>(tDsD); ++i) {
    auto* const row = mD.row(m + get<0>(tDcD(_0{},i,_0{})));
    if (row == nullptr) {
      continue;
    }
    CUTE_UNROLL
    for (int j = 0; j < size<2>(tDsD); ++j) {
      int const first = n + get<1>(tDcD(_0{},i,j));
      Tensor vector = make_tensor(make_gmem_ptr(row + first), make_layout(size<0>(tDsD)));  // (CPY)
      if (aligned && first + size(vector) <= columns) {
        copy_all(CopyD{}, tDsD(_,i,j), vector);
      } else {
        CUTE_UNROLL
        for (int v = 0; v < size(vector); ++v) {
          if (first + v < columns) {
            vector(v) = tDsD(v,i,j);
          }
        }
      }
    }
  }
}

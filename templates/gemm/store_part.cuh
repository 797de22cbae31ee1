// Stores a slice of a tile of D from shared memory. Aligned vectors that do not cross the end of a row are stored whole.
template <class SD, class MD, class Crd>
CUTE_DEVICE
void
store_part(SD const& sD, MD const& mD, Crd const& crd_D, int part)
{
  if (threadIdx.x >= size(CopyD{})) {
    return;
  }
  constexpr int bytes = sizeof(typename MD::value_type);
  bool const aligned = (reinterpret_cast<uintptr_t>(raw_pointer_cast(mD.data())) | uintptr_t(stride<0>(mD)) * bytes) % 16 == 0;
  auto const thr_copy = CopyD{}.get_slice(threadIdx.x);
  auto const of_part = [&](auto const& matrix) {
    return thr_copy.partition_D(local_tile(local_tile(matrix, [[ c.tile_of_d() ]]{}, crd_D), shape(SD{}), make_coord(part, _0{})));
  };
  Tensor tDsD = partition_S(CopyD{}, threadIdx.x, sD);                                         // (CPY,CPY_M,CPY_N)
  Tensor tDgD = of_part(mD);                                                                   // (CPY,CPY_M,CPY_N)
  Tensor tDcD = of_part(make_identity_tensor(shape(mD)));                                      // (CPY,CPY_M,CPY_N) -> (m,n)
  CUTE_UNROLL
  for (int n = 0; n < size<2>(tDsD); ++n) {
    CUTE_UNROLL
    for (int m = 0; m < size<1>(tDsD); ++m) {
      if (aligned && elem_less(tDcD(size<0>(tDcD) - 1,m,n), shape(mD))) {
        copy_all(CopyD{}, tDsD(_,m,n), tDgD(_,m,n));
      } else {
        CUTE_UNROLL
        for (int i = 0; i < size<0>(tDsD); ++i) {
          if (elem_less(tDcD(i,m,n), shape(mD))) {
            tDgD(i,m,n) = tDsD(i,m,n);
          }
        }
      }
    }
  }
}

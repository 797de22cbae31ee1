// Packs a tile of the rows of A that an index names into the workspace: zeros where A has no such row. Rows are padded with zeros
// to a whole tile.
CUTE_DEVICE
void
gather_tile(Params const& params, Element* to, int cta)
{
  int64_t const ld = params.from_lda;
  Tensor mA = make_tensor(make_gmem_ptr(static_cast<Element const*>(params.a)), make_shape(params.rows_a, params.k),
                          make_stride(params.lda, _1{}));                                      // (ROWS_A,K)
  Tensor mP = make_tensor(make_gmem_ptr(to), make_shape(params.m, int(ld)), make_stride(ld, _1{}));  // (M,LD)
  auto const tiles = make_shape(int(ld) / size<1>(TilePack{}), ceil_div(params.m, size<0>(TilePack{})));
  auto const [column, row] = idx2crd(cta, tiles);
  auto const crd = make_coord(row, column);
  auto const thr_gather = Gather{}.get_slice(threadIdx.x);
  Tensor tP = thr_gather.partition_D(local_tile(mP, TilePack{}, crd));                         // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tC = thr_gather.partition_D(local_tile(make_identity_tensor(shape(mP)), TilePack{}, crd));  // (CPY,..) -> (m,k)
  Tensor tR = make_tensor<Element>(shape(tP));                                                 // (CPY,CPY_ROWS,CPY_COLUMNS)
  clear(tR);
  bool const aligned = (reinterpret_cast<uintptr_t>(params.a) | uintptr_t(params.lda) * sizeof(Element)) % 16 == 0;
  CUTE_UNROLL
  for (int i = 0; i < size<1>(tR); ++i) {
    int const m = get<0>(tC(_0{},i,_0{}));
    int const of_a = m < params.m ? static_cast<int const*>(params.gather)[m] : -1;
    if (of_a < 0 || of_a >= params.rows_a) {
      continue;
    }
    CUTE_UNROLL
    for (int j = 0; j < size<2>(tR); ++j) {
      Tensor vector = make_tensor(make_gmem_ptr(&mA(of_a, get<1>(tC(_0{},i,j)))), make_layout(size<0>(tR)));  // (CPY)
      if (aligned && get<1>(tC(size<0>(tC) - 1,i,j)) < params.k) {
        copy_all(Gather{}, vector, tR(_,i,j));
      } else {
        CUTE_UNROLL
        for (int v = 0; v < size(vector); ++v) {
          if (get<1>(tC(v,i,j)) < params.k) {
            tR(v,i,j) = vector(v);
          }
        }
      }
    }
  }
  CUTE_UNROLL
  for (int i = 0; i < size<1>(tR); ++i) {
    if (get<0>(tC(_0{},i,_0{})) < params.m) {
      copy_all(Gather{}, tR(_,i,_), tP(_,i,_));
    }
  }
}

// The partial sums of shared tiles, one tile for each share of K. They follow the packed operands in the workspace.
CUTE_DEVICE
auto
all_sums(Params const& params)
{
  constexpr int of_one = size(TileD{});
  return make_tensor(make_gmem_ptr(static_cast<[[ c.sum() ]]*>(params.workspace) + params.sums),
                     make_shape(size<0>(TileD{}), size<1>(TileD{}), Int<ctas>{}, params.parts),
                     make_stride(size<1>(TileD{}), _1{}, Int<of_one>{}, int64_t(ctas * of_one)));  // (BM,BN,CTAS,PARTS)
}

// Writes this CTA's partial sums for `reduce`.
template <class TCrC>
CUTE_DEVICE
void
give_sums(Params const& params, Scheduler const& tiles, TCrC const& tCrC)
{
  int const rank = tiles.rank_m + size<0>(Cluster{}) * tiles.rank_n;
  Tensor gW = all_sums(params)(_,_,rank,tiles.part());                                         // (BM,BN)
  Tensor tCgW = Mma{}.get_slice(threadIdx.x % size(Mma{})).partition_C(gW);                    // (MMA,MMA_M,MMA_N)
  copy_all(GiveSums{}, tCrC, tCgW);
}

// Fixup of the shared tiles: D = op(all partial sums added in the order of K, C, ..). One CTA computes one piece of a tile.
CUTE_DEVICE
void
reduce(Params const& params)
{
{%- if c.overlaps() %}
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();  // PDL: all partial sums are written
{%- endif %}
  auto const pieces = shape_div(TileD{}, TilePiece{});                                         // (pieces along M, along N)
  int const shared = blockIdx.y / ctas;                                                        // index among the shared tiles
  int const rank = blockIdx.y % ctas;
  Scheduler const tiles(params, rank);
  auto const crd_D = tiles.crd(params.whole + shared);                                         // (m,n[[ c.modes_l() ]])
  auto const crd = idx2crd(int(blockIdx.x), pieces);
  auto const thr_copy = AddUp{}.get_slice(threadIdx.x);
  auto const piece = [&](auto const& matrix) {
    return thr_copy.partition_D(local_tile(local_tile(matrix, TileD{}, take<0,2>(crd_D)), TilePiece{}, crd));  // (CPY,CPY_M,CPY_N)
  };

  Tensor tWgW = thr_copy.partition_S(local_tile(all_sums(params)(_,_,rank,_), TilePiece{}, crd));  // (CPY,CPY_M,CPY_N,PARTS)
  Tensor tWrW = make_tensor<[[ c.sum() ]]>(shape(tWgW(_,_,_,0)));                                      // (CPY,CPY_M,CPY_N)
  clear(tWrW);
  int const all = gridDim.y / ctas;                                                            // shared tiles
  int const rest = tiles.k_tiles_of_one() - tiles.first_of_rest();
  // Clusters that take this tile's rest: [first, end).
  int const first = rest > 0 ? int(int64_t(shared) * rest / params.k_share) : 0;
  int const end = rest > 0 ? int((int64_t(shared + 1) * rest - 1) / params.k_share) + 1 : 0;
  int const k_parts = params.k_parts + (end - first);
  constexpr int at_once = 8;  // partial sums in flight, to hide the latency of L2
  Tensor tWrP = make_tensor<[[ c.sum() ]]>(append(shape(tWrW), Int<at_once>{}));                       // (CPY,CPY_M,CPY_N,AT_ONCE)
  for (int k_part = 0; k_part < k_parts; k_part += at_once) {
    clear(tWrP);
    CUTE_UNROLL
    for (int j = 0; j < at_once; ++j) {
      int const part = k_part + j;
      int const of_rests = part - params.k_parts;
      if (part < k_parts) {
        copy_all(tWgW(_,_,_,(of_rests < 0 ? part * all : params.k_parts * all + first + of_rests) + shared), tWrP(_,_,_,j));
      }
    }
    CUTE_UNROLL
    for (int j = 0; j < at_once; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < size(tWrW); ++i) {
        tWrW(i) += tWrP(_,_,_,j)(i);
      }
    }
  }


{%- for t in c.epilogue() %}
{% include "gemm/matrix.cuh" %}
{%- endfor %}
  Tensor tWcD = piece(make_identity_tensor(make_shape(params.m, params.n)));                  // (CPY,CPY_M,CPY_N) -> (m,n)
{%- for t in c.outputs() %}
  Tensor tWg[[ t.is.name ]] = piece(m[[ t.is.name ]]);                                                     // (CPY,CPY_M,CPY_N)
{%- endfor %}
{%- for t in c.reads() %}
  Tensor tWg[[ t.is.name ]] = piece(m[[ t.is.name ]]);                                                     // (CPY,CPY_M,CPY_N)
  Tensor tWr[[ t.read_name() ]] = make_tensor<Element[[ t.is.name ]]>(shape(tWcD));                           // (CPY,CPY_M,CPY_N)
  clear(tWr[[ t.read_name() ]]);
  if ([[ t.is_read() ]]) {
    CUTE_UNROLL
    for (int i = 0; i < size(tWcD); ++i) {
      if ([[ t.inside("tWcD(i)") ]]) {
        tWr[[ t.read_name() ]](i) = tWg[[ t.is.name ]](i);
      }
    }
  }
{%- endfor %}
  Op const op{[[ c.op.scalars ]]};
  CUTE_UNROLL
  for (int i = 0; i < size(tWrW); ++i) {
    [[ c.compute() ]] const a = tWrW(i);
    if (elem_less(tWcD(i), make_shape(params.m, params.n))) {
      auto const y = op(a[[ c.inputs("", "tWr", ["(i)", "(i)"]) ]]);
{%- for t in c.written() %}
      tWg[[ t.is.name ]](i) = output<[[ c.output_of(t) ]]>(y);
{%- endfor %}
    }
  }
}

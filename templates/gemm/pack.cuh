{% if c.any_packs() %}// Packs a tile of an operand of any alignment into the workspace. Rows run along its contiguous mode and are padded with zeros to a
// whole tile.
template <class Extents, class Strides>
CUTE_DEVICE
void
pack_tile(void const* from, Extents const& extents, Strides const& strides, Element* to, int64_t ld, int cta)
{
  auto const [rows, columns, matrices] = extents;
  Tensor mS = make_tensor(make_gmem_ptr(static_cast<Element const*>(from)), extents, strides);  // (ROWS,COLUMNS,L)
  Tensor mP = make_tensor(make_gmem_ptr(to), make_shape(rows, int(ld), matrices), make_stride(ld, _1{}, rows * ld));  // (ROWS,LD,L)
  auto const tiles = make_shape(int(ld) / size<1>(TilePack{}), ceil_div(rows, size<0>(TilePack{})), matrices);
  auto const [column, row, l] = idx2crd(cta, tiles);
  auto const crd = make_coord(row, column);
  auto const residue = make_coord(rows - row * size<0>(TilePack{}), columns - column * size<1>(TilePack{}));
  auto const thr_pack = Pack{}.get_slice(threadIdx.x);
  Tensor tS = thr_pack.partition_S(local_tile(mS(_,_,l), TilePack{}, crd));                    // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tP = thr_pack.partition_D(local_tile(mP(_,_,l), TilePack{}, crd));                    // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tC = thr_pack.partition_S(make_identity_tensor(TilePack{}));                          // (CPY,CPY_ROWS,CPY_COLUMNS) -> (row,column) of the tile
  Tensor tR = make_tensor<Element>(shape(tC));                                                 // (CPY,CPY_ROWS,CPY_COLUMNS)
  if (size<0>(TilePack{}) <= get<0>(residue) && size<1>(TilePack{}) <= get<1>(residue)) {
    CUTE_UNROLL
    for (int i = 0; i < size(tR); ++i) {
      tR(i) = tS(i);
    }
    CUTE_UNROLL
    for (int i = 0; i < size(tR); ++i) {
      tP(i) = tR(i);
    }
    return;
  }
  CUTE_UNROLL
  for (int i = 0; i < size(tR); ++i) {
    tR(i) = elem_less(tC(i), residue) ? tS(i) : Element(0);
  }
  CUTE_UNROLL
  for (int i = 0; i < size(tR); ++i) {
    if (get<0>(tC(i)) < get<0>(residue)) {
      tP(i) = tR(i);
    }
  }
}

{% endif %}{% if c.any_turns() %}// Transposes a tile of an operand of any alignment into the workspace. The source is contiguous along its rows. The result's rows run
// along the other mode and are padded with zeros to a whole tile.
template <class Extents, class Strides>
CUTE_DEVICE
void
turn_tile(void const* from, Extents const& extents, Strides const& strides, Element* to, int64_t ld, int cta)
{
  auto const [rows, columns, matrices] = extents;
  Tensor mS = make_tensor(make_gmem_ptr(static_cast<Element const*>(from)), extents, strides);  // (ROWS,COLUMNS,L)
  Tensor mP = make_tensor(make_gmem_ptr(to), make_shape(rows, int(ld), matrices), make_stride(ld, _1{}, rows * ld));  // (ROWS,LD,L)
  auto const tiles = make_shape(ceil_div(rows, size<0>(TilePack{})), int(ld) / size<1>(TilePack{}), matrices);
  auto const [row, column, l] = idx2crd(cta, tiles);
  auto const crd = make_coord(row, column);
  auto const residue = make_coord(rows - row * size<0>(TilePack{}), columns - column * size<1>(TilePack{}));
  Tensor cS = make_identity_tensor(TilePack{});                                                // (ROWS,COLUMNS) -> (row,column) of the tile
  __shared__ Element smem[cosize_v<SmemT>];
  Tensor sT = make_tensor(make_smem_ptr(smem), SmemT{});                                       // (ROWS,COLUMNS)

  auto const thr_turn = Turn{}.get_slice(threadIdx.x);
  Tensor tS = thr_turn.partition_S(local_tile(mS(_,_,l), TilePack{}, crd));                    // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tC = thr_turn.partition_S(cS);                                                        // (CPY,CPY_ROWS,CPY_COLUMNS) -> (row,column) of the tile
  Tensor tT = partition_D(Turn{}, threadIdx.x, sT);                                            // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tR = make_tensor<Element>(shape(tT));                                                 // (CPY,CPY_ROWS,CPY_COLUMNS)
  CUTE_UNROLL
  for (int i = 0; i < size(tR); ++i) {
    tR(i) = elem_less(tC(i), residue) ? tS(i) : Element(0);
  }
  copy_all(Turn{}, tR, tT);
  __syncthreads();

  auto const thr_turned = Turned{}.get_slice(threadIdx.x);
  Tensor tTurned = partition_S(Turned{}, threadIdx.x, sT);                                     // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tP = thr_turned.partition_D(local_tile(mP(_,_,l), TilePack{}, crd));                  // (CPY,CPY_ROWS,CPY_COLUMNS)
  Tensor tPc = thr_turned.partition_D(cS);                                                     // (CPY,CPY_ROWS,CPY_COLUMNS) -> (row,column) of the tile
  CUTE_UNROLL
  for (int i = 0; i < size(tP); ++i) {
    if (get<0>(tPc(i)) < get<0>(residue)) {
      tP(i) = tTurned(i);
    }
  }
}

{% endif %}// Packs A, B or both for the entry that multiplies.
CUTE_DEVICE
void
pack([[ c.plan.name() ]]_params const& params)
{
{% if c.overlaps() %}  cudaTriggerProgrammaticLaunchCompletion();  // PDL: the entry that multiplies may begin, and waits for this one
  cudaGridDependencySynchronize();            // PDL: the kernel before this one has written the operands, and no longer reads the workspace
{% endif %}  int const cta = blockIdx.x;
  auto const workspace = static_cast<Element*>(params.workspace);
{% for t in c.factors() %}{% let p = t.is.param %}  {% if loop.first %}if (cta < params.packs_[[ p ]]) {% else %}} else {% endif %}{
    {% if c.turns(t) %}turn_tile{% else %}pack_tile{% endif %}(params.[[ p ]], [[ c.rows(t) ]],
              workspace + params.packed_[[ p ]], params.from_[[ c.strides(t)[0] ]], {% if loop.first %}cta{% else %}cta - params.packs_a{% endif %});
{% endfor %}  }
}

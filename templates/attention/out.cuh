// The tile of O of a work.
CUTE_DEVICE
auto
out(Params const& params, Work const& work)
{
  auto const ptr_O = static_cast<Element*>(params.o)
                   + work.q.sequence * params.o_[[ c.recipe.modes("o")[0] ]]
                   + work.q.head * params.o_head;
  auto const shape_O = make_shape(work.len_q, Value{});
  Tensor mO = make_tensor(make_gmem_ptr(ptr_O), shape_O, make_stride(params.o_row, _1{}));      // (SQ,DV)
  return local_tile(mO, TileO{}, make_coord(work.first / size<0>(TileO{}), _0{}));               // (BM,DV)
}

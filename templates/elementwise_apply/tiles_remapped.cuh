  // Blocks are renumbered, so that neighbouring blocks take neighbouring tiles of a row: (RestN,RestM) -> (RestM,RestN)
  auto rest_MN = ceil_div(shape_MN, TilerMN{});  // (RestM,RestN)
  auto remap_block = make_ordered_layout(select<1,0>(rest_MN), Step<_1,_0>{});  // (RestN,RestM), RestM fastest
  auto tile = [&](auto const& mT) {
    return composition(zipped_divide(mT, TilerMN{}), make_tile(_, remap_block))(make_coord(_,_), int(blockIdx.x));
  };
{% for t in c.tensors %}  Tensor g[[ t.name ]] = tile(m[[ t.name ]]);  // (TileM,TileN)
{% endfor %}  Tensor gI = tile(mI);  // (TileM,TileN) -> (m,n)

  auto tile = [&](auto const& mT) { return zipped_divide(mT, TilerMN{})(make_coord(_,_), int(blockIdx.x)); };
{% for t in c.tensors %}  Tensor g[[ t.name ]] = tile(m[[ t.name ]]);  // (TileM,TileN)
{% endfor %}  Tensor gI = tile(mI);  // (TileM,TileN) -> (m,n)

    // Predicates along M and N, the same for all k-tiles: elements of each vector that lie in the matrix
{% for f in c.factors %}{% let x = f.tile.name %}    Tensor t[[ x ]]c[[ x ]] = thr_copy_[[ f.param ]].partition_S(make_identity_tensor(Tile[[ x ]]{}))(_0{},_,_);  // (CPY_[[ f.mode ]],CPY_K) -> ([[ f.row ]],k)
    Tensor t[[ x ]]p[[ x ]] = make_tensor<int>(make_shape(size<0>(t[[ x ]]c[[ x ]]), size<1>(t[[ x ]]c[[ x ]])), Stride<_1,_0>{});  // (CPY_[[ f.mode ]],CPY_K)
    CUTE_UNROLL
    for (int [[ f.row ]] = 0; [[ f.row ]] < size<0>(t[[ x ]]p[[ x ]]); ++[[ f.row ]]) {
      t[[ x ]]p[[ x ]]([[ f.row ]], 0) = params.[[ f.row ]] - tile_[[ f.row ]] * size<0>(Tile[[ x ]]{}) - get<0>(t[[ x ]]c[[ x ]]([[ f.row ]], 0));
    }
{% endfor %}
    // The first k-tile holds K's residue, so it also needs a predicate along K
    int const begin_k = k_tile_begin == 0 ? -residue_k : 0;
{% for f in c.factors %}{% let x = f.tile.name %}    CUTE_UNROLL
    for (int i = 0; i < size<1>(t[[ x ]]s[[ x ]]); ++i) {
      copy_residue(copy_[[ f.param ]], [[ f.is_vector() ]], get<1>(t[[ x ]]c[[ x ]](i)) < begin_k ? 0 : t[[ x ]]p[[ x ]](i), t[[ x ]]g[[ x ]](_,i,k_tile_begin), t[[ x ]]s[[ x ]](_,i,0));
    }
{% endfor %}    cp_async_fence();


    Pages const pages(params, work);
    using PartK = decltype(replace<0>(TileK{}, Part{}));
    using PartV = decltype(replace<1>(TileV{}, Part{}));
    Tensor pK = local_tile(sK, PartK{}, make_coord(_, _0{}));                                   // (PART,D,parts,STAGES)
    Tensor pV = local_tile(sV, PartV{}, make_coord(_0{}, _));                                   // (DV,PART,parts,STAGES)
    // The box of a part of a step, which begins with this key: its coordinates, and where all parts go.
    auto const k_from = [&](int key) {
      Tensor gK = k_of(params, {pages.of(key), work.k.head});                                   // (PAGE,D)
      return parts(TmaK{}, pK, local_tile(gK, PartK{}, make_coord(key % Page{} / Part{}, _0{})));  // (TMA), (TMA,parts,STAGES)
    };
    auto const v_from = [&](int key) {
      Tensor gV = v_of(params, {pages.of(key), work.v.head});                                   // (DV,PAGE)
      return parts(TmaV{}, pV, local_tile(gV, PartV{}, make_coord(_0{}, key % Page{} / Part{})));  // (TMA), (TMA,parts,STAGES)
    };
    auto const boxes = [](auto const& from) {
      return [&](Underscore, int step) { return Boxes(from, step * size<0>(TileK{})); };
    };
    auto const of_q = parts(TmaQ{}, sQ, gQ);                                                   // (TMA), (TMA,1)
    auto const of_k = make_tuple(boxes(k_from), group_modes<0,2>(get<1>(k_from(0))));          // boxes, ((TMA,parts),STAGES)
    auto const of_v = make_tuple(boxes(v_from), group_modes<0,2>(get<1>(v_from(0))));          // boxes, ((TMA,parts),STAGES)
  //
  // Epilogue: vectors along N where they are whole and aligned. A row's inputs are read before it is written: they may alias D
  //

  Tensor tCcD = thr_mma.partition_C(cD)(_0{},_,_);                      // (MMA_M,MMA_N) -> (m,n)
  Tensor tDcD = zipped_divide(tCcD, Shape<_1,Int<[[ c.vec_n() ]]>>{});              // ((_1,VEC),(MMA_M,MMA_N/VEC)) -> (m,n)
  Tensor tDrC = zipped_divide(tCrC(_0{},_,_), Shape<_1,Int<[[ c.vec_n() ]]>>{});    // ((_1,VEC),(MMA_M,MMA_N/VEC))
{% for o in c.stores() %}  Tensor tDg[[ o.is.name ]] = zipped_divide(thr_mma.partition_C(g[[ o.is.name ]])(_0{},_,_), Shape<_1,Int<[[ c.vec_n() ]]>>{});  // ((_1,VEC),(MMA_M,MMA_N/VEC))
{% endfor %}
{% if c.d.recipe.split_k == 1 %}  Op const op{[[ c.op.scalars ]]};
{% endif %}  CUTE_UNROLL
  for (int m = 0; m < size<1,0>(tDrC); ++m) {
{% for o in c.reads() %}    Tensor tDr[[ o.read_name() ]] = make_tensor<Element[[ o.is.name ]]>(make_shape(size<0>(tDrC), size<1,1>(tDrC)));  // (VEC,MMA_N/VEC)
    clear(tDr[[ o.read_name() ]]);
{% endfor %}    auto const at    = [&](int n) { return make_coord(make_coord(_0{}, _), make_coord(m, n)); };  // a vector: (VEC)
    auto const whole = [&](int n) {
      return {% if c.vec_n() > 1 %}params.aligned_d && {% endif %}elem_less(tDcD(make_coord(_0{}, size<0,1>(tDcD) - 1), make_coord(m, n)), shape_MN);
    };
    auto const inside = [&](int n) {
      return [=](int i) { return elem_less(tDcD(at(n))(i), shape_MN); };
    };
{% if !c.reads().is_empty() %}    CUTE_UNROLL
    for (int n = 0; n < size<1,1>(tDrC); ++n) {
{% for o in c.reads() %}{% if !o.vector.is_empty() %}      if ({% if !o.guard.is_empty() %}[[ o.guard ]] && {% endif %}whole(n)) {
        copy_all(Copy_Atom<UniversalCopy<[[ o.vector ]]>, Element[[ o.is.name ]]>{}, tDg[[ o.is.name ]](at(n)), tDr[[ o.read_name() ]](_, n));
      } else {% if !o.guard.is_empty() %}if ([[ o.guard ]]) {% endif %}{
        copy_all_if(inside(n), tDg[[ o.is.name ]](at(n)), tDr[[ o.read_name() ]](_, n));
      }
{% else if !o.guard.is_empty() %}      if ([[ o.guard ]]) {
        copy_all_if(inside(n), tDg[[ o.is.name ]](at(n)), tDr[[ o.read_name() ]](_, n));
      }
{% else %}      copy_all_if(inside(n), tDg[[ o.is.name ]](at(n)), tDr[[ o.read_name() ]](_, n));
{% endif %}{% endfor %}    }
{% endif %}    CUTE_UNROLL
    for (int n = 0; n < size<1,1>(tDrC); ++n) {
      Tensor tDrD = make_tensor<float>(size<0>(tDrC));  // (VEC)
      CUTE_UNROLL
      for (int i = 0; i < size(tDrD); ++i) {
        tDrD(i) = {% if c.d.recipe.split_k > 1 %}tDrC(at(n))(i){% else %}op(tDrC(at(n))(i)[[ c.converted("tDr", "(i, n)") ]]){% endif %};
      }
      if (whole(n)) {
        copy_all(Copy_Atom<UniversalCopy<uint[[ 32 * c.vec_n() ]]_t>, float>{}, tDrD, tDg{% if c.d.recipe.split_k > 1 %}W{% else %}D{% endif %}(at(n)));
      } else {
        copy_all_if(inside(n), tDrD, tDg{% if c.d.recipe.split_k > 1 %}W{% else %}D{% endif %}(at(n)));
      }
    }
  }

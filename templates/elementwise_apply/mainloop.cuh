  //
  // Main loop
  //

  Op const op{[[ c.scalars ]]};
  auto apply = [&]([[ c.fragments("auto const& r", "auto& r") ]]) {
    CUTE_UNROLL
    for (int i = 0; i < size(r[[ c.last().name ]]); ++i) {
      auto const y = op([[ c.arguments("r", "(i)") ]]);
{% for t in c.outputs() %}      r[[ t.name ]](i) = [[ c.result(t, "y") ]];
{% endfor %}    }
  };

  if (all_inside) {
    // Every vector is whole: all loads of a step, then the function, then the stores.
    CUTE_NO_UNROLL
    for (int step = 0; step < size(Vectors{}); step += size<1>(Fragment{})) {
{% for t in c.tensors %}      Tensor r[[ t.name ]] = make_tensor<Element[[ t.name ]]>(Fragment{});  // (VEC,UNROLL)
{% endfor %}      CUTE_UNROLL
      for (int u = 0; u < size<1>(Fragment{}); ++u) {
{% for t in c.inputs() %}        copy_vector<[[ t.vector ]]>(vector(g[[ t.name ]], step + u), r[[ t.name ]](_,u));
{% endfor %}      }
      apply([[ c.fragments("r", "r") ]]);
      CUTE_UNROLL
      for (int u = 0; u < size<1>(Fragment{}); ++u) {
{% for t in c.outputs() %}        copy_vector<[[ t.vector ]]>(r[[ t.name ]](_,u), vector(g[[ t.name ]], step + u));
{% endfor %}      }
    }
    return;
  }

  // An edge: one vector at a time. A vector that is aligned and lies inside entirely is moved whole.
  CUTE_NO_UNROLL
  for (int v = 0; v < size(Vectors{}); ++v) {
    Tensor tYcY = vector(gI, v);  // (VEC) -> (m,n)
    Tensor tYpY = make_tensor<bool>(size<0>(Fragment{}));  // (VEC)
    CUTE_UNROLL
    for (int i = 0; i < size(tYpY); ++i) {
      tYpY(i) = inside(tYcY(i), v);
    }
    bool const whole = params.aligned && tYpY(0) && tYpY(size(tYpY) - 1);
{% for t in c.tensors %}    Tensor r[[ t.name ]] = make_tensor<Element[[ t.name ]]>(size<0>(Fragment{}));  // (VEC)
{% endfor %}{% for t in c.inputs() %}    clear(r[[ t.name ]]);
{% endfor %}    if (whole) {
{% for t in c.inputs() %}      copy_vector<[[ t.vector ]]>(vector(g[[ t.name ]], v), r[[ t.name ]]);
{% endfor %}    } else {
{% for t in c.inputs() %}      copy_all_if(tYpY, vector(g[[ t.name ]], v), r[[ t.name ]]);
{% endfor %}    }
    apply([[ c.fragments("r", "r") ]]);
    if (whole) {
{% for t in c.outputs() %}      copy_vector<[[ t.vector ]]>(r[[ t.name ]], vector(g[[ t.name ]], v));
{% endfor %}    } else {
{% for t in c.outputs() %}      copy_all_if(tYpY, r[[ t.name ]], vector(g[[ t.name ]], v));
{% endfor %}    }
  }

  //
  // Epilogue: what goes with D is read by the thread that writes D there, before, as it may be the same memory
  //

{% for t in c.reads() %}  Tensor tCg[[ t.is.name ]] = thr_mma.partition_C(local_tile(m[[ t.is.name ]], TileD{}, crd_D));  // (MMA,MMA_M,MMA_N)
{% endfor %}{% if c.has_e() %}  Tensor tCgE = thr_mma.partition_C(local_tile(mE, TileD{}, crd_D));                           // (MMA,MMA_M,MMA_N)
{% endif %}  Op const op{[[ c.op.scalars ]]};
  CUTE_UNROLL
  for (int n = 0; n < size<2>(tCrC); ++n) {
    CUTE_UNROLL
    for (int m = 0; m < size<1>(tCrC); ++m) {
{% for t in c.reads() %}      Tensor tCr[[ t.read_name() ]] = make_tensor<Element[[ t.is.name ]]>(shape<0>(tCrC));                       // (MMA)
      clear(tCr[[ t.read_name() ]]);
      {% if !t.guard.is_empty() %}if ([[ t.guard ]]) {% endif %}{
        CUTE_UNROLL
        for (int i = 0; i < size<0>(tCrC); ++i) {
          if ([[ t.inside("tCcD(i,m,n)") ]]) {
            tCr[[ t.read_name() ]](i) = tCg[[ t.is.name ]](i,m,n);
          }
        }
      }
{% endfor %}      CUTE_UNROLL
      for (int i = 0; i < size<0>(tCrC); ++i) {
        float const a = tCrC(i,m,n);
        if (elem_less(tCcD(i,m,n), shape(mD))) {
{% if c.has_e() %}          auto const y = [[ c.computed("tCr", "(i)") ]];
          tCgE(i,m,n) = [[ c.rounded("get<1>(y)") ]];
          tCgD(i,m,n) = [[ c.rounded("get<0>(y)") ]];
{% else %}          tCgD(i,m,n) = [[ c.rounded(c.computed("tCr", "(i)").as_str()) ]];
{% endif %}        }
      }
    }
  }

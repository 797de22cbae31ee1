  //
  // Epilogue: the inputs of a row of the thread tile are read before it is written: they may alias D
  //

  Op const op{[[ c.op.scalars ]]};
  CUTE_UNROLL
  for (int i = 0; i < size<0>(tCrC); ++i) {
{% for t in c.reads() %}    Tensor tCr[[ t.read_name() ]] = make_tensor<float>(shape<1>(tCrC));  // (TN)
{% endfor %}
{%- if !c.reads().is_empty() %}    CUTE_UNROLL
    for (int j = 0; j < size<1>(tCrC); ++j) {
      if (elem_less(tCcD(i, j), shape(mD))) {
{% for t in c.reads() %}        tCr[[ t.read_name() ]](j) = [[ t.load("tCg", "(i, j)") ]];
{% endfor %}      }
    }
{% endif %}    CUTE_UNROLL
    for (int j = 0; j < size<1>(tCrC); ++j) {
      if (elem_less(tCcD(i, j), shape(mD))) {
        tCgD(i, j) = op(tCrC(i, j)[[ c.registers("tCr", "(j)") ]]);
      }
    }
  }

  Tensor rows_c = by_rows(Output{}.get_slice(threadIdx.x).partition_C(cO));  // (ROWS,COLUMNS) -> (query,element)
  auto const ptr_lse = static_cast<float*>(params.lse)
                     + (work.q.sequence * params.lse_[[ c.recipe.modes("o")[0] ]] + work.q.head * params.lse_head);
  CUTE_UNROLL
  for (int row = 0; row < size<0>(rows_c); ++row) {
    constexpr float ln2 = 0.693147180559945f;
    float const sum = softmax.whole(row);
    auto const crd = rows_c(row,_0{});
    int const query = work.first + get<0>(crd);
    if (get<1>(crd) == 0 && query < work.len_q) {
      ptr_lse[query * params.lse_row] = sum == 0 ? -INFINITY : __fmaf_rn(softmax.most[row], ln2, logf(sum));
    }
  }

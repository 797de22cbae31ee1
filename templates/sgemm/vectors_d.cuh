  Tensor tCcD = thr_mma.partition_C(cD)(_0{},_,_);                // (MMA_M,MMA_N) -> (m,n)
  Tensor tDcD = zipped_divide(tCcD, Shape<_1,VecN>{});  // ((_1,VEC),(MMA_M,MMA_N/VEC)) -> (m,n)
  Tensor tDrC = zipped_divide(tCrC(_0{},_,_), Shape<_1,VecN>{});  // ((_1,VEC),(MMA_M,MMA_N/VEC))
{% for t in stores %}{% let x = t.is.name %}  Tensor tCg[[ x ]] = thr_mma.partition_C(g[[ x ]])(_0{},_,_);  // (MMA_M,MMA_N)
  Tensor tDg[[ x ]] = zipped_divide(tCg[[ x ]], Shape<_1,VecN>{});  // ((_1,VEC),(MMA_M,MMA_N/VEC))
{% endfor -%}

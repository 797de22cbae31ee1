{% if d.schedule.cluster > 1 %}  // Each warp tells its part to all CTAs of the row.
  if (threadIdx.x % 32 < RowCtas) {
{% for r in s.reductions %}{% if r.group.is_none() %}    *in_cta(&sValue[[ r.value ]](_0{}, int(blockIdx.x) % RowCtas * RowWarps + threadIdx.x / 32), threadIdx.x % 32) = state[[ r.value ]];
{% endif %}{% endfor %}  }
  cluster_arrive();
  cluster_wait();
{% else %}  if (threadIdx.x % 32 == 0) {
{% for r in s.reductions %}{% if r.group.is_none() %}    sValue[[ r.value ]](threadIdx.x / RowThreads, threadIdx.x % RowThreads / 32) = state[[ r.value ]];
{% endif %}{% endfor %}  }
  __syncthreads();
{% endif %}{% for r in s.reductions %}{% if r.group.is_none() %}  state[[ r.value ]] = of_parts<[[ r.op ]], RowCtas * RowWarps>(sValue[[ r.value ]](threadIdx.x / RowThreads, _));
{% endif %}{% endfor %}
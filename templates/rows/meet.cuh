
{%- for r in s.of_rows() %}
  tell(sValue[[ r.value ]], state[[ r.value ]]);
{%- endfor %}
  __syncthreads();  // all warps have told theirs
{%- for r in s.of_rows() %}
  state[[ r.value ]] = of_parts<[[ r.op ]]>(sValue[[ r.value ]]);
{%- endfor %}


{%- if d.schedule.cluster > 1 %}
{%- for r in s.of_rows() %}
  tell(sValue[[ r.value ]], state[[ r.value ]], [[ s.barrier() ]]);
{%- endfor %}
  meet([[ s.barrier() ]]);
{%- else %}
{%- for r in s.of_rows() %}
  tell(sValue[[ r.value ]], state[[ r.value ]]);
{%- endfor %}
  __syncthreads();  // all warps have told theirs
{%- endif %}
{%- for r in s.of_rows() %}
  state[[ r.value ]] = of_parts<[[ r.op ]]>(sValue[[ r.value ]]);
{%- endfor %}

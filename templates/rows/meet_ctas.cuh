
{%- for r in s.of_rows() %}
  tell(sValue[[ r.value ]], state[[ r.value ]], [[ s.barrier() ]]);
{%- endfor %}
  meet([[ s.barrier() ]]);
{%- for r in s.of_rows() %}
  state[[ r.value ]] = of_parts<[[ r.op ]]>(sValue[[ r.value ]]);
{%- endfor %}

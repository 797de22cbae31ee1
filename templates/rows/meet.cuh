
{%- for r in s.met() %}
  tell(sValue[[ r.value ]], state[[ r.value ]]);
{%- endfor %}
  meet();
{%- for r in s.met() %}
  state[[ r.value ]] = of_parts<[[ r.op ]]>(sValue[[ r.value ]]);
{%- endfor %}

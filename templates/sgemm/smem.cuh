{% for s in smem %}using Smem[[ s.name ]]   = [[ s.layout ]];  // [[ s.modes ]]
{% endfor %}{% for s in smem %}using Load[[ s.name ]]   = AutoVectorizingCopyWithAssumedAlignment<[[ s.load_bits ]]>;  // s[[ s.name ]] to registers
{% endfor %}{% for s in smem %}// Banks, s[[ s.name ]]: [[ s.banks ]].
{% endfor -%}

{% for f in c.factors %}using Load[[ f.name ]] = AutoVectorizingCopyWithAssumedAlignment<[[ f.load_bits ]]>;  // s[[ f.name ]] to registers
{% endfor %}{% for f in c.factors %}// Banks, s[[ f.name ]]: [[ f.banks ]].
{% endfor -%}

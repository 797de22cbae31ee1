{% for f in c.factors %}using Load[[ f.tile.name ]] = AutoVectorizingCopyWithAssumedAlignment<[[ f.load_bits ]]>;  // s[[ f.tile.name ]] to registers
{% endfor %}{% for f in c.factors %}// Banks, s[[ f.tile.name ]]: [[ f.banks ]].
{% endfor -%}

{% for a in c.aliases %}using [[ a.name ]] = [[ a.ty ]];  // [[ a.comment ]]
{% endfor %}{% for f in c.factors %}{% let x = f.tile.name -%}
using Load[[ x ]] = AutoVectorizingCopyWithAssumedAlignment<[[ f.load_bits ]]>;  // s[[ x ]] to registers
{% endfor %}{% for f in c.factors %}// Banks, s[[ f.tile.name ]]: [[ f.banks ]].
{% endfor -%}

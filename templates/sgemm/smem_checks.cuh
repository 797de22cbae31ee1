{% for f in c.factors %}static_assert(cosize(Smem[[ f.tile.name ]]{}) * sizeof(float) == [[ f.bytes ]], "bytes of s[[ f.tile.name ]]");
static_assert(get<[[ 1 - f.tile.contiguous() ]]>(stride(Smem[[ f.tile.name ]]{}{% if f.tile.swizzle.is_some() %}.layout_b(){% endif %})) * sizeof(float) % [[ f.tile.align.0 ]] == 0, "columns of s[[ f.tile.name ]] begin at multiples of its widest access");
{% if f.tile.layout.rank() > 2 %}static_assert(get<2>(stride(Smem[[ f.tile.name ]]{}{% if f.tile.swizzle.is_some() %}.layout_b(){% endif %})) * sizeof(float) % [[ f.tile.align.0 ]] == 0, "and so do its stages");
{% endif %}{% if f.tile.swizzle.is_some() %}static_assert((1 << remove_cvref_t<decltype(Smem[[ f.tile.name ]]{}.layout_a())>::num_base) * sizeof(float) % [[ f.tile.align.0 ]] == 0, "which its swizzle keeps whole");
{% endif %}{% endfor -%}

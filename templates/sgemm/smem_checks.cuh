{% for f in c.factors %}static_assert(cosize(Smem[[ f.name ]]{}) * sizeof(float) == [[ f.bytes ]], "bytes of s[[ f.name ]]");
static_assert(get<[[ f.columns ]]>(stride(Smem[[ f.name ]]{}{% if f.swizzled %}.layout_b(){% endif %})) * sizeof(float) % [[ f.alignment ]] == 0, "columns of s[[ f.name ]] begin at multiples of its widest access");
{% if f.staged %}static_assert(get<2>(stride(Smem[[ f.name ]]{}{% if f.swizzled %}.layout_b(){% endif %})) * sizeof(float) % [[ f.alignment ]] == 0, "and so do its stages");
{% endif %}{% if f.swizzled %}static_assert((1 << remove_cvref_t<decltype(Smem[[ f.name ]]{}.layout_a())>::num_base) * sizeof(float) % [[ f.alignment ]] == 0, "which its swizzle keeps whole");
{% endif %}{% endfor -%}

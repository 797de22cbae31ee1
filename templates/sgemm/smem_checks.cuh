{% for s in smem %}static_assert(cosize(Smem[[ s.name ]]{}) * sizeof(float) == [[ s.bytes ]], "bytes of s[[ s.name ]]");
static_assert(get<[[ s.columns ]]>(stride([[ s.plain() ]])) * sizeof(float) % [[ s.alignment ]] == 0, "columns of s[[ s.name ]] begin at multiples of its widest access");
{% if s.staged %}static_assert(get<2>(stride([[ s.plain() ]])) * sizeof(float) % [[ s.alignment ]] == 0, "and so do its stages");
{% endif %}{% if s.swizzled %}static_assert((1 << remove_cvref_t<decltype(Smem[[ s.name ]]{}.layout_a())>::num_base) * sizeof(float) % [[ s.alignment ]] == 0, "which its swizzle keeps whole");
{% endif %}{% endfor -%}

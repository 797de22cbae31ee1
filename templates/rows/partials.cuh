// What a thread has of its columns[[ kept ]].
template <class Walk>
struct Partials {
  using Own = decltype(typename Walk::Columns{}.get_slice(0).partition_S(make_identity_tensor(Tile{})));  // (CPY,CPY_M,CHUNKS)
  using Values = decltype(make_tensor<Number>(make_shape(size<0>(declval<Own>()), size<2>(declval<Own>()))));  // (VEC,CHUNKS)
{%- for o in outputs %}
  Values [[ o.of.name ]];
{%- endfor %}
{%- for t in weights %}
  Part<Walk, Element[[ t.name ]], typename Walk::Load[[ t.name ]]> [[ t.name ]];
{%- endfor %}
{%- if queues %}
  int slot = 0;  // the stage of its rows
{%- endif %}

  CUTE_DEVICE
  Partials()
  {
{% for o in outputs %}    fill([[ o.of.name ]], [[ o.op ]]::nothing());
{% endfor %}  }
};

CUTE_DEVICE
auto
parts_of([[ plan.name() ]]_params const& params)
{
  return make_tensor(make_gmem_ptr(static_cast<Number*>(params.workspace)),
                     make_shape(params.parts, params.n, Int<[[ outputs.len() ]]>{}),
                     make_stride(int64_t(params.n), _1{}, int64_t(params.parts) * params.n));  // (PARTS,N,OUTPUTS)
}

// Results of columns side by side, 16 bytes at a time: a sector of memory is written in two parts and not in eight.
template <class Values>
CUTE_DEVICE
void
write_vector(Values const& values, Number* to)
{
  Tensor gTo = make_tensor(make_gmem_ptr(to), shape(values));  // (VEC)
  copy_all(AutoVectorizingCopyWithAssumedAlignment<128>{}, values, gTo);
}

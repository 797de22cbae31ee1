
  // Stores each row where an index says.
  template <class Crd>
  CUTE_DEVICE
  void
  store_elements(Crd const& crd_D) const
  {
{%- for t in c.written() %}
{% include "gemm/matrix.cuh" %}
{%- endfor %}
    int const thread = anew(threadIdx.x % size(Mma{}));
    int const m = get<0>(crd_D) * size<0>(PartD{});
    int const n = get<1>(crd_D) * size<1>(PartD{});
{%- for t in c.written() %}
    scatter(as_position_independent_swizzle_tensor(sD(_,_,place([[ c.output_of(t) ]]))), m[[ t.is.name ]], thread, m, n);
{%- endfor %}
  }

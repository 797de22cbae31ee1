//
// Columns: each CTA reduces its rows, then `[[ join ]]` joins the parts
//

constexpr bool Meets = [[ meets ]];  // warps of a row tell each other values, once for a row

// What a thread has of its columns[[ kept ]].
template <class Walk>
struct Partials {
  using Own = decltype(typename Walk::Columns{}.get_slice(0).partition_S(make_identity_tensor(Tile{})));  // (CPY,CPY_M,CHUNKS)
  using Values = decltype(make_tensor<Number>(make_shape(size<0>(declval<Own>()), size<2>(declval<Own>()))));  // (VEC,CHUNKS)
{% for o in outputs %}  Values [[ o.of.name ]];
{% endfor %}{% for t in weights %}  Part<Walk, Element[[ t.name ]], typename Walk::Load[[ t.name ]]> [[ t.name ]];
{% endfor %}{% if stages > 1 %}  int slot = 0;  // the stage of its rows
{% endif %}
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

// The rows of a CTA: every gridDim.x-th tile.
template <class Walk>
CUTE_DEVICE
void
reduce_rows([[ plan.name() ]]_params const& params)
{
  Partials<Walk> columns;
{% if stages > 1 %}{% include "rows/ahead.cuh" %}
{% endif %}  int const tiles = ceil_div(params.m, size<0>(Tile{}));
  for (int tile = int(blockIdx.x); tile < tiles; tile += int(gridDim.x)) {
{% if stages > 1 %}    ask<Walk>(params, tile + (Stages - 1) * int(gridDim.x), (columns.slot + Stages - 1) % Stages);
    cp_async_wait<Stages - 1>();
{% endif %}    traverse<Walk>(params, tile, columns);
{% if stages > 1 %}    columns.slot = (columns.slot + 1) % Stages;
{% endif %}    if constexpr (Meets) {
      __syncthreads();  // every warp has read what the next tile overwrites
    }
  }

  Tensor mPart = parts_of(params);  // (PARTS,N,OUTPUTS)
  Tensor tcRow = typename Walk::Columns{}.get_slice(threadIdx.x).partition_S(make_identity_tensor(Tile{}));  // (CPY,CPY_M,CHUNKS)
  int const part = int(blockIdx.x) * size<0>(Tile{}) + get<0>(tcRow(_0{}));
  CUTE_UNROLL
  for (int c = 0; c < size<2>(tcRow); ++c) {
    if constexpr (Walk::whole) {
      int const n = get<1>(tcRow(_0{}, _0{}, c));
      if (n < params.n) {
{% for o in outputs %}        write_vector(columns.[[ o.of.name ]](_, c), &mPart(part, n, _[[ loop.index0 ]]{}));
{% endfor %}      }
    } else {
      CUTE_UNROLL
      for (int v = 0; v < size<0>(tcRow); ++v) {
        int const n = get<1>(tcRow(v, _0{}, c));
        if (n < params.n) {
{% for o in outputs %}          mPart(part, n, _[[ loop.index0 ]]{}) = columns.[[ o.of.name ]](v, c);
{% endfor %}        }
      }
    }
  }
}

CUTE_DEVICE
void
kernel([[ plan.name() ]]_params const& params)
{
  reduce_rows<Vectors>(params);
}

CUTE_DEVICE
void
[[ elements ]]([[ plan.name() ]]_params const& params)
{
  reduce_rows<Elements>(params);
}

{% include "rows/join.cuh" %}

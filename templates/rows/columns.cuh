//
// Columns: each CTA reduces its rows, then `[[ join ]]` joins the parts
//

constexpr bool Meets = [[ meets ]];  // warps of a row tell each other values, once for a row

{% include "rows/partials.cuh" %}

// The rows of a CTA, or its part of them: every n-th tile.
template <class Walk>
CUTE_DEVICE
void
reduce_rows([[ plan.name() ]]_params const& params)
{
  Partials<Walk> columns;
  int const ctas = [[ row_ctas ]];  // of a row
  int const rank = int(blockIdx.x) % ctas;
  int const first = int(blockIdx.x) / ctas;
  int const step = int(gridDim.x) / ctas;
  Tensor cAll = make_identity_tensor(make_shape(params.m, params.n));  // (M,N) -> (m,n)
  Tensor cRow = local_tile(cAll, Tile{}, make_coord(0, rank));  // (ROWS,COLUMNS) -> (m,n)
  Tensor tcRow = typename Walk::Columns{}.get_slice(threadIdx.x).partition_S(cRow);  // (CPY,CPY_M,CHUNKS) -> (m,n)
[[ tiles ]]

  Tensor mPart = parts_of(params);  // (PARTS,N,OUTPUTS)
  int const part = first * size<0>(Tile{}) + get<0>(tcRow(_0{}));
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

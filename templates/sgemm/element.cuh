{% include "sgemm/head.cuh" %}
{% for a in c.aliases %}using [[ a.name ]] = [[ a.ty ]];  // [[ a.comment ]]
{% endfor -%}
using ThrD  = decltype(take<0,2>([[ thr_d ]]{}));  // (thr_m,thr_n) -> tid

//
// Preconditions: every number that the plan computed
//

static_assert(size(ThrD{}) == [[ c.plan.threads() ]] && cosize(ThrD{}) == size(ThrD{}), "each thread once");
static_assert(size(ThrD{}) == size(TileD{}), "one thread for one element");

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "sgemm/cta_tile.cuh" %}
{% let tensors = c.operands.as_slice() %}{% include "sgemm/tensors.cuh" %}
  //
  // The element of D of this thread
  //

  Tensor cD   = local_tile(make_identity_tensor(shape(mD)), TileD{}, make_coord(tile_m, tile_n));  // (BM,BN) -> (m,n)
  Tensor tDcD = local_partition(cD, ThrD{}, threadIdx.x);  // (_1,_1) -> (m,n)
  if (!elem_less(tDcD(0), shape(mD))) {
    return;
  }
  auto const [m, n] = tDcD(0);

  //
  // Main loop: row m of A times column n of B
  //

  Tensor tDmA = mA(m, _);  // (K)
  Tensor tDmB = mB(n, _);  // (K)
  float tDrC = 0.0f;
  for (int k = 0; k < size(tDmA); ++k) {
    tDrC += tDmA(k) * tDmB(k);
  }

  //
  // Epilogue
  //

  Op const op{[[ c.op.scalars ]]};
  mD(m, n) = op(tDrC[[ c.arguments("m", "(m, n)") ]]);
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

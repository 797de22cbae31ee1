// D = op(all partial sums added in the order of K, C, ..) for the tiles that are split along K.
// Launch: [[ c.plan.entries()[1].threads ]] threads, (ceil_div(BM*BN,[[ c.plan.entries()[1].threads ]]), cut) blocks.
CUTE_DEVICE
void
reduce([[ c.plan.name() ]]_params const& params)
{
  auto shape_NM = select<1,0>(TileD{});
  int const thread_idx = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (thread_idx >= size(shape_NM)) {
    return;
  }
  auto [tile_n, tile_m{% if c.d.recipe.batched %}, l{% endif %}] = idx2crd(params.whole + int(blockIdx.y), {% include "sgemm/tiles_nm.cuh" %});
  Tensor cD = local_tile(make_identity_tensor(make_shape(params.m, params.n)), TileD{}, make_coord(tile_m, tile_n));  // (BM,BN) -> (m,n)
  auto [tile_crd_n, tile_crd_m] = idx2crd(thread_idx, shape_NM);
  auto [m, n] = cD(tile_crd_m, tile_crd_n);
  if (m >= params.m || n >= params.n) {
    return;
  }

{% for t in c.epilogue() %}{% include "tensor.cuh" %}{% if c.d.recipe.batched %}(_,_,l){% endif %};  // [[ t.modes ]]
{% endfor %}{% for t in c.sums.iter() %}{% include "tensor.cuh" %};  // [[ t.modes ]]
{% endfor %}  Tensor tWmW = mW(tile_crd_m, tile_crd_n, make_coord(int(blockIdx.y), _));  // (PARTS)
  float sum = 0.0f;
  for (int p = 0; p < size(tWmW); ++p) {
    sum += tWmW(p);
  }

  Op const op{[[ c.op.scalars ]]};
  mD(m, n) = op(sum[[ c.arguments("m", "(m, n)") ]]);
}

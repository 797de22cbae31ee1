// D = op(all partial sums added in the order of K, C, ..) for the tiles that are split along K.
// Launch: [[ c.reduce_threads() ]] threads, (ceil_div(BM*BN,[[ c.reduce_threads() ]]), cut) blocks.
CUTE_DEVICE
void
reduce([[ c.plan.name() ]]_params const& params)
{
  auto shape_NM = select<1,0>(TileD{});
  int const thread_idx = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (thread_idx >= size(shape_NM)) {
    return;
  }
  auto const tiles_NM = make_shape(ceil_div(params.n, size<1>(TileD{})), ceil_div(params.m, size<0>(TileD{})), [[ c.batches() ]]);
  auto [tile_n, tile_m, l] = idx2crd(params.whole + int(blockIdx.y), tiles_NM);
  auto const crd_D = make_coord(tile_m, tile_n);
  Tensor cD = local_tile(make_identity_tensor(make_shape(params.m, params.n)), TileD{}, crd_D);  // (BM,BN) -> (m,n)
  auto [tile_crd_n, tile_crd_m] = idx2crd(thread_idx, shape_NM);
  auto [m, n] = cD(tile_crd_m, tile_crd_n);
  if (m >= params.m || n >= params.n) {
    return;
  }

{% let tensors = c.epilogue() %}{% include "sgemm/tensors.cuh" %}
{% for t in c.sums %}{% include "tensor.cuh" %};  // [[ t.modes ]]
{% endfor %}  Tensor tWmW = mW(tile_crd_m, tile_crd_n, make_coord(int(blockIdx.y), _));  // (PARTS)
  float sum = 0.0f;
  for (int p = 0; p < size(tWmW); ++p) {
    sum += tWmW(p);
  }

  Op const op{[[ c.op.scalars ]]};
  mD(m, n) = op(sum[[ c.arguments("m", "(m, n)") ]]);
}

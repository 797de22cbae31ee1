// Elements of D: four neighbours of row m from column n on, where these sums are whole.
CUTE_DEVICE
void
store(Params const& params, int m, int n, float4 const& sums)
{
{%- for t in self.epilogue() %}
{% include "tensor.cuh" %};  // [[ t.modes ]]
{%- endfor %}
  Op const op{[[ op.scalars ]]};
  float const each[4] = {sums.x, sums.y, sums.z, sums.w};
  CUTE_UNROLL
  for (int i = 0; i < 4; ++i) {
    float const a = each[i];
    float const y = op(a[[ self.arguments("(m, n + i)") ]]);
    mD(m, n + i) = [[ self.rounded("y") ]];
  }
}

// The sums of CTAs that share tiles, a tile for each. The tile of a CTA's share of tile t has the number of the CTA plus t.
CUTE_DEVICE
auto
all_parts(Params const& params)
{
  constexpr int64_t of_one = size(TileD{});
  return make_tensor(make_gmem_ptr(static_cast<float*>(params.workspace)),
                     make_shape(size<0>(TileD{}), size<1>(TileD{}), params.parts),
                     make_stride(size<1>(TileD{}), _1{}, of_one));                             // (BM,BN,PARTS)
}

CUTE_DEVICE
void
add(float4& sums, float4 const& more)
{
  sums.x += more.x;
  sums.y += more.y;
  sums.z += more.z;
  sums.w += more.w;
}

// Adds up the sums of all slices in the order of K, 16 rows at a time. They are stored, or given to `reduce` as this part.
template <class Crd, class TCrC>
CUTE_DEVICE
void
finish(Params const& params, Crd const& crd_D, int slice, TCrC const& tCrC, float* shared, int of_parts)
{
  Tensor sSums = make_tensor(make_smem_ptr(shared), SmemSums{});                               // (PART,BN,SLICES)
  Tensor tCsC = Mma{}.get_slice(threadIdx.x % size(Mma{})).partition_C(sSums(_,_,slice));      // (MMA,_1,MMA_N)
  using Part = decltype(take<0,2>(shape(SmemSums{})));
  auto const thr_add = AddSlices{}.get_slice(threadIdx.x);
  Tensor tDsD = thr_add.partition_S(sSums);                                                    // (CPY,CPY_M,CPY_N,SLICES)
  Tensor tDcD = thr_add.partition_S(make_identity_tensor(Part{}));                             // (CPY,CPY_M,CPY_N) -> (m,n)
  Tensor mParts = all_parts(params);                                                           // (BM,BN,PARTS)
  CUTE_UNROLL
  for (int part = 0; part < size<1>(tCrC); ++part) {
    __syncthreads();  // all have read what lay there
    copy_all(GiveSums{}, tCrC(_,part,_), tCsC(_,_0{},_));
    __syncthreads();
    CUTE_UNROLL
    for (int i = 0; i < size<1>(tDsD) * size<2>(tDsD); ++i) {
      auto const at = make_coord(i % size<1>(tDsD), i / size<1>(tDsD));
      float4 sums = *reinterpret_cast<float4 const*>(&tDsD(_0{},get<0>(at),get<1>(at),_0{}));
      CUTE_UNROLL
      for (int other = 1; other < slices; ++other) {
        add(sums, *reinterpret_cast<float4 const*>(&tDsD(_0{},get<0>(at),get<1>(at),other)));
      }
      auto const crd = tDcD(_0{},get<0>(at),get<1>(at));
      int const row = part * size<0>(Part{}) + get<0>(crd);
      int const m = get<0>(crd_D) * size<0>(TileD{}) + row;
      int const n = get<1>(crd_D) * size<1>(TileD{}) + get<1>(crd);
      if (of_parts >= 0) {
        *reinterpret_cast<float4*>(&mParts(row, get<1>(crd), of_parts)) = sums;
      } else if (m < params.m && n < params.n) {
        store(params, m, n, sums);
      }
    }
  }
}

// D = op(the sums of all CTAs that share the tile, in the order of K, C, ..). A CTA adds up a piece of a tile.
CUTE_DEVICE
void
reduce(Params const& params)
{
  wait_for_others();
  int const tile = blockIdx.x;
  int const units = units_of_tile(params);
  int const first = tile * units / params.k_share;
  int const last = (tile * units + units - 1) / params.k_share;
  if (first == last) {
    return;  // one CTA has computed it
  }
  Tensor mParts = all_parts(params);                                                           // (BM,BN,PARTS)
  Tensor cD = local_tile(make_identity_tensor(TileD{}), AddParts::Tiler_MN{},
                         make_coord(blockIdx.y, blockIdx.z));                                  // (ROWS,COLUMNS) -> (m,n)
  auto const [row, column] = AddParts{}.get_slice(threadIdx.x).partition_S(cD)(0);
  int const m = tile % tiles_m(params) * size<0>(TileD{}) + row;
  int const n = tile / tiles_m(params) * size<1>(TileD{}) + column;
  if (m >= params.m || n >= params.n) {
    return;
  }
  float4 sums = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int cta = first; cta <= last; ++cta) {
    add(sums, *reinterpret_cast<float4 const*>(&mParts(row, column, cta + tile)));
  }
  store(params, m, n, sums);
}

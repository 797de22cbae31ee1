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

// The sums of all CTAs that share tiles of D.
CUTE_DEVICE
auto
all_parts(Params const& params)
{
  int64_t const of_one = int64_t(params.m) * params.n;
  return make_tensor(make_gmem_ptr(static_cast<float*>(params.workspace)), make_shape(params.m, params.n, params.parts),
                     make_stride(int64_t(params.n), _1{}, of_one));                            // (M,N,PARTS)
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

// Adds up the sums of all slices in the order of K, 16 rows at a time. They are stored, or given to `reduce`.
template <class Crd, class TCrC>
CUTE_DEVICE
void
finish(Params const& params, Crd const& crd_D, int slice, TCrC const& tCrC, float* shared)
{
  Tensor sSums = make_tensor(make_smem_ptr(shared), SmemSums{});                               // (PART,BN,SLICES)
  Tensor tCsC = Mma{}.get_slice(threadIdx.x % size(Mma{})).partition_C(sSums(_,_,slice));      // (MMA,_1,MMA_N)
  using Part = decltype(take<0,2>(shape(SmemSums{})));
  auto const thr_add = AddSlices{}.get_slice(threadIdx.x);
  Tensor tDsD = thr_add.partition_S(sSums);                                                    // (CPY,CPY_M,CPY_N,SLICES)
  Tensor tDcD = thr_add.partition_S(make_identity_tensor(Part{}));                             // (CPY,CPY_M,CPY_N) -> (m,n)
  Tensor mParts = all_parts(params);                                                           // (M,N,PARTS)
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
      int const m = int(get<0>(crd_D)) * size<0>(TileD{}) + part * size<0>(Part{}) + get<0>(crd);
      int const n = int(get<1>(crd_D)) * size<1>(TileD{}) + get<1>(crd);
      if (m < params.m && n < params.n) {
        if (params.parts > 1) {
          *reinterpret_cast<float4*>(&mParts(m, n, int(blockIdx.z))) = sums;
        } else {
          store(params, m, n, sums);
        }
      }
    }
  }
}

// D = op(the sums of all CTAs in the order of K, C, ..).
CUTE_DEVICE
void
reduce(Params const& params)
{
  Tensor mParts = all_parts(params);                                                           // (M,N,PARTS)
  Tensor cD = local_tile(make_identity_tensor(make_shape(params.m, params.n)), AddParts::Tiler_MN{},
                         make_coord(blockIdx.y, blockIdx.x));                                  // (ROWS,COLUMNS)
  auto const [m, n] = AddParts{}.get_slice(threadIdx.x).partition_S(cD)(0);
  if (m >= params.m || n >= params.n) {
    return;
  }
  float4 sums = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int part = 0; part < params.parts; ++part) {
    add(sums, *reinterpret_cast<float4 const*>(&mParts(m, n, part)));
  }
  store(params, m, n, sums);
}

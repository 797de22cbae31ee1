//
// Columns: each CTA reduces its rows, then `[[ join ]]` joins the parts
//

constexpr bool Meets = [[ meets ]];  // warps of a row tell each other values

// What a thread has of its columns.
template <class Walk>
struct Partials {
  using Own = decltype(typename Walk::Columns{}.get_slice(0).partition_S(make_identity_tensor(Tile{})));  // (CPY,CPY_M,CHUNKS)
  using Values = decltype(make_tensor<Number>(make_shape(size<0>(declval<Own>()), size<2>(declval<Own>()))));  // (VEC,CHUNKS)
{% for o in outputs %}  Values [[ o.name ]];
{% endfor %}
  CUTE_DEVICE
  Partials()
  {
{% for o in outputs %}    fill([[ o.name ]], [[ o.op ]]::nothing());
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

// The rows of a CTA: every gridDim.x-th tile.
template <class Walk>
CUTE_DEVICE
void
reduce_rows([[ plan.name() ]]_params const& params)
{
  Partials<Walk> columns;
  int const tiles = ceil_div(params.m, size<0>(Tile{}));
  for (int tile = int(blockIdx.x); tile < tiles; tile += int(gridDim.x)) {
    traverse<Walk>(params, tile, columns);
    if constexpr (Meets) {
      __syncthreads();  // every warp has read what the next tile overwrites
    }
  }

  Tensor mPart = parts_of(params);  // (PARTS,N,OUTPUTS)
  Tensor tcRow = typename Walk::Columns{}.get_slice(threadIdx.x).partition_S(make_identity_tensor(Tile{}));  // (CPY,CPY_M,CHUNKS)
  int const part = int(blockIdx.x) * size<0>(Tile{}) + get<0>(tcRow(_0{}));
  CUTE_UNROLL
  for (int c = 0; c < size<2>(tcRow); ++c) {
    CUTE_UNROLL
    for (int v = 0; v < size<0>(tcRow); ++v) {
      int const n = get<1>(tcRow(v, _0{}, c));
      if (n < params.n) {
{% for o in outputs %}        mPart(part, n, _[[ loop.index0 ]]{}) = columns.[[ o.name ]](v, c);
{% endfor %}      }
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

// Which thread has which part of which column
{% for alias in aliases %}using [[ alias.name ]] = [[ alias.ty ]];  // [[ alias.comment ]]
{% endfor %}{% for assertion in assertions %}static_assert([[ assertion.condition ]], "[[ assertion.what ]]");
{% endfor %}
// Every warp takes every 32nd part of 32 columns, one for each lane; then it joins the warps' results of one column.
// For columns past the end it gives what nothing gives.
template <class Op, class Parts>
CUTE_DEVICE
Number
joined([[ plan.name() ]]_params const& params, int output, Parts& sParts)
{
  Tensor mPart = parts_of(params)(_, _, output);  // (PARTS,N)
  auto const warp = int(threadIdx.x) / 32;
  auto const lane = int(threadIdx.x) % 32;
  int const n = int(blockIdx.x) * size<0>(sParts) + lane;
  auto state = Op::nothing();
  if (n < params.n) {
    for (int part = warp; part < params.parts; part += size<1>(sParts)) {
      state = Op::of(state, mPart(part, n));
    }
  }
  sParts(lane, warp) = state;
  __syncthreads();
  return Op::result(of_lanes<Op, 32>(sParts(warp, lane)));
}

// Launch: [[ threads ]] threads, (ceil_div(N,32), [[ outputs.len() ]]) blocks.
CUTE_DEVICE
void
[[ join ]]([[ plan.name() ]]_params const& params)
{
  __shared__ Number smemParts[cosize_v<SmemParts>];
  Tensor sParts = make_tensor(make_smem_ptr(smemParts), SmemParts{});  // (COLUMNS,WARPS)
  int const n = int(blockIdx.x) * 32 + int(threadIdx.x) / 32;
  bool const writes = threadIdx.x % 32 == 0 && n < params.n;
{% for o in outputs %}  if (blockIdx.y == [[ loop.index0 ]]) {
    auto const ptr_[[ o.name ]] = make_gmem_ptr(static_cast<Element[[ o.name ]]*>(params.[[ o.param ]]));
    Tensor m[[ o.name ]] = make_tensor(ptr_[[ o.name ]], [[ o.shape ]], [[ o.strides ]]);  // (N)
    Number const result = joined<[[ o.op ]]>(params, [[ loop.index0 ]], sParts);
    if (writes) {
      m[[ o.name ]](n) = [[ o.stored ]];
    }
  }
{% endfor %}}

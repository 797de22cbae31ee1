  for (int stage = 0; stage < Stages - 1; ++stage) {
    ask<Walk>(params, int(blockIdx.x) + stage * int(gridDim.x), stage);
  }
{%- if !weights.is_empty() %}
  auto const thr_row = typename Walk::Columns{}.get_slice(threadIdx.x);
  Tensor tcCol = thr_row.partition_S(make_identity_tensor(Tile{}));  // (CPY,CPY_M,CHUNKS)
  auto const inside = [&](int v, int c) { return get<1>(tcCol(Walk::whole ? 0 : v, _0{}, c)) < params.n; };
{%- endif %}
{%- for t in weights %}
  auto const ptr_[[ t.name ]] = static_cast<Element[[ t.name ]] const*>(params.[[ t.param ]]);
  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(ptr_[[ t.name ]]), [[ t.shape ]], [[ t.strides ]]);  // [[ t.modes ]]
  Tensor g[[ t.name ]] = local_tile(m[[ t.name ]], Tile{}, make_coord(0, 0));  // (ROWS,COLUMNS)
  using Load[[ t.name ]] = typename Walk::Load[[ t.name ]];
  move_all<Walk, Load[[ t.name ]]>(inside, Load[[ t.name ]]{}.get_slice(threadIdx.x).partition_S(g[[ t.name ]]), columns.[[ t.name ]]);
{%- endfor %}

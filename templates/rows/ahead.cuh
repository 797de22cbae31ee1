  for (int stage = 0; stage < Stages - 1; ++stage) {
    ask<Walk>(params, first + stage * step, rank, stage);
  }
{%- if !weights.is_empty() %}
  auto const inside = [&](int v, int c) { return get<1>(tcRow(Walk::whole ? 0 : v, _0{}, c)) < params.n; };
{%- endif %}
{%- for t in weights %}
{%- let x = t.name %}
  auto const ptr_[[ x ]] = static_cast<Element[[ x ]] const*>(params.[[ t.param ]]);
  Tensor m[[ x ]] = make_tensor(make_gmem_ptr(ptr_[[ x ]]), [[ t.shape ]], [[ t.strides ]]);  // [[ t.modes ]]
  Tensor g[[ x ]] = local_tile(m[[ x ]], Tile{}, make_coord(0, rank));  // (ROWS,COLUMNS)
  using Load[[ x ]] = typename Walk::Load[[ x ]];
  move_all<Walk, Load[[ x ]]>(inside, Load[[ x ]]{}.get_slice(threadIdx.x).partition_S(g[[ x ]]), columns.[[ x ]]);
{%- endfor %}

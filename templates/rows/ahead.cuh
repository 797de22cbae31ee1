  for (int stage = 0; stage < Stages - 1; ++stage) {
    ask<Walk>(params, first + stage * step, rank, stage);
  }
{%- if !weights.is_empty() %}
  auto const inside = [&](int v, int c) { return get<1>(tcRow(Walk::whole ? 0 : v, _0{}, c)) < params.n; };
{%- endif %}
{%- for t in weights %}
  auto const ptr_[[ t.name ]] = static_cast<Element[[ t.name ]] const*>(params.[[ t.param ]]);
  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(ptr_[[ t.name ]]), [[ t.shape ]], [[ t.strides ]]);  // [[ t.modes ]]
  Tensor g[[ t.name ]] = local_tile(m[[ t.name ]], Tile{}, make_coord(0, rank));  // (ROWS,COLUMNS)
  using Load[[ t.name ]] = typename Walk::Load[[ t.name ]];
  move_all<Walk, Load[[ t.name ]]>(inside, Load[[ t.name ]]{}.get_slice(threadIdx.x).partition_S(g[[ t.name ]]), columns.[[ t.name ]]);
{%- endfor %}

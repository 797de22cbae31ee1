
  //
  // Tensors
  //

{% for t in matrices %}{% if t.kind != Kind::Unused %}  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ t.pointee ]]*>(params.[[ t.param ]])), [[ t.shape ]],
                          [[ t.strides ]]);  // [[ t.modes ]]
{% endif %}{% endfor %}{% for r in exchanged %}  __shared__ [[ r.op ]]::State smemValue[[ r.value ]][RowCtas * size<0>(Tile{}) * [[ plan.threads() ]] / 32];
  static_assert(sizeof(smemValue[[ r.value ]]) == cosize_v<typename Walk::SmemValue[[ r.value ]]> * sizeof(Number), "parts of warps");
  Tensor sValue[[ r.value ]] = make_tensor(make_smem_ptr(smemValue[[ r.value ]]), make_shape(size<0>(Tile{}), Int<RowCtas * [[ plan.threads() ]] / 32>{}), LayoutRight{});  // (ROWS,WARPS)
{% endfor %}{% if d.schedule.cluster > 1 %}  // The CTAs of a row have started before one writes into another's shared memory.
  cluster_arrive_relaxed();
{% endif %}
  //
  // Partition: the rows of the CTA, then the columns of the thread
  //

{% if d.schedule.cluster > 1 %}  auto const cta_crd = make_coord(tile / RowCtas, tile % RowCtas);
{% else %}  auto const cta_crd = make_coord(tile, _0{});
{% endif %}  Tensor cRow = local_tile(make_identity_tensor(make_shape(params.m, params.n)), Tile{}, cta_crd);  // (ROWS,COLUMNS) -> (m,n)
  Tensor tcRow = typename Walk::Columns{}.get_slice(threadIdx.x).partition_S(cRow);  // (CPY,CPY_M,CHUNKS) -> (m,n)
  constexpr int Vec = decltype(size<0>(tcRow))::value;
  constexpr int Chunks = decltype(size<2>(tcRow))::value;
  int const m = get<0>(tcRow(_0{}));
  // Rows past the end have no columns: their threads take part in reductions.
  int const width = m < params.m ? params.n : 0;
  auto const inside = [&](int v, int c) { return get<1>(tcRow(Walk::whole ? 0 : v, _0{}, c)) < width; };

{% for t in matrices %}{% let x = t.name %}{% if t.kind == Kind::Row %}  Element[[ x ]] row[[ x ]]{};
  if (m < params.m) {
    row[[ x ]] = m[[ x ]](m);
  }
{% elif t.kind == Kind::Load || t.kind == Kind::Late %}  Tensor t[[ x ]] = typename Walk::Load[[ x ]]{}.get_slice(threadIdx.x).partition_S(local_tile(m[[ x ]], Tile{}, cta_crd));  // (CPY,CPY_M,CHUNKS)
  Tensor r[[ x ]] = make_fragment_like(t[[ x ]]);  // (CPY,CPY_M,CHUNKS)
{% elif t.kind == Kind::Store %}  Tensor t[[ x ]] = typename Walk::Store[[ x ]]{}.get_slice(threadIdx.x).partition_D(local_tile(m[[ x ]], Tile{}, cta_crd));  // (CPY,CPY_M,CHUNKS)
  Tensor r[[ x ]] = make_fragment_like(t[[ x ]]);  // (CPY,CPY_M,CHUNKS)
{% endif %}{% endfor %}
  // All loads are in flight together.
{% for t in matrices %}{% if t.kind == Kind::Load %}  CUTE_UNROLL
  for (int c = 0; c < Chunks; ++c) {
    move<Walk, typename Walk::Load[[ t.name ]]>(inside, c, t[[ t.name ]], r[[ t.name ]]);
  }
{% endif %}{% endfor %}
{% if d.schedule.cluster > 1 %}  cluster_wait();
{% endif %}
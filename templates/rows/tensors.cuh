
  //
  // Tensors
  //
{% for t in self.used() %}
  auto const ptr_[[ t.name ]] = static_cast<[[ t.pointee ]]*>(params.[[ t.param ]]);
  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(ptr_[[ t.name ]]), [[ t.shape ]], [[ t.strides ]]);  // [[ t.modes ]]
{%- endfor %}
{%- for r in exchanged %}
  using Value[[ r.value ]] = typename Walk::SmemValue[[ r.value ]];
  __shared__ [[ r.op ]]::State smemValue[[ r.value ]][size<0>(Value[[ r.value ]]{}) * size<1>(Value[[ r.value ]]{})];
  static_assert(sizeof(smemValue[[ r.value ]]) == cosize_v<Value[[ r.value ]]> * sizeof(Number), "parts of warps");
  auto const shape_Value[[ r.value ]] = make_shape(size<0>(Value[[ r.value ]]{}), size<1>(Value[[ r.value ]]{}));
  auto const ptr_Value[[ r.value ]] = make_smem_ptr(smemValue[[ r.value ]]);
  Tensor sValue[[ r.value ]] = make_tensor(ptr_Value[[ r.value ]], shape_Value[[ r.value ]], LayoutRight{});  // (ROWS,WARPS)
{%- endfor %}
{%- if d.schedule.cluster > 1 %}
{%- if !exchanged.is_empty() %}
{%- include "rows/met.cuh" %}
{%- endif %}
  // The CTAs of a row have started before one writes into another's shared memory.
  cluster_arrive_relaxed();
{%- endif %}

  //
  // Partition: the rows of the CTA, then the columns of the thread
  //

  auto const cta_crd = make_coord(row_tile, _);
  auto const thr_row = typename Walk::Columns{}.get_slice(threadIdx.x);
  Tensor cRow = local_tile(make_identity_tensor(make_shape(params.m, params.n)), Tile{}, cta_crd);  // (ROWS,COLUMNS,TILES) -> (m,n)
  Tensor tcRow = thr_row.partition_S(cRow);  // (CPY,CPY_M,CHUNKS,TILES) -> (m,n)
  [[ self.perhaps_unused() ]]constexpr int Vec = decltype(size<0>(tcRow))::value;
  [[ self.perhaps_unused() ]]constexpr int Chunks = decltype(size<2>(tcRow))::value;
  int const m = get<0>(tcRow(_0{}));
  // Rows past the end have no columns: their threads take part in reductions.
  int const width = m < params.m ? params.n : 0;
  [[ self.perhaps_unused() ]]int const tiles = RowTiles > 0 ? RowTiles : ceil_div(width, size<1>(Tile{}));
  auto const inside_of = [&](int tile) {
    return [&, tile](int v, int c) { return get<1>(tcRow(Walk::whole ? 0 : v, _0{}, c, tile)) < width; };
  };
{% for t in self.of(Kind::Row) %}
  Element[[ t.name ]] row[[ t.name ]]{};
  if (m < params.m) {
    row[[ t.name ]] = m[[ t.name ]](m);
  }
{%- endfor %}
{%- for (t, row) in self.gathered() %}
{%- let (x, modes) = (t.name, t.modes.as_str()) %}
  bool const is_row = rowIndex >= 0 && rowIndex < params.rows;
  if (m < params.m && !is_row) {
    __trap();  // the index names no row
  }
  auto const ptr_[[ x ]] = static_cast<[[ t.pointee ]]*>(params.[[ t.param ]]) + int64_t(rowIndex)[[ row ]];
  Tensor m[[ x ]] = make_tensor(make_gmem_ptr(ptr_[[ x ]]), [[ t.shape ]], [[ t.strides ]]);  // [[ modes ]], each row the thread's
{%- endfor %}
{%- for t in self.moved() %}
  Tensor g[[ t.name ]] = local_tile(m[[ t.name ]], Tile{}, cta_crd);  // (ROWS,COLUMNS,TILES)
  auto const thr_[[ t.name ]] = typename Walk::[[ t.verb ]][[ t.name ]]{}.get_slice(threadIdx.x);
  Tensor t[[ t.name ]] = thr_[[ t.name ]].partition_[[ t.side ]](g[[ t.name ]]);  // (CPY,CPY_M,CHUNKS,TILES)
  Tensor r[[ t.name ]] = make_fragment_like(t[[ t.name ]](_, _, _, _0{}));  // (CPY,CPY_M,CHUNKS)
{%- endfor %}
{%- for t in self.of(Kind::Queued) %}
{%- let x = t.name %}
  auto const thr_[[ x ]] = typename Walk::Load[[ x ]]{}.get_slice(threadIdx.x);
  Tensor w[[ x ]] = thr_[[ x ]].partition_S(queue_[[ x ]]<Walk>());  // (CPY,CPY_M,CHUNKS,STAGES)
  Tensor r[[ x ]] = make_fragment_like(w[[ x ]](_, _, _, _0{}));  // (CPY,CPY_M,CHUNKS)
  move_all<Walk, typename Walk::Load[[ x ]]>(inside_of(rank), w[[ x ]](_, _, _, columns.slot), r[[ x ]]);
{%- endfor %}
{%- for t in self.of(Kind::Resident) %}
  auto const& r[[ t.name ]] = columns.[[ t.name ]];  // (CPY,CPY_M,CHUNKS)
{%- endfor %}
{%- if d.schedule.hold == Hold::Shared %}
{%- include "rows/stage.cuh" %}
{%- endif %}
{%- for t in self.of(Kind::Held) %}
  move_all<Walk, typename Walk::Load[[ t.name ]]>(inside_of(rank), t[[ t.name ]](_, _, _, rank), r[[ t.name ]]);
{%- endfor %}
{%- if d.schedule.cluster > 1 %}
  cluster_wait();
{%- endif %}

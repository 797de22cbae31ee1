
//
// Queue: tiles of rows on their way to shared memory while a CTA works on one
//

constexpr int Stages = [[ d.schedule.stages ]];

// What a thread has of a tile of rows, as it loads them.
template <class Walk, class T, class Load>
using Part = decltype(make_tensor<T>(shape(Load{}.get_slice(0).partition_S(make_identity_tensor(Tile{})))));  // (CPY,CPY_M,CHUNKS)

struct SharedStorage {
{%- for t in self.of(Kind::Queued) %}
  alignas(16) Element[[ t.name ]] s[[ t.name ]][cosize_v<typename Vectors::Smem[[ t.name ]]>];
{%- endfor %}
};
static_assert(sizeof(SharedStorage) == [[ d.schedule.staged(d.tensors.iter()) ]], "bytes of dynamic shared memory");

CUTE_DEVICE
SharedStorage&
shared_storage()
{
  extern __shared__ __align__(16) unsigned char smem[];
  return *reinterpret_cast<SharedStorage*>(smem);
}
{% for t in self.of(Kind::Queued) %}
template <class Walk>
CUTE_DEVICE
auto
queue_[[ t.name ]]()
{
  return make_tensor(make_smem_ptr(shared_storage().s[[ t.name ]]), typename Walk::Smem[[ t.name ]]{});  // (ROWS,COLUMNS,STAGES)
}
{% endfor %}
// Asks for a tile of rows; there is none past the last.
// Each thread copies what it reads later, so that no other thread has to wait for it.
template <class Walk>
CUTE_DEVICE
void
ask([[ plan.name() ]]_params const& params, int row_tile, int rank, int slot)
{
  auto const cta_crd = make_coord(row_tile, rank);
  Tensor cRow = local_tile(make_identity_tensor(make_shape(params.m, params.n)), Tile{}, cta_crd);  // (ROWS,COLUMNS) -> (m,n)
  Tensor tcRow = typename Walk::Columns{}.get_slice(threadIdx.x).partition_S(cRow);  // (CPY,CPY_M,CHUNKS) -> (m,n)
  int const width = get<0>(tcRow(_0{})) < params.m ? params.n : 0;
  auto const inside = [&](int v, int c) { return get<1>(tcRow(Walk::whole ? 0 : v, _0{}, c)) < width; };
{%- for t in self.of(Kind::Queued) %}
  auto const ptr_[[ t.name ]] = static_cast<Element[[ t.name ]] const*>(params.[[ t.param ]]);
  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(ptr_[[ t.name ]]), [[ t.shape ]], [[ t.strides ]]);  // [[ t.modes ]]
  Tensor g[[ t.name ]] = local_tile(m[[ t.name ]], Tile{}, cta_crd);  // (ROWS,COLUMNS)
  auto const thr_[[ t.name ]] = typename Walk::Stage[[ t.name ]]{}.get_slice(threadIdx.x);
  Tensor t[[ t.name ]] = thr_[[ t.name ]].partition_S(g[[ t.name ]]);  // (CPY,CPY_M,CHUNKS)
  Tensor w[[ t.name ]] = thr_[[ t.name ]].partition_D(queue_[[ t.name ]]<Walk>());  // (CPY,CPY_M,CHUNKS,STAGES)
  move_all<Walk, typename Walk::Stage[[ t.name ]]>(inside, t[[ t.name ]], w[[ t.name ]](_, _, _, slot));
{%- endfor %}
  cp_async_fence();
}

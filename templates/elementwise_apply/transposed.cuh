[[ c.banner ]]
//
// Elementwise, with tiles of the inputs that are contiguous along M turned in shared memory: tensors (M,N).
// Launch: [[ c.plan.threads() ]] threads, ceil_div(M,[[ tile[0] ]]) * ceil_div(N,[[ tile[1] ]]) blocks along x, no dynamic shared memory.
{% include "elementwise_apply/head.cuh" %}
using TilerMN = [[ tiler ]];  // (TileM,TileN)
using ThrIn   = [[ thr_in ]];  // (ThrM,ThrN) -> tid, to bring a tile in
using ValIn   = [[ val_in ]];  // (VEC,1) -> vid
using ThrOut  = [[ thr_out ]];  // (ThrM,ThrN) -> tid, to take it out
using ValOut  = [[ val_out ]];  // (1,VEC) -> vid
{% for t in c.tensors %}{% if let Some(s) = t.turned %}
// [[ t.name ]] in shared memory, (TileM,TileN): [[ s.store ]] passes over the banks for a warp's store, [[ s.load ]] for its load
using Smem[[ t.name ]] = [[ s.layout ]];
{% endif %}{% endfor %}
//
// Preconditions: every number that the plan computed
//

{% for t in c.tensors %}{% if !t.vector.is_empty() %}static_assert(sizeof([[ t.vector ]]) == [[ c.vec ]] * sizeof(Element[[ t.name ]]), "VEC elements of [[ t.name ]] make one vector");
{% endif %}{% endfor -%}
static_assert(size(ThrIn{}) == [[ c.plan.threads() ]] && cosize(ThrIn{}) == size(ThrIn{}), "each thread once on the way in");
static_assert(size(ThrOut{}) == [[ c.plan.threads() ]] && cosize(ThrOut{}) == size(ThrOut{}), "each thread once on the way out");
static_assert(size(ValIn{}) == [[ c.vec ]] && size(ValOut{}) == [[ c.vec ]], "a thread moves one vector at a time");
static_assert(evenly_divides(TilerMN{}, product_each(shape(raked_product(ThrIn{}, ValIn{})))), "the threads bring in a tile in whole steps");
static_assert(evenly_divides(TilerMN{}, product_each(shape(raked_product(ThrOut{}, ValOut{})))), "the threads take out a tile in whole steps");
{% for t in c.tensors %}{% if t.turned.is_some() %}static_assert(size(Smem[[ t.name ]]{}) == size(TilerMN{}) && cosize_v<Smem[[ t.name ]]> == size(TilerMN{}), "the tile has room");
static_assert(size<0>(TilerMN{}) * sizeof(Element[[ t.name ]]) % sizeof([[ t.vector ]]) == 0, "its columns begin at multiples of a vector");
{% endif %}{% endfor -%}
static_assert({% for t in c.turned() %}{% if !loop.first %} + {% endif %}cosize_v<Smem[[ t.name ]]> * sizeof(Element[[ t.name ]]){% endfor %} == [[ smem ]], "bytes of shared memory");

{% include "copy_all_if.cuh" %}
CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "elementwise_apply/tensors.cuh" %}  Tensor mI = make_identity_tensor(shape_MN);  // (M,N) -> (m,n)

  // Raw bytes, because shared variables must not have constructors; aligned for vector stores.
{% for t in c.tensors %}{% if let Some(s) = t.turned %}  alignas([[ s.alignment ]]) __shared__ uint8_t smem[[ t.name ]][cosize_v<Smem[[ t.name ]]> * sizeof(Element[[ t.name ]])];
  Tensor s[[ t.name ]] = make_tensor(make_smem_ptr(recast_ptr<Element[[ t.name ]]>(smem[[ t.name ]])), Smem[[ t.name ]]{});  // (TileM,TileN)
{% endif %}{% endfor %}
  //
  // The CTA's tile: neighbouring blocks take neighbouring tiles of a row
  //

  auto rest_MN = ceil_div(shape_MN, TilerMN{});  // (RestM,RestN)
  auto cta_crd = select<1,0>(idx2crd(int(blockIdx.x), select<1,0>(rest_MN)));
{% for t in c.tensors %}  Tensor g[[ t.name ]] = local_tile(m[[ t.name ]], TilerMN{}, cta_crd);  // (TileM,TileN)
{% endfor %}  Tensor gI = local_tile(mI, TilerMN{}, cta_crd);  // (TileM,TileN) -> (m,n)

  // Predicates of one vector, element by element.
  auto inside = [&](auto const& tcT) {
    Tensor pT = make_tensor<bool>(make_shape(size(tcT)));  // (VEC)
    CUTE_UNROLL
    for (int i = 0; i < size(pT); ++i) {
      pT(i) = elem_less(tcT(i), shape_MN);
    }
    return pT;
  };

  //
  // In: vectors along M, from global to shared memory
  //
{% for t in c.tensors %}{% if t.turned.is_some() %}
  {
    auto tiled_copy = make_tiled_copy(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ t.name ]]>{}, ThrIn{}, ValIn{});
    auto thr_copy = tiled_copy.get_slice(threadIdx.x);
    Tensor t[[ t.name ]]g[[ t.name ]] = group_modes<1,3>(thr_copy.partition_S(g[[ t.name ]]));  // (VEC,(RestM,RestN))
    Tensor t[[ t.name ]]s[[ t.name ]] = group_modes<1,3>(thr_copy.partition_D(s[[ t.name ]]));  // (VEC,(RestM,RestN))
    Tensor t[[ t.name ]]c[[ t.name ]] = group_modes<1,3>(thr_copy.partition_S(gI));  // (VEC,(RestM,RestN)) -> (m,n)
    CUTE_UNROLL
    for (int v = 0; v < size<1>(t[[ t.name ]]g[[ t.name ]]); ++v) {
      Tensor pT = inside(t[[ t.name ]]c[[ t.name ]](_,v));  // (VEC)
      if (params.aligned_in && pT(size(pT) - 1)) {
        copy_all(tiled_copy, t[[ t.name ]]g[[ t.name ]](_,v), t[[ t.name ]]s[[ t.name ]](_,v));
      } else {
        copy_all_if(pT, t[[ t.name ]]g[[ t.name ]](_,v), t[[ t.name ]]s[[ t.name ]](_,v));
      }
    }
  }
{% endif %}{% endfor %}
  __syncthreads();

  //
  // Out: vectors along N
  //

  Op const op{[[ c.scalars ]]};
  auto thr_copy = make_tiled_copy(Copy_Atom<UniversalCopy<[[ c.last().vector ]]>, Element[[ c.last().name ]]>{}, ThrOut{}, ValOut{}).get_slice(threadIdx.x);
{% for t in c.tensors %}{% if t.turned.is_some() %}  Tensor t[[ t.name ]]s[[ t.name ]] = group_modes<1,3>(thr_copy.partition_S(s[[ t.name ]]));  // (VEC,(RestM,RestN))
{% else %}  Tensor t[[ t.name ]]g[[ t.name ]] = group_modes<1,3>(thr_copy.partition_S(g[[ t.name ]]));  // (VEC,(RestM,RestN))
{% endif %}{% endfor %}  Tensor tYcY = group_modes<1,3>(thr_copy.partition_S(gI));  // (VEC,(RestM,RestN)) -> (m,n)

  CUTE_UNROLL
  for (int v = 0; v < size<1>(tYcY); ++v) {
    Tensor tYpY = inside(tYcY(_,v));  // (VEC)
    bool const whole = params.aligned && tYpY(size(tYpY) - 1);
{% for t in c.tensors %}    Tensor r[[ t.name ]] = make_tensor<Element[[ t.name ]]>(shape(coalesce(ValOut{})));  // (VEC)
{% endfor -%}
{% for t in c.inputs() %}    clear(r[[ t.name ]]);
{% if t.turned.is_some() %}    copy_all_if(tYpY, t[[ t.name ]]s[[ t.name ]](_,v), r[[ t.name ]]);
{% else %}{% if t.vector.is_empty() %}    copy_all_if(tYpY, t[[ t.name ]]g[[ t.name ]](_,v), r[[ t.name ]]);
{% else %}    if (whole) {
      copy_all(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ t.name ]]>{}, t[[ t.name ]]g[[ t.name ]](_,v), r[[ t.name ]]);
    } else {
      copy_all_if(tYpY, t[[ t.name ]]g[[ t.name ]](_,v), r[[ t.name ]]);
    }
{% endif %}{% endif %}{% endfor %}    CUTE_UNROLL
    for (int i = 0; i < size(tYpY); ++i) {
      auto const y = [[ c.call("i") ]];
{% for t in c.outputs() %}      r[[ t.name ]](i) = [[ c.store(loop.index0, t) ]];
{% endfor %}    }
    if (whole) {
{% for t in c.outputs() %}      copy_all(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ t.name ]]>{}, r[[ t.name ]], t[[ t.name ]]g[[ t.name ]](_,v));
{% endfor %}    } else {
{% for t in c.outputs() %}      copy_all_if(tYpY, r[[ t.name ]], t[[ t.name ]]g[[ t.name ]](_,v));
{% endfor %}    }
  }
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

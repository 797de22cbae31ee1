[[ c.banner ]]
//
// Elementwise, with tiles of the inputs that are contiguous along M turned in shared memory: tensors (M,N).
// Launch: [[ c.plan.threads() ]] threads, ceil_div(M,[[ tile[0] ]]) * ceil_div(N,[[ tile[1] ]]) blocks along x.
{% include "elementwise_apply/head.cuh" %}
using TilerMN = [[ tiler ]];  // (TileM,TileN)
using ThrIn   = [[ thr_in ]];  // (ThrM,ThrN) -> tid, to bring a tile in
using ValIn   = [[ val_in ]];  // (VEC,1) -> vid
using ThrOut  = [[ thr_out ]];  // (ThrM,ThrN) -> tid, to take it out
using ValOut  = [[ val_out ]];  // (1,VEC) -> vid

{% for s in turned -%}
// [[ s.name ]] in shared memory, (TileM,TileN): [[ s.store ]] passes over the banks for a warp's store, [[ s.load ]] for its load
using Smem[[ s.name ]] = [[ s.layout ]];
{% endfor %}
//
// Preconditions: every number that the plan computed
//

{% for t in c.in_vectors() -%}
static_assert(sizeof([[ t.vector ]]) == [[ c.vec ]] * sizeof(Element[[ t.name ]]), "[[ t.name ]] in vectors of VEC");
{% endfor -%}
static_assert(size(ThrIn{}) == [[ c.plan.threads() ]] && cosize(ThrIn{}) == size(ThrIn{}), "each thread once on the way in");
static_assert(size(ThrOut{}) == [[ c.plan.threads() ]] && cosize(ThrOut{}) == size(ThrOut{}), "each thread once on the way out");
static_assert(size(ValIn{}) == [[ c.vec ]] && size(ValOut{}) == [[ c.vec ]], "a thread moves one vector at a time");
static_assert(evenly_divides(TilerMN{}, product_each(shape(raked_product(ThrIn{}, ValIn{})))), "brought in in whole steps");
static_assert(evenly_divides(TilerMN{}, product_each(shape(raked_product(ThrOut{}, ValOut{})))), "taken out in whole steps");
{% for s in turned -%}
static_assert(size(Smem[[ s.name ]]{}) == size(TilerMN{}) && cosize_v<Smem[[ s.name ]]> == size(TilerMN{}), "the tile has room");
static_assert(size<0>(TilerMN{}) * sizeof(Element[[ s.name ]]) % sizeof([[ s.vector ]]) == 0, "its columns begin at vectors");
static_assert(cosize_v<Smem[[ s.name ]]> * sizeof(Element[[ s.name ]]) == [[ s.bytes ]], "bytes of s[[ s.name ]]");
{% endfor %}
{% include "copy_all_if.cuh" %}

{% include "read_vector.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "elementwise_apply/tensors.cuh" %}  Tensor mI = make_identity_tensor(shape_MN);  // (M,N) -> (m,n)

  // Raw bytes, because shared variables must not have constructors; aligned for vector stores.
{% for s in turned %}{% let x = s.name %}  alignas([[ s.alignment ]]) __shared__ uint8_t smem[[ x ]][
      cosize_v<Smem[[ x ]]> * sizeof(Element[[ x ]])];
  Tensor s[[ x ]] = make_tensor(make_smem_ptr(recast_ptr<Element[[ x ]]>(smem[[ x ]])), Smem[[ x ]]{});  // (TileM,TileN)
{% endfor %}
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

{% for s in turned %}  {
    auto tiled_copy = make_tiled_copy(Copy_Atom<UniversalCopy<[[ s.vector ]]>, Element[[ s.name ]]>{}, ThrIn{}, ValIn{});
    auto thr_copy = tiled_copy.get_slice(threadIdx.x);
    Tensor tXg[[ s.name ]] = group_modes<1,3>(thr_copy.partition_S(g[[ s.name ]]));  // (VEC,(RestM,RestN))
    Tensor tXs[[ s.name ]] = group_modes<1,3>(thr_copy.partition_D(s[[ s.name ]]));  // (VEC,(RestM,RestN))
    Tensor tXcX = group_modes<1,3>(thr_copy.partition_S(gI));  // (VEC,(RestM,RestN)) -> (m,n)
    CUTE_UNROLL
    for (int v = 0; v < size<1>(tXcX); ++v) {
      Tensor pT = inside(tXcX(_,v));  // (VEC)
      if (params.aligned_in && pT(size(pT) - 1)) {
        copy_all(tiled_copy, tXg[[ s.name ]](_,v), tXs[[ s.name ]](_,v));
      } else {
        copy_all_if(pT, tXg[[ s.name ]](_,v), tXs[[ s.name ]](_,v));
      }
    }
  }
{% endfor %}  __syncthreads();

  //
  // Out: vectors along N
  //

  Op const op{[[ c.scalars ]]};
  using CopyOut = Copy_Atom<UniversalCopy<[[ c.last().vector ]]>, Element[[ c.last().name ]]>;
  auto thr_copy = make_tiled_copy(CopyOut{}, ThrOut{}, ValOut{}).get_slice(threadIdx.x);
{% for s in turned %}  Tensor tYx[[ s.name ]] = group_modes<1,3>(thr_copy.partition_S(s[[ s.name ]]));  // (VEC,(RestM,RestN))
{% endfor %}{% for x in direct %}  Tensor tYx[[ x ]] = group_modes<1,3>(thr_copy.partition_S(g[[ x ]]));  // (VEC,(RestM,RestN))
{% endfor %}  Tensor tYcY = group_modes<1,3>(thr_copy.partition_S(gI));  // (VEC,(RestM,RestN)) -> (m,n)

  CUTE_UNROLL
  for (int v = 0; v < size<1>(tYcY); ++v) {
    Tensor tYpY = inside(tYcY(_,v));  // (VEC)
    bool const whole = params.aligned && tYpY(size(tYpY) - 1);
{% for t in c.tensors %}    Tensor r[[ t.name ]] = make_tensor<Element[[ t.name ]]>(shape(coalesce(ValOut{})));  // (VEC)
{% endfor %}{% for t in c.inputs() %}    clear(r[[ t.name ]]);
    read_vector<[[ t.read_by ]]>(whole, tYpY, tYx[[ t.name ]](_,v), r[[ t.name ]]);
{% endfor %}    CUTE_UNROLL
    for (int i = 0; i < size(tYpY); ++i) {
      auto const y = op([[ c.arguments("r", "(i)") ]]);
{% for t in c.outputs() %}      r[[ t.name ]](i) = [[ c.result(t, "y") ]];
{% endfor %}    }
    if (whole) {
{% for t in c.outputs() %}{% let x = t.name %}      copy_all(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ x ]]>{},
               r[[ x ]], tYx[[ x ]](_,v));
{% endfor %}    } else {
{% for t in c.outputs() %}      copy_all_if(tYpY, r[[ t.name ]], tYx[[ t.name ]](_,v));
{% endfor %}    }
  }
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

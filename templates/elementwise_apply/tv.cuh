[[ c.banner ]]
//
// Elementwise with a thread-value layout: tensors (M,N).
// Launch: [[ c.plan.threads() ]] threads, ceil_div(M,[[ tile[0] ]]) * ceil_div(N,[[ tile[1] ]]) blocks along x.
{% include "elementwise_apply/head.cuh" %}
using ThrLayout = [[ thr_layout ]];  // (ThrM,ThrN) -> tid
using ValLayout = [[ val_layout ]];  // (ValM,ValN) -> vid
using TilerMN   = [[ tiler ]];  // (TileM,TileN)

// (tid,vid) -> (TileM,TileN), as make_layout_tv gives it
using TVLayout  = [[ tv_layout ]];
// (tid,VEC,UNROLL,STEP) -> (TileM,TileN): the same map, its values as vectors, UNROLL of them in flight, STEP times
using TVFrag    = [[ tv_frag ]];
using Fragment  = [[ c.vec_unroll ]];  // (VEC,UNROLL)
using Vectors   = decltype(size<2>(TVFrag{}) * size<3>(TVFrag{}));  // of a thread

//
// Preconditions: every number that the plan computed
//

{% for t in c.in_vectors() -%}
static_assert(sizeof([[ t.vector ]]) == size<0>(Fragment{}) * sizeof(Element[[ t.name ]]), "[[ t.name ]] in vectors of VEC");
{% endfor -%}
static_assert(size(ThrLayout{}) == [[ c.plan.threads() ]], "every thread has values");
static_assert(cosize(ThrLayout{}) == size(ThrLayout{}), "threads, numbered once each");
static_assert(size(ValLayout{}) == [[ values ]] && cosize(ValLayout{}) == [[ values ]], "values of a thread, numbered once each");
static_assert(size(TilerMN{}) == [[ tile_size ]] && size(TVLayout{}) == [[ tile_size ]], "the tile is covered");
static_assert(cosize(TVLayout{}) == size(TVLayout{}), "each element once");
static_assert(is_same_v<decltype(coalesce(right_inverse(raked_product(ThrLayout{}, ValLayout{})))),
                        decltype(coalesce(TVLayout{}))>, "CuTe derives the same thread-value layout");
static_assert(is_same_v<decltype(coalesce(TVFrag{})), decltype(coalesce(TVLayout{}))>, "splitting the values changes nothing");
static_assert(size<0>(TVFrag{}) == size(ThrLayout{}), "a slice for each thread");
static_assert(size<1>(TVFrag{}) == size<0>(Fragment{}) && size<2>(TVFrag{}) == size<1>(Fragment{}), "fragments");
static_assert(size<1>(TVFrag{}) == 1 || is_same_v<decltype(coalesce(layout<1>(TVFrag{}))),
                                                  decltype(make_layout(size<0>(Fragment{}), size<0>(TilerMN{})))>,
              "a vector lies along N");
static_assert(size<1>(TilerMN{}) % size<0>(Fragment{}) == 0, "a row of the tile is whole vectors");

{% include "elementwise_apply/copy_vector.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "elementwise_apply/tensors.cuh" %}  Tensor mI = make_identity_tensor(shape_MN);  // (M,N) -> (m,n)

  //
  // Partition: the CTA's tile, then the thread's values
  //

{% if remapped %}{% include "elementwise_apply/tiles_remapped.cuh" %}
{% else %}{% include "elementwise_apply/tiles.cuh" %}
{% endif %}
  // Vector v of the thread.
  auto vector = [&](auto const& gT, int v) {
    return group_modes<1,3>(composition(gT, TVFrag{})(threadIdx.x, _, _, _))(_, v);  // (VEC)
  };
  auto inside = [&](auto const& crd, int) { return elem_less(crd, shape_MN); };

  // A CTA decides once whether its tile is whole.
  bool const all_inside = params.aligned && elem_less(gI(size(gI) - _1{}), shape_MN);

{% include "elementwise_apply/mainloop.cuh" %}
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

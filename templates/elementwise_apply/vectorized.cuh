[[ c.banner ]]
//
// Elementwise, vectors of [[ c.vec ]] elements along N: tensors (M,N)[[ c.modes_m ]].
// Launch: [[ c.plan.threads() ]] threads, ceil_div(M*params.vectors,[[ c.plan.threads() ]]*[[ c.unroll ]]) blocks along x.
{% include "elementwise_apply/head.cuh" %}
using Tiler      = [[ tiler ]];  // one vector: (1,VEC)
using Fragment   = [[ c.vec_unroll ]];  // (VEC,UNROLL)
using CtaVectors = [[ cta_vectors ]];  // (tid,UNROLL) -> vector of the CTA
using Vectors    = decltype(size<1>(CtaVectors{}));  // of a thread

//
// Preconditions: every number that the plan computed
//

{% for t in c.in_vectors() -%}
static_assert(sizeof([[ t.vector ]]) == size<0>(Fragment{}) * sizeof(Element[[ t.name ]]), "[[ t.name ]] in vectors of VEC");
{% endfor -%}
static_assert(size<0>(Tiler{}) == 1 && size<1>(Tiler{}) == size<0>(Fragment{}), "a tile is one vector along N");
static_assert(size<0>(CtaVectors{}) == [[ c.plan.threads() ]], "every thread has vectors");
static_assert(cosize(CtaVectors{}) == size(CtaVectors{}), "each vector of the CTA once");
static_assert(size<1>(CtaVectors{}) == size<1>(Fragment{}), "UNROLL");

{% include "elementwise_apply/copy_vector.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
{% include "elementwise_apply/tensors.cuh" %}  Tensor mI = make_identity_tensor(shape_MN);  // (M,N) -> (m,n)

  //
  // Divide: vectors along N
  //

{% for t in c.tensors %}  Tensor g[[ t.name ]] = zipped_divide(m[[ t.name ]], Tiler{});  // ((_1,VEC),(M,RestN))
{% endfor %}  Tensor gI = zipped_divide(mI, Tiler{});  // ((_1,VEC),(M,RestN)) -> (m,n)

  // Vectors are numbered along N first. If a row is not aligned to a vector, its first vector starts `shift` elements before the
  // row, so that every vector is aligned.
  auto shape_NM = make_shape(params.vectors, size<0>(shape_MN));  // (RestN,M)
  auto index = [&](int v) { return int(blockIdx.x) * size(CtaVectors{}) + v; };
  auto shift = [&](auto const& crd) {
    auto const address = reinterpret_cast<uintptr_t>(&g[[ c.last().name ]](make_coord(_0{}, _0{}), crd));
    return params.aligned ? int(address / sizeof(Element[[ c.last().name ]]) % size<0>(Fragment{})) : 0;
  };
  auto vector = [&](auto const& gT, int u) {
    auto const crd = select<1,0>(idx2crd(index(CtaVectors{}(int(threadIdx.x), u)), shape_NM));  // (m,RestN)
    return domain_offset(make_coord(make_coord(_0{}, -shift(crd)), _0{}), gT)(make_coord(_0{}, _), crd);  // (VEC)
  };
  auto inside = [&](auto const& crd, int u) {
    return index(CtaVectors{}(int(threadIdx.x), u)) < size(shape_NM) && get<1>(crd) >= 0 && elem_less(crd, shape_MN);
  };

  // A warp decides once whether all its vectors are whole.
  bool all_inside = params.aligned;
  CUTE_UNROLL
  for (int u = 0; u < size(Vectors{}); ++u) {
    int const n = get<1>(vector(gI, u)(_0{}));
    bool const in_row = params.whole || (n >= 0 && n <= params.n - size<0>(Fragment{}));
    all_inside = all_inside && in_row && index(CtaVectors{}(int(threadIdx.x), u)) < size(shape_NM);
  }
  all_inside = __all_sync(~0u, all_inside);

{% include "elementwise_apply/mainloop.cuh" %}
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

[[ c.banner ]]
//
// Elementwise, vectors of [[ c.vec ]] elements along N: tensors (M,N)[[ c.modes_m ]].
// Launch: [[ c.plan.threads() ]] threads, ceil_div(M*params.vectors,[[ c.plan.threads() ]]*[[ c.unroll ]]) blocks along x, no dynamic shared memory.
{% include "elementwise_apply/head.cuh" %}
using Tiler      = [[ tiler ]];  // one vector: (1,VEC)
using Fragment   = [[ c.vec_unroll ]];  // (VEC,UNROLL)
using CtaVectors = [[ cta_vectors ]];  // (tid,UNROLL) -> vector of the CTA

//
// Preconditions: every number that the plan computed
//

{% for t in c.tensors %}{% if !t.vector.is_empty() %}static_assert(sizeof([[ t.vector ]]) == size<0>(Fragment{}) * sizeof(Element[[ t.name ]]), "VEC elements of [[ t.name ]] make one vector");
{% endif %}{% endfor -%}
static_assert(size<0>(Tiler{}) == 1 && size<1>(Tiler{}) == size<0>(Fragment{}), "a tile is one vector along N");
static_assert(size<0>(CtaVectors{}) == [[ c.plan.threads() ]] && cosize(CtaVectors{}) == size(CtaVectors{}), "each vector of the CTA once");
static_assert(size<1>(CtaVectors{}) == size<1>(Fragment{}), "UNROLL");

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

  // Vectors are numbered along N first. Where rows start between two multiples of the vector, the first vector of a row
  // begins `shift` elements before it, so that every vector lies at a multiple of its size.
  auto shape_NM = make_shape(params.vectors, size<0>(shape_MN));  // (RestN,M)
  auto index = [&](int u) { return int(blockIdx.x) * size(CtaVectors{}) + CtaVectors{}(int(threadIdx.x), u); };
  auto shift = [&](auto const& crd) {
    auto const address = reinterpret_cast<uintptr_t>(&g[[ c.last().name ]](make_coord(_0{}, _0{}), crd));
    return params.aligned ? int(address / sizeof(Element[[ c.last().name ]]) % size<0>(Fragment{})) : 0;
  };
  auto vector = [&](auto const& gT, int u) {
    auto const crd = select<1,0>(idx2crd(index(u), shape_NM));  // (m,RestN)
    return domain_offset(make_coord(make_coord(_0{}, -shift(crd)), _0{}), gT)(make_coord(_0{}, _), crd);  // (VEC)
  };

  // Elements of vector u that lie inside.
  auto inside = [&](int u) {
    Tensor tYcY = vector(gI, u);  // (VEC) -> (m,n)
    Tensor tYpY = make_tensor<bool>(make_shape(size(tYcY)));  // (VEC)
    CUTE_UNROLL
    for (int i = 0; i < size(tYpY); ++i) {
      tYpY(i) = index(u) < size(shape_NM) && get<1>(tYcY(i)) >= 0 && elem_less(tYcY(i), shape_MN);
    }
    return tYpY;
  };
  // Whether vector u can be moved at once: aligned, and inside from its first element to its last.
  auto whole = [&](int u) {
    Tensor tYpY = inside(u);  // (VEC)
    return params.aligned && tYpY(0) && tYpY(size(tYpY) - 1);
  };

  //
  // Main loop: all loads, then the function, then the stores
  //

{% for t in c.tensors %}  Tensor r[[ t.name ]] = make_tensor<Element[[ t.name ]]>(Fragment{});  // (VEC,UNROLL)
{% endfor -%}
{% for t in c.inputs() %}  clear(r[[ t.name ]]);
{% endfor %}
  CUTE_UNROLL
  for (int u = 0; u < size<1>(Fragment{}); ++u) {
    if (whole(u)) {
{% for t in c.inputs() %}{% if t.vector.is_empty() %}      copy(vector(g[[ t.name ]], u), r[[ t.name ]](_,u));
{% else %}      copy(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ t.name ]]>{}, vector(g[[ t.name ]], u), r[[ t.name ]](_,u));
{% endif %}{% endfor %}    } else {
{% for t in c.inputs() %}      copy_if(inside(u), vector(g[[ t.name ]], u), r[[ t.name ]](_,u));
{% endfor %}    }
  }

  Op const op{[[ c.scalars ]]};
  CUTE_UNROLL
  for (int i = 0; i < size(Fragment{}); ++i) {
    auto const y = [[ c.call("i") ]];
{% for t in c.outputs() %}    r[[ t.name ]](i) = [[ c.store(loop.index0, t) ]];
{% endfor %}  }

  CUTE_UNROLL
  for (int u = 0; u < size<1>(Fragment{}); ++u) {
    if (whole(u)) {
{% for t in c.outputs() %}{% if t.vector.is_empty() %}      copy(r[[ t.name ]](_,u), vector(g[[ t.name ]], u));
{% else %}      copy(Copy_Atom<UniversalCopy<[[ t.vector ]]>, Element[[ t.name ]]>{}, r[[ t.name ]](_,u), vector(g[[ t.name ]], u));
{% endif %}{% endfor %}    } else {
{% for t in c.outputs() %}      copy_if(inside(u), r[[ t.name ]](_,u), vector(g[[ t.name ]], u));
{% endfor %}    }
  }
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

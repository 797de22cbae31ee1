[[ c.banner ]]
//
// Elementwise, with tiles of the inputs that are contiguous along M turned: tensors (M,N,L)[[ c.modes_m ]].
// Launch: [[ c.plan.threads() ]] threads, ceil_div(M,[[ tile[0] ]]) * ceil_div(N,[[ tile[1] ]]) * L blocks along x.
{% include "elementwise_apply/head.cuh" %}
using TilerMN = [[ tiler ]];  // (TileM,TileN)
{% for s in turned %}
// Blocks of [[ s.name ]] that threads turn: vectors of [[ s.block[0] ]] elements along M, [[ s.block[1] ]] rows. In shared memory,
// (TileM,TileN): [[ s.stored ]] passes over the banks for a warp's store, [[ s.loaded ]] for its load.
using Thr[[ s.name ]]   = [[ s.threads ]];  // (ThrM,ThrN) -> tid
using Load[[ s.name ]]  = [[ s.load ]];  // (VEC,ROWS) -> vid, vectors along M first
using Store[[ s.name ]] = [[ s.store ]];  // (VEC,ROWS) -> vid, rows along N first
using Smem[[ s.name ]]  = [[ s.layout ]];
{% endfor %}
// Threads that take a tile out in vectors of VEC elements along N, (ThrM,ThrN) -> tid, and the vectors that one has in flight
template <int VEC>
struct Out;
{% for out in go_out -%}
template <> struct Out<[[ out.vec ]]> { using Thr = [[ out.threads ]]; using Unroll = Int<[[ out.unroll ]]>; };
{% endfor %}
//
// Preconditions: every number that the plan computed
//

{% for s in turned -%}
{% let x = s.name -%}
static_assert(size(Thr[[ x ]]{}) == [[ c.plan.threads() ]] && cosize(Thr[[ x ]]{}) == [[ c.plan.threads() ]], "each thread once");
static_assert(size(Load[[ x ]]{}) == cosize(Load[[ x ]]{}) && size(Load[[ x ]]{}) == cosize(Store[[ x ]]{}), "each value once");
static_assert(evenly_divides(TilerMN{}, product_each(shape(raked_product(Thr[[ x ]]{}, Load[[ x ]]{})))), "whole blocks");
static_assert(size(Smem[[ x ]]{}) == size(TilerMN{}) && cosize_v<Smem[[ x ]]> == size(TilerMN{}), "the tile has room");
static_assert(cosize_v<Smem[[ x ]]> * sizeof(Element[[ x ]]) == [[ s.bytes ]], "bytes of s[[ x ]]");
{% endfor -%}
{% for out in go_out -%}
{% let v = out.vec -%}
static_assert(size(Out<[[ v ]]>::Thr{}) == [[ c.plan.threads() ]], "every thread takes out");
static_assert(cosize(Out<[[ v ]]>::Thr{}) == [[ c.plan.threads() ]], "each thread once");
{% endfor %}
{% include "elementwise_apply/copy_vector.cuh" %}

{% include "elementwise_apply/turn.cuh" %}

CUTE_DEVICE
void
kernel([[ c.plan.name() ]]_params const& params)
{
  assert_ieee();

  //
  // Tensors
  //

  auto shape_MN = make_shape([[ extent_m ]], params.n);  // (M,N)
  auto shape_L = [[ batches ]];
  auto shape_MNL = append(shape_MN, shape_L);  // (M,N,L)
{% for t in c.tensors %}  Tensor m[[ t.name ]] = make_tensor(make_gmem_ptr(static_cast<[[ t.pointee ]]*>(params.[[ t.param ]])),
                          shape_MNL, [[ t.strides ]]);  // (M,N,L)
{% endfor %}  Tensor mI = make_identity_tensor(shape_MN);  // (M,N) -> (m,n)

  // Raw bytes, because shared variables must not have constructors; aligned for vectors.
{% for s in turned %}{% let x = s.name %}  alignas([[ s.alignment ]]) __shared__ uint8_t smem[[ x ]][
      cosize_v<Smem[[ x ]]> * sizeof(Element[[ x ]])];
  Tensor s[[ x ]] = make_tensor(make_smem_ptr(recast_ptr<Element[[ x ]]>(smem[[ x ]])), Smem[[ x ]]{});  // (TileM,TileN)
{% endfor %}
  //
  // The CTA's tile: neighbouring blocks take neighbouring tiles of a row
  //

  auto rest_MN = ceil_div(shape_MN, TilerMN{});  // (RestM,RestN)
  auto cta_crd = idx2crd(int(blockIdx.x), make_shape(get<1>(rest_MN), get<0>(rest_MN), size(shape_L)));  // (n,m,l)
  auto tile = [&](auto const& mT) { return local_tile(mT, TilerMN{}, select<1,0>(cta_crd)); };
{% for t in c.tensors %}  Tensor g[[ t.name ]] = tile(m[[ t.name ]](_,_,get<2>(cta_crd)));  // (TileM,TileN)
{% endfor %}  Tensor gI = tile(mI);  // (TileM,TileN) -> (m,n)

  // Vectors are as wide as the tensors are aligned; in a tile at an edge also so that none lies across it. So the first element of
  // a vector decides over all of them.
  bool const all_inside = elem_less(gI(size(gI) - _1{}), shape_MN);
  auto inside = [&](auto const& crd) { return all_inside || elem_less(crd, shape_MN); };

  //
  // In: vectors along M, turned in registers
  //

{% for s in turned -%}
{% let x = s.name %}  int const vec[[ x ]] = all_inside ? params.aligned_[[ s.param ]] : params.whole_[[ s.param ]];
  with_vector<[[ s.block[0] ]]>(vec[[ x ]], [&](auto vec) {
    bring_in<Thr[[ x ]],Load[[ x ]],Store[[ x ]],decltype(vec)::value>(g[[ x ]], gI, s[[ x ]], inside);
  });
{% endfor %}  __syncthreads();

  //
  // Out: vectors along N
  //

  Op const op{[[ c.scalars ]]};
  with_vector<[[ c.vec ]]>(all_inside ? params.aligned : params.whole, [&](auto vec) {
    constexpr int VEC = decltype(vec)::value;
    using Fragment = Shape<Int<VEC>,typename Out<VEC>::Unroll>;  // (VEC,UNROLL)
    using CopyOut = Copy_Atom<UniversalCopy<[[ self.by(c.last()) ]]>,Element[[ c.last().name ]]>;
    using ValOut = Layout<Shape<_1,Int<VEC>>,Stride<Int<VEC>,_1>>;  // (1,VEC) -> vid
    auto thr_copy = make_tiled_copy(CopyOut{}, typename Out<VEC>::Thr{}, ValOut{}).get_slice(threadIdx.x);
    auto own = [&](auto const& t) { return group_modes<1,3>(thr_copy.partition_S(t)); };
{% for t in c.tensors %}    Tensor tYx[[ t.name ]] = own([[ self.along_n(t) ]][[ t.name ]]);  // (VEC,(RestM,RestN))
{% endfor %}    Tensor tYcY = own(gI);  // (VEC,(RestM,RestN)) -> (m,n)

    CUTE_NO_UNROLL
    for (int step = 0; step < size<1>(tYcY); step += size<1>(Fragment{})) {
      Tensor tYpY = make_tensor<bool>(size<1>(Fragment{}));  // (UNROLL)
{% for t in c.tensors %}      Tensor r[[ t.name ]] = make_tensor<Element[[ t.name ]]>(Fragment{});  // (VEC,UNROLL)
{% endfor %}{% for t in c.inputs() %}      clear(r[[ t.name ]]);
{% endfor %}      CUTE_UNROLL
      for (int u = 0; u < size(tYpY); ++u) {
        tYpY(u) = inside(tYcY(_0{}, step + u));
        if (tYpY(u)) {
{% for t in c.inputs() %}          copy_vector<[[ self.by(t) ]]>(tYx[[ t.name ]](_,step + u), r[[ t.name ]](_,u));
{% endfor %}        }
      }
      CUTE_UNROLL
      for (int i = 0; i < size(r[[ c.last().name ]]); ++i) {
        auto const y = op([[ c.arguments("r", "(i)") ]]);
{% for t in c.outputs() %}        r[[ t.name ]](i) = [[ c.result(t, "y") ]];
{% endfor %}      }
      CUTE_UNROLL
      for (int u = 0; u < size(tYpY); ++u) {
        if (tYpY(u)) {
{% for t in c.outputs() %}          copy_vector<[[ self.by(t) ]]>(r[[ t.name ]](_,u), tYx[[ t.name ]](_,step + u));
{% endfor %}        }
      }
    }
  });
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

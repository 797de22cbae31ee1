// Reads a slice: each element inside of the matrix once, as aligned pairs where possible; elements outside are zero. A mode with
// stride 0 is read once and takes one register.
template <class T, bool Pairs, class Src, class Crd, class Inside>
CUTE_DEVICE
auto
read_part(bool is_read, bool in_pairs, Src const& src, Crd const& crd, Inside const& inside)
{
  auto const distinct = filter_zeros(src.stride(), src.shape());
  Tensor part = make_tensor<T>(make_layout(src.shape(), compact_major<LayoutLeft>(distinct)));  // (CPY,AT_ONCE)
  Tensor at = filter_zeros(crd, src.stride());                                                 // (CPY,AT_ONCE) less broadcast modes
  auto const copy_inside = [&](auto const& from, auto&& to) {
    CUTE_UNROLL
    for (int i = 0; i < size(to); ++i) {
      if (inside(at(i * (size(at) / size(to))))) {
        to(i) = from(i);
      }
    }
  };
  clear(part);
  if (is_read) {
    if (Pairs && in_pairs) {
      if constexpr (Pairs) {
        using Pair = uint_bit_t<2 * sizeof_bits_v<T>>;
        copy_inside(filter_zeros(recast<Pair const>(src)), filter_zeros(recast<Pair>(part)));
      }
    } else {
      copy_inside(filter_zeros(src), filter_zeros(part));
    }
  }
  return part;
}

// A thread's elements of a slice of a matrix with D's shape: AtOnce copies, starting at copy `from`.
template <bool TmaStore, int AtOnce, class Matrix, class Crd>
CUTE_DEVICE
auto
part_of(Matrix const& matrix, Crd const& crd_D, int rank_k, int part, int from)
{
  int const thread = threadIdx.x % size(Mma{});
  constexpr bool reads_anew = [[ r.reads_anew ]] || !TmaStore;  // addresses are recomputed for each slice, which saves registers
  auto const thr_mma = Mma{}.get_slice(reads_anew ? anew(thread) : thread);
  Tensor tCgC = thr_mma.partition_C(local_tile(matrix, TileD{}, take<0,2>(crd_D)));            // (MMA,MMA_M,MMA_N)
  Tensor tRgC = [[ c.in_copies("thread", "tCgC") ]];                                     // ((CPY,CPY_TILE),MMA_M,_1)
  Tensor tRgP = logical_divide(tRgC, make_tile(make_tile(_, Int<AtOnce>{})));                  // ((CPY,(AT_ONCE,STEPS)),MMA_M,_1)
  int const first = (rank_k * parts_n + part % parts_n) * copies + from;
  return tRgP(make_coord(_, make_coord(_, first / AtOnce)), part / parts_n, _0{});             // (CPY,AT_ONCE)
}
{%- for t in c.reads() %}

template <bool TmaStore, int AtOnce, class Crd>
CUTE_DEVICE
auto
read_[[ t.is.param ]](Params const& params, Crd const& crd_D, int rank_k, int part, int from)
{
{% include "gemm/matrix.cuh" %}
  Tensor cD = make_identity_tensor(make_shape([[ c.rows_d() ]], params.n));                            // (M,N) -> (m,n)
  bool const in_pairs = [[ t.has_pairs() ]];
  return read_part<Element[[ t.is.name ]], TmaStore && [[ t.lies_along_n() ]]>(
    [[ t.is_read() ]], in_pairs, part_of<TmaStore, AtOnce>(m[[ t.is.name ]], crd_D, rank_k, part, from),
    part_of<TmaStore, AtOnce>(cD, crd_D, rank_k, part, from),
    [&](auto const& crd) { return [[ t.inside("crd") ]]; });  // (CPY,AT_ONCE)
}
{%- endfor %}

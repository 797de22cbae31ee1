// The slices of a tile of D along (M,N), and a thread's share of each.
using PartD   = decltype(take<0,2>(shape(SmemD{})));  // one slice
constexpr int parts_m = size<0>(TileD{}) / size<0>(PartD{});
constexpr int parts_n = size<1>([[ c.tile_of_d() ]]{}) / size<1>(PartD{}) / splits;  // of the columns that this CTA stores
constexpr int parts   = parts_m * parts_n;
using Retiled = decltype(shape([[ c.in_copies("0", "partition_fragment_C(Mma{}, TileD{})") ]]));  // ((CPY,CPY_TILE),MMA_M,_1)
static_assert(size<1>(Retiled{}) == parts_m && size<2>(Retiled{}) == 1 && size<0,1>(Retiled{}) % parts_n == 0, "whole slices");
constexpr int copies = size<0,1>(Retiled{}) / parts_n / splits;  // per thread and slice

// A slice's coordinate in D: (m,n[[ c.modes_l() ]]) in slices. With split-K, each CTA of a tile stores its share of the columns.
template <class Crd>
CUTE_DEVICE
auto
crd_of_part(Crd const& crd_D, int rank_k, int part)
{
  int const m = get<0>(crd_D) * parts_m + part / parts_n;
  int const n = (get<1>(crd_D) * splits + rank_k) * parts_n + part % parts_n;
  return replace<0>(replace<1>(crd_D, n), m);
}

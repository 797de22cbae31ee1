// The slices of a tile of D along (M,N), and a thread's share of each.
using PartD   = decltype(take<0,2>(shape(SmemD{})));  // one slice
constexpr int parts_m = size<0>(TileD{}) / size<0>(PartD{});
constexpr int parts_n = size<1>(TileD{}) / size<1>(PartD{}){% if c.splits() > 1 %} / splits{% endif %};{% if c.splits() > 1 %}  // of the columns that this CTA stores{% endif %}
constexpr int parts   = parts_m * parts_n;
using Retiled = decltype(shape(StageD{}.get_slice(0).retile_S(partition_fragment_C(Mma{}, TileD{}))));  // ((CPY,CPY_TILE),MMA_M,_1)
static_assert(size<1>(Retiled{}) == parts_m && size<2>(Retiled{}) == 1 && size<0,1>(Retiled{}) % parts_n == 0, "whole slices");
constexpr int copies = size<0,1>(Retiled{}) / parts_n{% if c.splits() > 1 %} / splits{% endif %};  // per thread and slice
{% if c.has_e() %}constexpr int outputs = 2;  // D and E: their slices lie side by side in shared memory
{% endif %}
// A slice's coordinate in D: (m,n[[ c.modes_l() ]]) in slices.
template <class Crd>
CUTE_DEVICE
auto
crd_of_part(Crd const& crd_D, int part{% if c.splits() > 1 %}, int rank_k{% endif %})
{
  int const n = {% if c.splits() > 1 %}(get<1>(crd_D) * splits + rank_k){% else %}get<1>(crd_D){% endif %} * parts_n + part % parts_n;
  return make_coord(get<0>(crd_D) * parts_m + part / parts_n, n{% if c.batched() %}, get<2>(crd_D){% endif %});
}

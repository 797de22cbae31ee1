// A tile of D in parts along (M,N), and what a thread has of each.
constexpr int parts_m = size<0>(TileD{}) / size<0>(PartD{});
constexpr int parts_n = size<1>(TileD{}) / size<1>(PartD{}){% if splits > 1 %} / splits{% endif %};{% if splits > 1 %}  // those that this CTA stores{% endif %}
constexpr int parts   = parts_m * parts_n;
{% if c.has_e() %}constexpr int outputs = 2;  // D and E, whose parts lie side by side in shared memory
{% endif %}
// Where a part of a tile lies in D: (m,n[[ c.modes_l() ]]) in parts.
template <class Crd>
CUTE_DEVICE
auto
crd_of_part(Crd const& crd_D, int part{% if splits > 1 %}, int rank_k{% endif %})
{
  int const n = {% if splits > 1 %}(get<1>(crd_D) * splits + rank_k){% else %}get<1>(crd_D){% endif %} * parts_n + part % parts_n;
  return make_coord(get<0>(crd_D) * parts_m + part / parts_n, n{% if c.batched() %}, get<2>(crd_D){% endif %});
}

// Makes elements of D of a tile's accumulators{% if splits > 1 %}, of which each CTA has its share of the columns in front{% endif %}, zeros where there was nothing to add up, a part after the other: `take` is given those of
// a copy at a time{% if c.has_e() %}, and those of E{% endif %}, ahead of the first of a part there is `begin`, behind the last `end`.
template <bool TmaStore, class Crd, class TCrC, class Begin, class Take, class End>
CUTE_DEVICE
void
round_tile([[ c.plan.name() ]]_params const& params, Crd const& crd_D, {% if splits > 1 %}int rank_k, {% endif %}TCrC const& tCrC, bool is_zero, Begin const& begin, Take const& take, End const& end)
{
  auto const thr_copy = StageD{}.get_slice(threadIdx.x % size(Mma{}));
  Tensor tRrC = thr_copy.retile_S(tCrC);                                                       // ((CPY,CPY_TILE),MMA_M,_1)
  static_assert(size<1>(tRrC) == parts_m && size<2>(tRrC) == 1 && size<0,1>(tRrC) % parts_n == 0, "whole parts");
  constexpr int copies = size<0,1>(tRrC) / parts_n{% if splits > 1 %} / splits{% endif %};  // of a part
  Op const op{[[ c.op.scalars ]]};
  // What goes with D is read ahead as far as there are registers beside the accumulators.
  constexpr int few = !TmaStore ? 1 : decltype(size(tCrC))::value > [[ roomy ]] ? [[ few ]] : 128;  // elements that are computed at a time
  constexpr int at_once = few > 8 ? copies : 1;
{% if !c.reads().is_empty() %}  auto const crd_2 = cute::take<0,2>(crd_D);                                                       // (m,n)
{% if c.batched() %}  int const l = get<2>(crd_D);
{% endif %}{% for t in c.reads() %}{% include "tensor.cuh" %}{% if c.batched() %}(_,_,l){% endif %};  // [[ t.modes ]]
  auto const inside_[[ t.is.param ]] = [&](auto const& crd) { return [[ t.inside("crd") ]]; };
  bool const in_pairs_[[ t.is.param ]] = [[ t.has_pairs() ]];
{% endfor %}  // What a thread reads for some of its accumulators at a time.
  auto const part_of = [&](auto const& matrix, int m, int first) {
    int const thread = threadIdx.x % size(Mma{});
    auto const thr_mma = Mma{}.get_slice(TmaStore ? thread : anew(thread));
    Tensor tile = thr_copy.retile_S(thr_mma.partition_C(local_tile(matrix, TileD{}, crd_2)));  // ((CPY,CPY_TILE),MMA_M,_1)
    return logical_divide(tile, make_tile(make_tile(_, Int<at_once>{})))(make_coord(_, make_coord(_, first / at_once)), m, _0{});                       // (CPY,AT_ONCE)
  };
  Tensor cD = make_identity_tensor(make_shape(params.m, params.n));                            // (M,N) -> (m,n)
{% endif %}  CUTE_UNROLL
  for (int part = 0; part < parts; ++part) {
    int const m = part / parts_n;
    CUTE_UNROLL
    for (int i = 0; i < copies; i += at_once) {
      int const first = part % parts_n * copies + i;
{% for t in c.reads() %}      Tensor tRr[[ t.read_name() ]] = read_part<Element[[ t.is.name ]], TmaStore && [[ t.lies_along_n() ]]>(
        [[ t.is_read() ]], in_pairs_[[ t.is.param ]], part_of(m[[ t.is.name ]], m, {% if splits > 1 %}rank_k * parts_n * copies + {% endif %}first), part_of(cD, m, {% if splits > 1 %}rank_k * parts_n * copies + {% endif %}first), inside_[[ t.is.param ]]);  // (CPY,AT_ONCE)
{% endfor %}      if (i == 0) {
        begin(part);
      }
      CUTE_UNROLL
      for (int j = 0; j < at_once; ++j) {
        Tensor tRrD = make_tensor<ElementD>(shape<0,0>(tRrC));                                 // (CPY)
{% if c.has_e() %}        Tensor tRrE = make_tensor<ElementE>(shape<0,0>(tRrC));                                 // (CPY)
{% endif %}        CUTE_UNROLL
        for (int v = 0; v < size(tRrD); ++v) {
          // A branch that is always taken: a few elements are computed after others, with the registers of few.
          if (few >= size(tRrD) || anew(v / few) == v / few) {
            float const a = !TmaStore && is_zero ? 0.0f : tRrC(make_coord(v, first + j), m, _0{});
{% if c.has_e() %}            auto const y = [[ c.computed("tRr", "(v,j)") ]];
            tRrE(v) = [[ c.rounded("get<1>(y)") ]];
            tRrD(v) = [[ c.rounded("get<0>(y)") ]];
{% else %}            tRrD(v) = [[ c.rounded(c.computed("tRr", "(v,j)").as_str()) ]];
{% endif %}          }
        }
        take(part, i + j, tRrD{% if c.has_e() %}, tRrE{% endif %});
      }
    }
    end(part);
  }
}

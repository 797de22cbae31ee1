// Computes a tile of D from its accumulators, slice by slice.{% if c.splits() > 1 %} A CTA's share of the columns is in its first accumulators.{% endif %}
// `begin` runs before a slice, `take` receives each copy's elements of D{% if c.has_e() %} and E{% endif %}, `end` runs after the slice.
template <bool TmaStore, class Crd, class TCrC, {% if ahead > 0 %}class TRrW, {% endif %}class Begin, class Take, class End>
CUTE_DEVICE
void
round_tile([[ c.plan.name() ]]_params const& params, Crd const& crd_D, {% if c.splits() > 1 %}int rank_k, {% endif %}TCrC const& tCrC, {% if ahead > 0 %}TRrW const& tRrW, {% endif %}Begin const& begin, Take const& take, End const& end)
{
  Tensor tRrC = StageD{}.get_slice(threadIdx.x % size(Mma{})).retile_S(tCrC);                  // ((CPY,CPY_TILE),MMA_M,_1)
  Op const op{[[ c.op.scalars ]]};
  // {% if c.reads().is_empty() %}Compute{% else %}Read and compute{% endif %} only as many elements at a time as fit into registers beside the accumulators.
  constexpr int few = !TmaStore ? {% if c.has_e() %}2{% else %}1{% endif %} : decltype(size(tCrC))::value > [[ roomy ]] ? [[ few ]] : 128;  // elements
  constexpr int at_once = few > 8 ? copies : 1;
  constexpr bool apart = {% if c.reads().is_empty() %}!TmaStore && decltype(size(tCrC))::value > [[ roomy ]]{% else if ahead > 0 %}!TmaStore{% else %}!TmaStore || decltype(size(tCrC))::value > [[ roomy ]]{% endif %};
  CUTE_UNROLL
  for (int part = 0; part < parts; ++part) {
    int const m = part / parts_n;
    int const first = part % parts_n * copies;
{% if ahead > 0 %}{% for t in c.reads() %}    auto const part_[[ t.is.param ]] = [&] {
      if constexpr (TmaStore) {
        return take_back<Part[[ t.read_name() ]]>(tRrW(_,part), 0{% for before in c.reads_before(t) %} + words_of<Part[[ before.read_name() ]]>{% endfor %});
      } else {
        return _0{};  // each copy reads its own elements
      }
    }();                                                                                       // (CPY,CPY_PART)
{% endfor %}{% endif %}{% if c.reads().is_empty() %}    begin(part);  // else ptxas may read accumulators before WGMMA has ended, and then serializes it (C7514)
{% endif %}    CUTE_UNROLL
    for (int i = 0; i < copies; i += at_once) {
{% if !c.reads().is_empty() %}      if (apart && params.m < -(part * copies + i)) {
        continue;  // never taken, but ptxas cannot know that, so it does not hoist the reads of later copies
      }
{% endif %}{% for t in c.reads() %}{% if ahead > 0 %}      auto const tRr[[ t.read_name() ]] = [&] {
        if constexpr (TmaStore) {
          return some_of<at_once>(part_[[ t.is.param ]], i);
        } else {
          return read_[[ t.is.param ]]<false, at_once>(params, crd_D, part, i);
        }
      }();                                                                                     // (CPY,AT_ONCE)
{% else %}      Tensor tRr[[ t.read_name() ]] = read_[[ t.is.param ]]<TmaStore, at_once>(params, crd_D, {% if c.splits() > 1 %}rank_k, {% endif %}part, i);  // (CPY,AT_ONCE)
{% endif %}{% endfor %}      Tensor tRrD = make_tensor<ElementD>(make_shape(shape<0,0>(tRrC), Int<at_once>{}));       // (CPY,AT_ONCE)
{% if c.has_e() %}      Tensor tRrE = make_tensor<ElementE>(shape(tRrD));                                        // (CPY,AT_ONCE)
{% endif %}      CUTE_UNROLL
      for (int j = 0; j < at_once; ++j) {
        CUTE_UNROLL
        for (int v = 0; v < size<0>(tRrD); ++v) {
          // This branch is always taken. It keeps the compiler from computing more than a few elements at once, which saves registers.
          // With `apart` not even ptxas can remove it.
          int const number = ((part * copies + i + j) * int(size<0>(tRrD)) + v) / few;
          if (few >= size<0>(tRrD) || (apart ? params.m >= -number : anew(number) == number)) {
            float const a = tRrC(make_coord(v, first + i + j), m, _0{});
{% if c.has_e() %}            auto const y = [[ c.computed("tRr", "(v,j)") ]];
            tRrE(v,j) = [[ c.rounded("get<1>(y)") ]];
            tRrD(v,j) = [[ c.rounded("get<0>(y)") ]];
{% else %}            tRrD(v,j) = [[ c.rounded(c.computed("tRr", "(v,j)").as_str()) ]];
{% endif %}          }
        }
      }
{% if !c.reads().is_empty() %}      if (i == 0) {
        begin(part);
      }
{% endif %}      CUTE_UNROLL
      for (int j = 0; j < at_once; ++j) {
        take(part, i + j, tRrD(_,j){% if c.has_e() %}, tRrE(_,j){% endif %});
      }
    }
    end(part);
  }
}

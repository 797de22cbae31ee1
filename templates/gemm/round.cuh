// Computes a tile of D from its accumulators, slice by slice. With split-K, a CTA's share of the columns is in its first
// accumulators. `begin` runs before a slice, `take` receives each copy's elements of every output, `end` runs after the slice.
// `ahead` holds the epilogue inputs that were prefetched: (WORD,PARTS).
template <bool TmaStore, class Crd, class TCrC, class Ahead, class Begin, class Take, class End>
CUTE_DEVICE
void
round_tile(Params const& params, Crd const& crd_D, int rank_k, TCrC const& tCrC, Ahead const& ahead,
           Begin const& begin, Take const& take, End const& end)
{
  Tensor tRrC = [[ c.in_copies("threadIdx.x % size(Mma{})", "tCrC") ]];                  // ((CPY,CPY_TILE),MMA_M,_1)
  Op const op{[[ c.op.scalars ]]};
  // Read and compute only as many elements at a time as fit into registers beside the accumulators.
  static_assert(decltype(size(tCrC))::value == [[ r.accumulators ]], "accumulators of a thread");
  constexpr int few = TmaStore ? [[ r.tma.few ]] : [[ r.direct.few ]];  // elements
  constexpr int at_once = few > 8 ? copies : 1;
  constexpr bool apart = TmaStore ? [[ r.tma.apart ]] : [[ r.direct.apart ]];
  CUTE_UNROLL
  for (int part = 0; part < parts; ++part) {
    int const m = part / parts_n;
    int const first = part % parts_n * copies;
{%- for (t, [first, count]) in self.ahead() %}
    auto const part_[[ t.is.param ]] = [&] {
      if constexpr (TmaStore) {
        using Part = decltype(read_[[ t.is.param ]]<true, copies>(params, crd_D, rank_k, part, 0));
        return take_back<Part>(ahead(_,part), words_[[ t.is.param ]]);
      } else {
        return _0{};  // each copy reads its own elements
      }
    }();                                                                                       // (CPY,CPY_PART)
{%- endfor %}
{%- if c.reads().is_empty() %}
    begin(part);  // else ptxas may read accumulators before WGMMA has ended, and then serializes it (C7514)
{%- endif %}
    CUTE_UNROLL
    for (int i = 0; i < copies; i += at_once) {
{%- if !c.reads().is_empty() %}
      if (apart && params.m < -(part * copies + i)) {
        continue;  // never taken, but ptxas cannot know that, so it does not hoist the reads of later copies
      }
{%- endif %}
{%- for (t, [first, count]) in self.ahead() %}
      auto const tRr[[ t.read_name() ]] = [&] {
        if constexpr (TmaStore) {
          return some_of<at_once>(part_[[ t.is.param ]], i);
        } else {
          return read_[[ t.is.param ]]<false, at_once>(params, crd_D, rank_k, part, i);
        }
      }();                                                                                     // (CPY,AT_ONCE)
{%- endfor %}
{%- for t in self.read_late() %}
      Tensor tRr[[ t.read_name() ]] = read_[[ t.is.param ]]<TmaStore, at_once>(params, crd_D, rank_k, part, i);     // (CPY,AT_ONCE)
{%- endfor %}
      auto const shape_D = make_shape([[ c.each("shape<0,0>(tRrC)", "_1{}") ]], Int<at_once>{});
{%- for t in c.outputs() %}
      Tensor tRr[[ t.is.name ]] = make_tensor<[[ c.result(t) ]]>(shape_D);                                     // (CPY,AT_ONCE)
{%- endfor %}
      CUTE_UNROLL
      for (int j = 0; j < at_once; ++j) {
        CUTE_UNROLL
        for (int v = 0; v < size<0>(tRrD); ++v) {
          // This branch is always taken. It keeps the compiler from computing more than a few elements at once, which saves
          // registers. With `apart` not even ptxas can remove it.
          int const number = ((part * copies + i + j) * int(size<0>(tRrD)) + v) / few;
          if (few >= size<0>(tRrD) || (apart ? params.m >= -number : anew(number) == number)) {
            [[ c.compute() ]] const a = tRrC(make_coord(v, first + i + j), m, _0{});
            auto const y = op(a[[ c.inputs("tRrC(make_coord(1, first + i + j), m, _0{})", "tRr", ["(v,j)", "(1,j)"]) ]]);
{%- for t in c.written() %}
            tRr[[ t.is.name ]](v,j) = output<[[ c.output_of(t) ]]>(y);
{%- endfor %}
          }
        }
      }
{%- if !c.reads().is_empty() %}
      if (i == 0) {
        begin(part);
      }
{%- endif %}
      CUTE_UNROLL
      for (int j = 0; j < at_once; ++j) {
        take(part, i + j{% for t in c.outputs() %}, tRr[[ t.is.name ]](_,j){% endfor %});
      }
    }
    end(part);
  }
}

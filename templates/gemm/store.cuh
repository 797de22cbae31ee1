// Stores a part of D from shared memory by TMA: each warpgroup its own rows.
template <class SD>
CUTE_DEVICE
void
store_by_tma([[ c.plan.name() ]]_params const& params, int part_m, int part_n{% if c.batched() %}, int l{% endif %}, SD const& sD, int buffer)
{
  int const warpgroup = threadIdx.x % size(Mma{}) / 128;
  Tensor mD = TmaD{}.get_tma_tensor(make_shape(params.m, params.n{% if c.batched() %}, params.l{% endif %}));  // (M,N{% if c.batched() %},L{% endif %}) -> TMA coordinate
  Tensor gD = local_tile(mD, PartD{}, make_coord(_, _));                                       // (PART_M,PART_N,m,n[[ c.modes_l() ]])
  auto const [tDgD, tDsD] = tma_partition(TmaD{}, warpgroup, Layout<Int<size(Mma{}) / 128>>{},
                                          group_modes<0,2>(sD), group_modes<0,2>(gD));         // (TMA,m,n[[ c.modes_l() ]]), (TMA,BUFFERS)
  if (threadIdx.x % 128 == 0) {
    copy(TmaD{}.with(&params.map_d), tDsD(_,buffer), tDgD(_,part_m,part_n{% if c.batched() %},l{% endif %}));
    tma_store_arrive();
  }
}

// Stores it element by element, so that D may lie anywhere.
template <class SD>
CUTE_DEVICE
void
store_elements([[ c.plan.name() ]]_params const& params, int part_m, int part_n{% if c.batched() %}, int l{% endif %}, SD const& sD, int buffer)
{
{% for t in c.written() %}{% include "tensor.cuh" %}{% if c.batched() %}(_,_,l){% endif %};  // [[ t.modes ]]
{% endfor %}  int const thread = anew(threadIdx.x % size(Mma{}));
  if (thread >= size(CopyD{})) {
    return;
  }
  auto const crd = make_coord(part_m, part_n);
  auto const thr_copy = CopyD{}.get_slice(thread);
  Tensor tDsD = thr_copy.partition_S(sD(_,_,buffer));                                          // (CPY,CPY_M,CPY_N)
  Tensor tDgD = thr_copy.partition_D(local_tile(mD, PartD{}, crd));                            // (CPY,CPY_M,CPY_N)
  Tensor tDcD = thr_copy.partition_D(local_tile(make_identity_tensor(shape(mD)), PartD{}, crd));  // (CPY,CPY_M,CPY_N) -> (m,n)
  #pragma unroll 8  // beside the accumulators of the parts that follow
  for (int i = 0; i < size(tDsD); ++i) {
    if (elem_less(tDcD(i), shape(mD))) {
      tDgD(i) = tDsD(i);
    }
  }
}

// Stores a tile of D{% if splits > 1 %}, of which each CTA has its share of the columns in front{% endif %}, zeros where there was nothing to add up, a part after the other, by way of shared memory: one part is written while another is stored.
template <bool TmaStore, class Crd, class TCrC, class SD>
CUTE_DEVICE
void
store([[ c.plan.name() ]]_params const& params, Crd const& crd_D, {% if splits > 1 %}int rank_k, {% endif %}TCrC const& tCrC, bool is_zero, SD const& smem_D, int& buffer)
{
  // Those who store a part together: a warpgroup, or all that compute the tile.
  auto const sync = [] {
    constexpr int together = TmaStore ? 128 : size(Mma{});
    cutlass::arch::NamedBarrier::sync(together, together == consumers ? 0 : threadIdx.x / together);
  };
  Tensor sD = as_position_independent_swizzle_tensor(smem_D);                                  // (PART_M,PART_N,BUFFERS)
  auto const thr_copy = StageD{}.get_slice(threadIdx.x % size(Mma{}));
  Tensor tRrC = thr_copy.retile_S(tCrC);                                                       // ((CPY,CPY_TILE),MMA_M,_1)
  Op const op{[[ c.op.scalars ]]};
  Tensor tRsD = group_modes<1,3>(thr_copy.partition_D(sD));                                    // (CPY,CPY_PART,BUFFERS)
  // What goes with D is read ahead as far as there are registers beside the accumulators.
  constexpr int few = !TmaStore ? 1 : decltype(size(tCrC))::value > [[ roomy ]] ? 2 : 128;  // elements that are computed at a time
  constexpr int at_once = few > 2 ? size<1>(tRsD) : 1;
{% if !c.reads().is_empty() %}  auto const crd_2 = take<0,2>(crd_D);                                                         // (m,n)
{% if c.batched() %}  int const l = get<2>(crd_D);
{% endif %}{% for t in c.reads() %}{% include "tensor.cuh" %}{% if c.batched() %}(_,_,l){% endif %};  // [[ t.modes ]]
  auto const inside_[[ t.is.param ]] = [&](auto const& crd) { return [[ t.inside("crd") ]]; };
  bool const in_pairs_[[ t.is.param ]] = [[ t.has_pairs() ]];
{% endfor %}  // What a thread reads for some of its accumulators at a time.
  auto const part = [&](auto const& matrix, int m, int first) {
    int const thread = threadIdx.x % size(Mma{});
    auto const thr_mma = Mma{}.get_slice(TmaStore ? thread : anew(thread));
    Tensor tile = thr_copy.retile_S(thr_mma.partition_C(local_tile(matrix, TileD{}, crd_2)));  // ((CPY,CPY_TILE),MMA_M,_1)
    return logical_divide(tile, make_tile(make_tile(_, Int<at_once>{})))(make_coord(_, make_coord(_, first / at_once)), m, _0{});                       // (CPY,AT_ONCE)
  };
  Tensor cD = make_identity_tensor(make_shape(params.m, params.n));                            // (M,N) -> (m,n)
{% endif %}  constexpr int parts_n = size<0,1>(tRrC) / size<1>(tRsD);
  static_assert(size<0,0>(tRrC) == size<0>(tRsD) && size<2>(tRrC) == 1 && parts_n * size<1>(PartD{}) == size<1>(TileD{}), "whole parts");
{% if splits > 1 %}  constexpr int own_n = parts_n / splits;  // parts that this CTA stores
  static_assert(own_n * splits == parts_n, "as many parts for each CTA of the tile");
  int const first_n = rank_k * own_n;
{% endif %}  constexpr bool whole = size<1>(tRrC) * {% if splits > 1 %}own_n{% else %}parts_n{% endif %} == buffers;  // each part has a buffer of its own
  CUTE_UNROLL
  for (int m = 0; m < size<1>(tRrC); ++m) {
    CUTE_UNROLL
    for (int n = 0; n < {% if splits > 1 %}own_n{% else %}parts_n{% endif %}; ++n) {
      if constexpr (whole) {
        buffer = m * {% if splits > 1 %}own_n{% else %}parts_n{% endif %} + n;
      }
      CUTE_UNROLL
      for (int i = 0; i < size<1>(tRsD); i += at_once) {
        int const first = n * size<1>(tRsD) + i;
{% for t in c.reads() %}        Tensor tRr[[ t.read_name() ]] = read_part<Element[[ t.is.name ]], TmaStore && [[ t.lies_along_n() ]]>(
          [[ t.is_read() ]], in_pairs_[[ t.is.param ]], part(m[[ t.is.name ]], m, {% if splits > 1 %}first_n * size<1>(tRsD) + {% endif %}first), part(cD, m, {% if splits > 1 %}first_n * size<1>(tRsD) + {% endif %}first), inside_[[ t.is.param ]]);  // (CPY,AT_ONCE)
{% endfor %}        if (i == 0 && (!whole || m + n == 0)) {
          if (TmaStore && threadIdx.x % 128 == 0) {
            tma_store_wait<whole ? 0 : buffers - 1>();
          }
          sync();  // the buffer has been read, or all of them
        }
        CUTE_UNROLL
        for (int j = 0; j < at_once; ++j) {
          Tensor tRrD = make_tensor<ElementD>(make_shape(shape<0>(tRsD)));                     // (CPY)
          CUTE_UNROLL
          for (int v = 0; v < size(tRrD); ++v) {
            // A branch that is always taken: a few elements are computed after others, with the registers of few.
            if (few > 2 || anew(v / few) == v / few) {
              float const a = !TmaStore && is_zero ? 0.0f : tRrC(make_coord(v, first + j), m, _0{});
              tRrD(v) = [[ c.rounded("tRr", "(v,j)") ]];
            }
          }
          copy(StageD{}, tRrD, tRsD(_,i + j,buffer));
        }
      }
      if constexpr (TmaStore) {
        tma_store_fence();
      }
      sync();  // the part is there
      int const part_m = get<0>(crd_D) * size<1>(tRrC) + m;
      int const part_n = get<1>(crd_D) * parts_n + {% if splits > 1 %}first_n + {% endif %}n;
      if constexpr (TmaStore) {
        store_by_tma(params, part_m, part_n{% if c.batched() %}, get<2>(crd_D){% endif %}, smem_D, buffer);
      } else {
        store_elements(params, part_m, part_n{% if c.batched() %}, get<2>(crd_D){% endif %}, sD, buffer);
      }
      buffer = buffer + 1 == buffers ? 0 : buffer + 1;
    }
  }
}

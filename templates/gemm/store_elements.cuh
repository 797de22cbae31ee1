
  // Stores element by element, so D may have any alignment.
  template <class Crd>
  CUTE_DEVICE
  void
  store_elements(Crd const& crd_D) const
  {
{%- for t in c.written() %}
{% include "gemm/matrix.cuh" %}
{%- endfor %}
    int const thread = anew(threadIdx.x % size(Mma{}));
    if (thread >= size(CopyD{})) {
      return;
    }
    auto const crd = take<0,2>(crd_D);
    auto const thr_copy = CopyD{}.get_slice(thread);
    Tensor tDcD = thr_copy.partition_D(make_identity_tensor(PartD{}));                         // (CPY,CPY_M,CPY_N) -> (m,n) of it
{%- let n = c.each("params.n", "params.n / 2") %}
    auto const residue = make_coord([[ c.rows_d() ]] - get<0>(crd) * size<0>(PartD{}), [[ n ]] - get<1>(crd) * size<1>(PartD{}));
    auto const store = [&](auto const& matrix, int from) {
      Tensor sP = as_position_independent_swizzle_tensor(sD(_,_,from));                        // (PART_M,PART_N)
      Tensor tDsD = partition_S(CopyD{}, thread, sP);                                          // (CPY,CPY_M,CPY_N)
      Tensor tDgD = thr_copy.partition_D(local_tile(matrix, PartD{}, crd));  // (CPY,CPY_M,CPY_N)
      #pragma unroll [[ r.direct.stores ]]  // bounds registers: accumulators of later slices are live
      for (int i = 0; i < size(tDsD); ++i) {
        if (elem_less(tDcD(i), residue)) {
          tDgD(i) = tDsD(i);
        }
      }
    };
{%- for t in c.written() %}
    store(m[[ t.is.name ]], place([[ c.output_of(t) ]]));
{%- endfor %}
  }

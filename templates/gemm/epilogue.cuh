// Epilogue of a tile, slice by slice. The inputs of a slice are read before any thread writes that slice of D, because D may alias
// them. Slices reuse the shared memory of the stages, which all warps have read.
template <class Crd, class TCrC>
CUTE_DEVICE
void
store_tile(Params const& params, Crd const& crd_D, TCrC const& tCrC, SharedStorage& shared)
{
  int const thread = anew(threadIdx.x);  // recomputed here, so that the mainloop holds nothing derived from it in registers
  auto const crd = take<0,2>(crd_D);                                                           // (m,n)
{%- for t in c.epilogue() %}
{% include "gemm/matrix.cuh" %}
{%- endfor %}
  auto const thr_mma = Mma{}.get_slice(thread);
{%- for t in c.reads() %}
  Tensor g[[ t.is.name ]] = local_tile(m[[ t.is.name ]], TileD{}, crd);                                            // (BM,BN)
  Tensor tCg[[ t.is.name ]] = thr_mma.partition_C(g[[ t.is.name ]]);                                       // (MMA,MMA_M,MMA_N)
{%- endfor %}
  Tensor cD = make_identity_tensor(make_shape([[ c.rows_d() ]], params.n));                            // (M,N) -> (m,n)
  Tensor tCcD = thr_mma.partition_C(local_tile(cD, TileD{}, crd));                           // (MMA,MMA_M,MMA_N) -> (m,n)
  Tensor sD = make_tensor(make_smem_ptr(shared.d), SmemD{});                                   // (PART_M,BN,OUTPUTS)
  Tensor tRsD = partition_D(StageD{}, thread, sD);                                             // (CPY,CPY_M,MMA_N,OUTPUTS)
  Op const op{[[ c.op.scalars ]]};
  CUTE_UNROLL
  for (int part = 0; part < size<1>(tCrC); ++part) {
    constexpr int at_once = [[ r.at_once ]];  // atoms along N, as many as there are registers for what is read
    CUTE_UNROLL
    for (int first = 0; first < size<2>(tCrC); first += at_once) {
{%- if !c.reads().is_empty() %}
      if (params.m < -first) {
        continue;  // never taken, but ptxas cannot know that, so it does not hoist the reads of later atoms
      }
{%- endif %}
      CUTE_UNROLL
      for (int n = first; n < cute::min(first + at_once, int(size<2>(tCrC))); ++n) {
{%- for t in c.reads() %}
        Tensor tCr[[ t.read_name() ]] = make_tensor<Element[[ t.is.name ]]>(shape<0>(tCrC));                            // (MMA)
        clear(tCr[[ t.read_name() ]]);
        if ([[ t.is_read() ]]) {
          CUTE_UNROLL
          for (int i = 0; i < size<0>(tCrC); ++i) {
            if ([[ t.inside("tCcD(i,part,n)") ]]) {
              tCr[[ t.read_name() ]](i) = tCg[[ t.is.name ]](i,part,n);
            }
          }
        }
{%- endfor %}
{%- let shape = c.each("shape<0>(tCrC)", "make_shape(_1{}, shape<0,1>(tCrC))") %}
{%- for t in c.outputs() %}
        Tensor tCr[[ t.is.name ]] = make_tensor<Element[[ t.is.name ]]>([[ shape ]]);                            // (MMA)
{%- endfor %}
        CUTE_UNROLL
        for (int i = 0; i < size<0>(tCrC); [[ c.each("++i", "i += 2") ]]) {
          [[ c.compute() ]] const a = tCrC(i,part,n);
          auto const y = op(a[[ c.inputs("tCrC(i + 1,part,n)", "tCr", ["(i)", "(i + 1)"]) ]]);
{%- for t in c.written() %}
          tCr[[ t.is.name ]]([[ c.each("i", "i / 2") ]]) = output<[[ c.output_of(t) ]]>(y);
{%- endfor %}
        }
        CUTE_UNROLL
        for (int m = 0; m < size<1>(tRsD); ++m) {
{%- for t in c.written() %}
          copy_all(StageD{}, tCr[[ t.is.name ]](make_coord(_,m)), tRsD(_,m,n,[[ c.output_of(t) ]]));
{%- endfor %}
        }
      }
    }
    __syncthreads();  // the slice is complete
{%- for t in c.written() %}
    store_part(sD(_,_,[[ c.output_of(t) ]]), m[[ t.is.name ]], crd, part);
{%- endfor %}
    __syncthreads();  // all threads have read the slice before the next one overwrites it
  }
}

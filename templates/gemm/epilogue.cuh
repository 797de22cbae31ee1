// Epilogue of a tile, slice by slice. The inputs of a slice are read before any thread writes that slice of D, because D may alias them.
// Slices reuse the shared memory of the stages, which all warps have read.
template <class Crd, class TCrC>
CUTE_DEVICE
void
store_tile([[ c.plan.name() ]]_params const& params, Crd const& crd, TCrC const& tCrC, SharedStorage& shared)
{
  int const thread = anew(threadIdx.x);  // recomputed here, so that the mainloop holds nothing derived from it in registers
  auto const crd_D = take<0,2>(crd);                                                           // (m,n)
{% if c.batched() %}  int const l = get<2>(crd);
{% endif %}{% for t in c.epilogue() %}{% include "tensor.cuh" %}{% if c.batched() %}(_,_,l){% endif %};  // [[ t.modes ]]
{% endfor %}{% if !c.reads().is_empty() %}  auto const thr_mma = Mma{}.get_slice(thread);
{% endif %}{% for t in c.reads() %}  Tensor tCg[[ t.is.name ]] = thr_mma.partition_C(local_tile(m[[ t.is.name ]], TileD{}, crd_D));  // (MMA,MMA_M,MMA_N)
{% endfor %}{% if c.reads_have_ends() %}  Tensor cD = make_identity_tensor(shape(mD));                                                 // (M,N) -> (m,n)
  Tensor tCcD = thr_mma.partition_C(local_tile(cD, TileD{}, crd_D));                           // (MMA,MMA_M,MMA_N) -> (m,n)
{% endif %}  Tensor sD = make_tensor(make_smem_ptr(shared.d), SmemD{});                                   // (PART_M,BN,OUTPUTS)
  Tensor tRsD = partition_D(StageD{}, thread, sD);                                             // (CPY,CPY_M,MMA_N,OUTPUTS)
  Op const op{[[ c.op.scalars ]]};
  CUTE_UNROLL
  for (int part = 0; part < size<1>(tCrC); ++part) {
    constexpr int at_once = {% if c.reads().is_empty() %}size<2>(typename TCrC::layout_type{});{% else %}[[ c.at_once() ]];{% endif %}  // atoms along N{% if !c.reads().is_empty() %}, as many as there are registers for what is read{% endif %}
    CUTE_UNROLL
    for (int first = 0; first < size<2>(tCrC); first += at_once) {
{% if !c.reads().is_empty() %}      if (params.m < -first) {
        continue;  // never taken, but ptxas cannot know that, so it does not hoist the reads of later atoms
      }
{% endif %}      CUTE_UNROLL
      for (int n = first; n < cute::min(first + at_once, int(size<2>(tCrC))); ++n) {
{% for t in c.reads() %}        Tensor tCr[[ t.read_name() ]] = make_tensor<Element[[ t.is.name ]]>(shape<0>(tCrC));                       // (MMA)
        clear(tCr[[ t.read_name() ]]);
        {% if !t.guard.is_empty() %}if ([[ t.guard ]]) {% endif %}{
          CUTE_UNROLL
          for (int i = 0; i < size<0>(tCrC); ++i) {
            if ([[ t.inside("tCcD(i,part,n)") ]]) {
              tCr[[ t.read_name() ]](i) = tCg[[ t.is.name ]](i,part,n);
            }
          }
        }
{% endfor %}        Tensor tCrD = make_tensor<ElementD>(shape<0>(tCrC));                                     // (MMA)
{% if c.has_e() %}        Tensor tCrE = make_tensor<ElementE>(shape<0>(tCrC));                                     // (MMA)
{% endif %}        CUTE_UNROLL
        for (int i = 0; i < size<0>(tCrC); ++i) {
          float const a = tCrC(i,part,n);
{% if c.has_e() %}          auto const y = [[ c.computed("tCr", "(i)") ]];
          tCrE(i) = [[ c.rounded("get<1>(y)") ]];
          tCrD(i) = [[ c.rounded("get<0>(y)") ]];
{% else %}          tCrD(i) = [[ c.rounded(c.computed("tCr", "(i)").as_str()) ]];
{% endif %}        }
        CUTE_UNROLL
        for (int m = 0; m < size<1>(tRsD); ++m) {
{% for t in c.written() %}          copy_all(StageD{}, tCr[[ t.is.name ]](make_coord(_,m)), tRsD(_,m,n,[[ c.output_of(t) ]]));
{% endfor %}        }
      }
    }
    __syncthreads();  // the slice is complete
{% for t in c.written() %}    store_part(sD(_,_,[[ c.output_of(t) ]]), m[[ t.is.name ]], crd_D, part);
{% endfor %}    __syncthreads();  // all threads have read the slice before the next one overwrites it
  }
}

// Accumulators as the fragment of A that they are: two atoms along N have the columns of one along K.
template <class TCrC>
CUTE_DEVICE
auto
as_factor(TCrC const& tCrC)
{
  auto const layout = logical_divide(tCrC.layout(), Shape<Underscore,Underscore,_2>{});          // (MMA,MMA_M,(2,MMA_K))
  return make_tensor(tCrC.data(), make_layout(make_layout(get<0>(layout), get<2,0>(layout)),
                                              get<1>(layout), get<2,1>(layout)));               // ((MMA,2),MMA_M,MMA_K)
}

{% include "gemm/scatter.cuh" %}

{% let tile = c.tile_of_d() -%}
template <class SD, class MD, class Crd>
CUTE_DEVICE
void
store_part(SD const& sD, MD const& mD, Crd const& crd_D, int part)
{
  scatter(sD, mD, threadIdx.x, get<0>(crd_D) * size<0>(TileD{}) + part * size<0>(sD), get<1>(crd_D) * size<1>([[ tile ]]{}));
}

// Rotary embedding with CuTe. `Threads` and `Half` are layouts and numbers of build.rs.
#include "rope_constants.cuh"

// Turns the pairs (x(m,j), x(m,j+Half)) of each row m by an angle, whose cosine and sine stand at (m,j).
extern "C" __global__ void __launch_bounds__(size(Threads{}))
rope(half_t* x, float const* cosines, float const* sines, int rows, int ldx)
{
  auto halves = make_layout(make_shape(rows, Int<Half>{}), make_stride(ldx, _1{}));
  auto angles = make_layout(make_shape(rows, Int<Half>{}), make_stride(Int<Half>{}, _1{}));
  Tensor mX = make_tensor(make_gmem_ptr(x), halves);             // (rows,Half)
  Tensor mY = make_tensor(make_gmem_ptr(x + Half), halves);      // (rows,Half)
  Tensor mC = make_tensor(make_gmem_ptr(cosines), angles);       // (rows,Half)
  Tensor mS = make_tensor(make_gmem_ptr(sines), angles);         // (rows,Half)
  Tensor mI = make_identity_tensor(make_shape(rows, Int<Half>{}));

  auto mine = [&](auto const& m) {
    auto tile = local_tile(m, shape(Threads{}), make_coord(int(blockIdx.x), 0));
    return local_partition(tile, Threads{}, threadIdx.x);        // (1,1)
  };
  auto tX = mine(mX);
  auto tY = mine(mY);
  auto tC = mine(mC);
  auto tS = mine(mS);
  auto tI = mine(mI);

  CUTE_UNROLL
  for (int i = 0; i < size(tX); ++i) {
    if (get<0>(tI(i)) < rows) {
      float a = tX(i), b = tY(i);
      tX(i) = half_t(a * tC(i) - b * tS(i));
      tY(i) = half_t(a * tS(i) + b * tC(i));
    }
  }
}

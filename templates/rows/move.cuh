// Loads or stores a thread's part of chunk c: (CPY,CPY_M,CHUNKS) on both sides. Nothing outside of the row is touched.
template <class Walk, class Copy, class Inside, class Src, class Dst>
CUTE_DEVICE
void
move(Inside const& inside, int c, Src const& src, Dst&& dst)
{
  if constexpr (Walk::whole) {
    if (inside(0, c)) {
      copy_all(Copy{}, src(_, _0{}, c), dst(_, _0{}, c));
    }
  } else {
    CUTE_UNROLL
    for (int v = 0; v < size<0>(src); ++v) {
      if (inside(v, c)) {
        dst(v, _0{}, c) = src(v, _0{}, c);
      }
    }
  }
}

// All chunks, whose loads are in flight together.
template <class Walk, class Copy, class Inside, class Src, class Dst>
CUTE_DEVICE
void
move_all(Inside const& inside, Src const& src, Dst&& dst)
{
  CUTE_UNROLL
  for (int c = 0; c < size<2>(src); ++c) {
    move<Walk, Copy>(inside, c, src, dst);
  }
}

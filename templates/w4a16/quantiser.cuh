// The quantiser of a group along K. `s` and `z` belong to 16 neighbours along N; the thread has the even or the odd ones.
CUTE_DEVICE
Quantiser
quantiser_of(Element const* s, bool odd)
{
  Quantiser of;
  uint32_t const twice = odd ? 0x3232 : 0x1010;
  uint4 const scales[2] = {reinterpret_cast<uint4 const*>(s)[0], reinterpret_cast<uint4 const*>(s)[1]};
  CUTE_UNROLL
  for (int j = 0; j < 8; ++j) {
    uint4 const& four = scales[j / 4];
    uint32_t const both = j % 4 == 0 ? four.x : j % 4 == 1 ? four.y : j % 4 == 2 ? four.z : four.w;
    of.scale[j] = pair_of<Pair>(__byte_perm(both, 0, twice));
    of.zero[j] = zero_of(base + 0x00080008);
  }
  return of;
}

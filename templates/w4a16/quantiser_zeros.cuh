// The quantiser of a group along K. `s` and `z` belong to 16 neighbours along N; the thread has the even or the odd ones.
CUTE_DEVICE
Quantiser
quantiser_of(Element const* s, uint8_t const* z, bool odd)
{
  Quantiser of;
  uint32_t const twice = odd ? 0x3232 : 0x1010;
  uint4 const scales[2] = {reinterpret_cast<uint4 const*>(s)[0], reinterpret_cast<uint4 const*>(s)[1]};
  uint4 const zeros = *reinterpret_cast<uint4 const*>(z);
  uint32_t const with_high = odd ? 0x4141 : 0x4040;  // a byte of zero points, and the higher byte of the base
  CUTE_UNROLL
  for (int j = 0; j < 8; ++j) {
    uint4 const& four = scales[j / 4];
    uint32_t const both = j % 4 == 0 ? four.x : j % 4 == 1 ? four.y : j % 4 == 2 ? four.z : four.w;
    of.scale[j] = pair_of<Pair>(__byte_perm(both, 0, twice));
    uint32_t const bytes = j / 2 == 0 ? zeros.x : j / 2 == 1 ? zeros.y : j / 2 == 2 ? zeros.z : zeros.w;
    of.zero[j] = zero_of(__byte_perm(bytes & 0x0f0f0f0f, base >> 8 & 0xff, with_high + j % 2 * 0x0202));
  }
  return of;
}

template <class Pair>
CUTE_DEVICE
Pair
pair_of(uint32_t bits)
{
  return reinterpret_cast<Pair const&>(bits);
}

// `bits` of a word, in the number `base`; one instruction, which nvcc does not find.
template <uint32_t bits>
CUTE_DEVICE
uint32_t
with_base(uint32_t word, uint32_t base)
{
  uint32_t numbers;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(numbers) : "r"(word), "n"(bits), "r"(base));
  return numbers;
}

{% match d.recipe.dtype %}
{%- when DType::F16 -%}
{% include "w4a16/weights_f16.cuh" %}
{%- when _ -%}
{% include "w4a16/weights_bf16.cuh" %}
{%- endmatch %}

// Scales and zero points of a thread's 8 columns of a warp's 64.
struct Quantiser {
  Pair scale[8];  // each twice
  Zero zero[8];
};

[[ quantiser ]]

// Fragments of B of 8 MMAs from the 32 weights of a thread. Register b of MMA j is a nibble of a word and the one 16 bits above it.
template <class TCrB>
CUTE_DEVICE
void
dequantise(uint32_t const (&words)[4], Quantiser const& of, TCrB& tCrB)
{
  Tensor tCrB_pairs = recast<uint32_t>(tCrB);                                                  // (2,MMA_N,_1)
  CUTE_STATIC_ASSERT_V(size(tCrB_pairs) == _16{}, "32 weights");
  CUTE_UNROLL
  for (int j = 0; j < 8; ++j) {
    CUTE_UNROLL
    for (int b = 0; b < 2; ++b) {
      Pair const weights = __hmul2(difference(words[j / 2] >> 8 * (j % 2), b, of.zero[j]), of.scale[j]);
      tCrB_pairs(b, j, 0) = reinterpret_cast<uint32_t const&>(weights);
    }
  }
}

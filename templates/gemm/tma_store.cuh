// Stores a box of a slice by TMA. PTX, because CuTe's TMA store has no L2 hint.
template <class From, class At>
CUTE_DEVICE
void
tma_store(CUtensorMap const& map, From const& from, At const& at, uint64_t hint)
{
{%- if c.d().has_l() %}
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.L2::cache_hint [%0, {" "%2, %3, %5}], [%1], %4;"
               :: "l"(&map), "r"(cast_smem_ptr_to_uint(raw_pointer_cast(from.data()))),
                  "r"(int32_t(get<0>(at))), "r"(int32_t(get<1>(at))), "l"(hint), "r"(int32_t(get<2>(at))) : "memory");
{%- else %}
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {" "%2, %3}], [%1], %4;"
               :: "l"(&map), "r"(cast_smem_ptr_to_uint(raw_pointer_cast(from.data()))),
                  "r"(int32_t(get<0>(at))), "r"(int32_t(get<1>(at))), "l"(hint) : "memory");
{%- endif %}
}

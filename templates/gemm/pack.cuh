{%- for way in c.ways_to_pack() -%}
{%- match way %}
{%- when Way::AsItLies -%}
{% include "gemm/pack_tile.cuh" %}
{%- when Way::Gathered -%}
{% include "gemm/gather_tile.cuh" %}
{%- when Way::Turned -%}
{% include "gemm/turn_tile.cuh" %}
{%- endmatch %}

{% endfor %}
{%- let a = c.operands[0] %}
{%- let b = c.operands[1] -%}
// Packs A, B or both for the entry that multiplies.
CUTE_DEVICE
void
pack(Params const& params)
{
{%- if c.overlaps() %}
  cudaTriggerProgrammaticLaunchCompletion();  // PDL: the entry that multiplies may begin, and waits for this one
  cudaGridDependencySynchronize();  // PDL: the kernel before this one has written the operands, and no longer reads the workspace
{%- endif %}
  int const cta = blockIdx.x;
  auto const workspace = static_cast<Element*>(params.workspace);
  if (cta < params.packs_a) {
{%- match c.gathers() %}
{%- when true %}
    gather_tile(params, workspace + params.packed_a, cta);
{%- when false %}
    [[ c.packing(a) ]](params.a, [[ c.rows(a) ]],
              workspace + params.packed_a, params.from_[[ c.strides(a)[0] ]], cta);
{%- endmatch %}
  } else {
    [[ c.packing(b) ]](params.b, [[ c.rows(b) ]],
              workspace + params.packed_b, params.from_[[ c.strides(b)[0] ]], cta - params.packs_a);
  }
}

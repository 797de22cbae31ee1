{% for section in self.sections() %}
{% match section %}
{%- when Section::Outside -%}
{% include "gemm/outside.cuh" %}
{%- when Section::Resident -%}
{% include "gemm/resident.cuh" %}
{%- when Section::Streamed -%}
{% include "gemm/streamed.cuh" %}
{%- when Section::KTile -%}
{% include "gemm/k_tile.cuh" %}
{%- when Section::FromGroup -%}
{% include "gemm/from_group.cuh" %}
{%- when Section::Later -%}
{% include "gemm/later.cuh" %}
{%- when Section::Producer -%}
{% include "gemm/producer.cuh" %}
{%- when Section::Pack -%}
{% include "gemm/pack.cuh" %}
{%- when Section::Read -%}
{% include "gemm/read.cuh" %}
{%- when Section::Ahead -%}
{% include "gemm/ahead.cuh" %}
{%- when Section::Round -%}
{% include "gemm/round.cuh" %}
{%- when Section::TmaStore -%}
{% include "gemm/tma_store.cuh" %}
{%- when Section::Scatter -%}
{% include "gemm/scatter.cuh" %}
{%- when Section::Store -%}
{% include "gemm/store.cuh" %}
{%- when Section::StreamK -%}
{% include "gemm/stream_k.cuh" %}
{%- when Section::Promoted([k_tiles, elements]) -%}
{% include "gemm/mainloop_promoted.cuh" %}
{%- when Section::Wgmma -%}
{% include "gemm/mainloop_wgmma.cuh" %}
{%- when Section::Quantise(t) -%}
{% include "gemm/quantise.cuh" %}
{%- when Section::Keep -%}
{% include "gemm/keep.cuh" %}
{%- when Section::Overlapped -%}
{% include "gemm/consumer_overlapped.cuh" %}
{%- when Section::Consumer -%}
{% include "gemm/consumer.cuh" %}
{%- endmatch %}
{% endfor %}

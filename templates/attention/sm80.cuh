[[ c.banner ]]
//
// O = softmax(scale * Q @ K^T) @ V of each head, by mma.sync. K and V pass in steps; scores stay in registers.
// Launch: [[ c.threads ]] threads, one CTA for a tile of queries of a head, [[ c.smem_bytes ]] bytes of dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>
{%- for header in c.headers %}
#include <[[ header ]]>
{%- endfor %}

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "attention/types.cuh" %}

struct Stages {
{%- for t in c.living(Lives::Mainloop) %}
  alignas([[ t.align.0 ]]) [[ c.stored(t.name) ]] [[ t.name.to_lowercase() ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
};

union SharedStorage {
  Stages stages;
  // The epilogue reuses them after the last step.
{%- for t in c.living(Lives::Epilogue) %}
  alignas([[ t.align.0 ]]) [[ c.stored(t.name) ]] [[ t.name.to_lowercase() ]][cosize_v<Smem[[ t.name ]]>];
{%- endfor %}
};
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "gemm/copy_inside.cuh" %}

{% include "attention/mask.cuh" %}

{% include "attention/work.cuh" %}

{% include "attention/work_of.cuh" %}

{% include "attention/steps.cuh" %}
{%- if c.recipe.is_narrow() %}

{% include "attention/narrow.cuh" %}
{%- endif %}

{% include "attention/scores.cuh" %}

{% include "attention/factor.cuh" %}

{% include "attention/out.cuh" %}
{% include "attention/epilogue.cuh" %}

{% include "attention/mainloop_cp_async.cuh" %}

CUTE_DEVICE
void
kernel(Params const& params)
{
  assert_ieee();
  extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
  Work const work = work_of(params, blockIdx.x);
  if (work.first < work.len_q) {
    attend([[ c.params() ]], work, *reinterpret_cast<SharedStorage*>(smem));
  }
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

[[ c.banner ]]
//
// O = softmax(scale * Q @ K^T) @ V of each head, by mma.sync, over keys that lie in pages. A CTA has the keys of a split and leaves
// its sums in the workspace; a second kernel combines them.
// Launch: [[ c.threads ]] threads, one CTA for rows of a key head and a split, [[ c.smem_bytes ]] bytes of dynamic shared memory.
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

struct SharedStorage {
  Stages stages;
};
static_assert(sizeof(SharedStorage) == [[ c.smem_bytes ]], "bytes of dynamic shared memory");

{% include "attention/mask.cuh" %}

{% include "attention/work_pages.cuh" %}

{% include "attention/steps.cuh" %}
{%- if c.recipe.is_narrow() %}

{% include "attention/narrow.cuh" %}
{%- endif %}

{% include "attention/scores.cuh" %}

{% include "attention/factor.cuh" %}

{% include "attention/copy_rows.cuh" %}

{% include "attention/parts.cuh" %}

{% include "attention/mainloop_pages.cuh" %}

{% include "attention/combine.cuh" %}

CUTE_DEVICE
void
kernel(Params const& params)
{
  assert_ieee();
  extern __shared__ __align__([[ c.align ]]) unsigned char smem[];
  Work const work = work_of(params, blockIdx.x);
  if (work.first < work.rows()) {
    attend([[ c.params() ]], work, *reinterpret_cast<SharedStorage*>(smem));
  }
}

}  // namespace [[ c.plan.name() ]]
}  // namespace cutemplate

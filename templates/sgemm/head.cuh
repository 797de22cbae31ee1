[[ c.banner ]]
//
// SGEMM, [[ c.what ]]: A is (M,K{% if c.batched %},L{% endif %}), B is (K,N{% if c.batched %},L{% endif %}), here as (N,K{% if c.batched %},L{% endif %}), D is (M,N{% if c.batched %},L{% endif %}).
// Launch: [[ c.plan.threads() ]] threads, [[ c.blocks_doc ]] blocks, {% if c.stages > 1 %}[[ c.plan.smem().0 ]] bytes of{% else %}no{% endif %} dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}
{% for t in c.epilogue() %}using Element[[ t.name ]] = [[ t.element() ]];
{% endfor -%}
{% if !c.helpers.is_empty() %}
[[ c.helpers ]]{% endif %}
// Epilogue of a = sum over k of A(m,k) * B(k,n)[[ c.inputs_doc ]]: [[ c.function ]]
[[ c.functor ]]

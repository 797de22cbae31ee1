[[ c.banner ]]
//
// SGEMM, [[ c.d.recipe.variant.what() ]]: A is (M,K{% if c.d.recipe.batched %},L{% endif %}), B is (K,N{% if c.d.recipe.batched %},L{% endif %}), here as (N,K{% if c.d.recipe.batched %},L{% endif %}), D is (M,N{% if c.d.recipe.batched %},L{% endif %}).
// Launch: [[ c.plan.threads() ]] threads, [[ c.blocks_doc ]] blocks, {% if c.d.stages() > 1 %}[[ c.plan.smem().0 ]] bytes of{% else %}no{% endif %} dynamic shared memory.
#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}
{% for t in c.epilogue() %}using Element[[ t.is.name ]] = [[ t.is.dtype.cxx() ]];
{% endfor %}
[[ c.op.helpers ]]// Epilogue of a = sum over k of A(m,k) * B(k,n)[[ c.op.inputs_doc ]]: [[ c.d.recipe.epilogue ]]
[[ c.op.functor ]]

[[ c.banner ]]
//
// SGEMM, [[ c.d.recipe.variant.what() ]]: [[ c.shapes ]].
// Launch: [[ c.plan.threads() ]] threads, [[ c.blocks ]] blocks, [[ c.dynamic_smem() ]] bytes of dynamic shared memory.
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

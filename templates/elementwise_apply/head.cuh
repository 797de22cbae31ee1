#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% for t in c.tensors %}using Element[[ t.name ]] = [[ t.element ]];
{% endfor -%}
{% if !c.helpers.is_empty() %}
[[ c.helpers ]]{% endif %}
// [[ c.function ]], computed in [[ c.compute ]], every operation rounded by itself (nvcc -fmad=false)
[[ c.functor ]]

#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}
{% for t in c.epilogue %}using Element[[ t.name ]] = [[ t.element ]];
{% endfor -%}
{% if !c.helpers.is_empty() %}
[[ c.helpers ]]{% endif %}
// Epilogue of a = sum over k of A(m,k) * B(k,n)[[ c.inputs_doc ]]: [[ c.function ]]
[[ c.functor ]]

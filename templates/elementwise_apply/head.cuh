#pragma once

#include <cute/tensor.hpp>

#include "[[ c.plan.name() ]]_params.h"

namespace cutemplate {
namespace [[ c.plan.name() ]] {

using namespace cute;

{% include "ieee.cuh" %}
{% for t in c.tensors %}using Element[[ t.name ]] = [[ t.element ]];
{% endfor %}
{% for t in c.tensors %}static_assert(sizeof(Element[[ t.name ]]) == [[ t.bytes ]], "type of [[ t.name ]]");
{% endfor %}
[[ c.helpers ]]// [[ c.function ]], computed in [[ c.compute ]], every operation rounded by itself
[[ c.functor ]]

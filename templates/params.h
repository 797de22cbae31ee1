[[ banner ]]
//
// Parameters of the kernel [[ plan.name() ]], passed by value as its only argument. Plain C.
#ifndef CUTEMPLATE_[[ plan.name()|upper ]]_PARAMS_H
#define CUTEMPLATE_[[ plan.name()|upper ]]_PARAMS_H

#include <assert.h>
{% for header in params::c_headers(plan) %}#include <[[ header ]]>
{% endfor %}#include <stddef.h>
#include <stdint.h>

typedef struct [[ params::c_name(plan) ]] {
[[ params::c_fields(plan.params().fields()) ]]
} [[ params::c_name(plan) ]];

{% for (condition, what) in params::c_assertions(plan) -%}
static_assert([[ condition ]], "[[ what ]]");
{% endfor %}
#endif

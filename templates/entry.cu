[[ banner ]]
#include "[[ plan.name() ]].cuh"
{% for entry in plan.entries() %}
extern "C" __global__ void __launch_bounds__([[ entry.launch_bounds() ]])
[[ entry.name ]](__grid_constant__ [[ params::c_name(plan) ]] const params)
{
  cutemplate::[[ plan.name() ]]::[[ entry.function(plan.name()) ]](params);
}
{% endfor %}
[[ banner ]]
#define CUTEMPLATE_NO_LAUNCH  // the program that loads these kernels launches them
#include "[[ plan.name() ]].cuh"
{% for entry in plan.entries() %}
extern "C" __global__ void [[ entry.attributes()|join(" ") ]]
[[ entry.name ]](__grid_constant__ [[ params::c_name(plan) ]] const params)
{
  cutemplate::[[ plan.name() ]]::[[ entry.function(plan.name()) ]](params);
}
{% endfor %}
[[ banner ]]
#include "[[ plan.name() ]].cuh"

extern "C" __global__ void __launch_bounds__([[ plan.threads() ]])
[[ plan.name() ]](__grid_constant__ [[ params::c_name(plan) ]] const params)
{
  cutemplate::[[ plan.name() ]]::kernel(params);
}

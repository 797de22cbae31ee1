// Requires IEEE arithmetic: denormals are kept, and functions such as expf are not approximated. The preprocessor cannot see
// -ftz=true or -use_fast_math, but NVVM can: it then leaves a call that ptxas cannot resolve. -use_fast_math also implies
// -prec-div=false.
extern "C" __device__ int __nvvm_reflect(char const*);
extern "C" __device__ void cutemplate_needs_ftz_false_and_no_use_fast_math();
CUTE_DEVICE void assert_ieee() {
  if (__nvvm_reflect("__CUDA_FTZ") != 0 || __nvvm_reflect("__CUDA_PREC_DIV") == 0) {
    cutemplate_needs_ftz_false_and_no_use_fast_math();
  }
}

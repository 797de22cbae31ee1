// Denormals are kept and expf and its kind are not approximated. No preprocessor sees -ftz=true and -use_fast_math, but NVVM does,
// where -use_fast_math shows as -prec-div=false too: with them a call is left that ptxas cannot resolve.
extern "C" __device__ int __nvvm_reflect(char const*);
extern "C" __device__ void cutemplate_needs_ftz_false_and_no_use_fast_math();
CUTE_DEVICE void assert_ieee() {
  if (__nvvm_reflect("__CUDA_FTZ") != 0 || __nvvm_reflect("__CUDA_PREC_DIV") == 0) {
    cutemplate_needs_ftz_false_and_no_use_fast_math();
  }
}

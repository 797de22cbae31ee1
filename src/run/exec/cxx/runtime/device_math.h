// Device functions that a host compiler does not have: cached loads, integer and type-casting intrinsics, and the
// single-precision intrinsics, which here are as exact as the host's own functions.
#ifndef CUTEMPLATE_HOST_DEVICE_MATH_H
#define CUTEMPLATE_HOST_DEVICE_MATH_H

#define CUTEMPLATE_HOST_LOAD(NAME) \
  template <class T>               \
  T NAME(T const *address) {       \
    return *address;               \
  }
CUTEMPLATE_HOST_LOAD(__ldg)
CUTEMPLATE_HOST_LOAD(__ldca)
CUTEMPLATE_HOST_LOAD(__ldcg)
CUTEMPLATE_HOST_LOAD(__ldcs)
CUTEMPLATE_HOST_LOAD(__ldcv)
CUTEMPLATE_HOST_LOAD(__ldlu)
#undef CUTEMPLATE_HOST_LOAD

#define CUTEMPLATE_HOST_STORE(NAME) \
  template <class T>                \
  void NAME(T *address, T value) {  \
    *address = value;               \
  }
CUTEMPLATE_HOST_STORE(__stcg)
CUTEMPLATE_HOST_STORE(__stcs)
CUTEMPLATE_HOST_STORE(__stwb)
CUTEMPLATE_HOST_STORE(__stwt)
#undef CUTEMPLATE_HOST_STORE

inline int __float_as_int(float x) { return cutemplate_host::from_bits<int>(cutemplate_host::to_bits(x)); }
inline unsigned __float_as_uint(float x) { return cutemplate_host::from_bits<unsigned>(cutemplate_host::to_bits(x)); }
inline float __int_as_float(int x) { return cutemplate_host::from_bits<float>(cutemplate_host::to_bits(x)); }
inline float __uint_as_float(unsigned x) { return cutemplate_host::from_bits<float>(cutemplate_host::to_bits(x)); }
inline long long __double_as_longlong(double x) { return (long long)cutemplate_host::to_bits(x); }
inline double __longlong_as_double(long long x) { return cutemplate_host::from_bits<double>(uint64_t(x)); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) {
    reversed |= ((x >> bit) & 1u) << (31 - bit);
  }
  return reversed;
}
inline int __mulhi(int a, int b) { return int((int64_t(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((uint64_t(a) * b) >> 32); }

// What nvcc knows of its own flags: the executor keeps denormals and divides exactly. `used`, since texts declare these two in
// namespaces of their own.
extern "C" __attribute__((used)) inline int __nvvm_reflect(char const *name) { return std::strcmp(name, "__CUDA_FTZ") != 0; }
extern "C" __attribute__((used)) inline void cutemplate_needs_ftz_false_and_no_use_fast_math() {
  cutemplate_host_trap(__FILE__, __LINE__);
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return float(1.0 / std::sqrt(double(x))); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
// glibc reserves __expf, __logf and the like for itself and declares them; macros go around its declarations.
#define __expf(x) std::exp(float(x))
#define __exp10f(x) float(std::pow(10.0, double(x)))
#define __logf(x) std::log(float(x))
#define __log2f(x) std::log2(float(x))
#define __log10f(x) std::log10(float(x))
#define __sinf(x) std::sin(float(x))
#define __cosf(x) std::cos(float(x))
#define __tanf(x) std::tan(float(x))
#define __powf(x, y) std::pow(float(x), float(y))

#define CUTEMPLATE_HOST_MINMAX(T)                     \
  inline T min(T a, T b) { return b < a ? b : a; }    \
  inline T max(T a, T b) { return a < b ? b : a; }
CUTEMPLATE_HOST_MINMAX(int)
CUTEMPLATE_HOST_MINMAX(unsigned)
CUTEMPLATE_HOST_MINMAX(long)
CUTEMPLATE_HOST_MINMAX(unsigned long)
CUTEMPLATE_HOST_MINMAX(long long)
CUTEMPLATE_HOST_MINMAX(unsigned long long)
#undef CUTEMPLATE_HOST_MINMAX
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
inline float rsqrtf(float x) { return __frsqrt_rn(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

#endif  // CUTEMPLATE_HOST_DEVICE_MATH_H

//! The CUDA program of the experiments: a kernel for each, one block of one warp.

use std::fmt::Write;

use super::{Experiment, Op, SOURCE, SPAN};

/// Times that each kernel makes its access, 1 KiB further each time: the same banks, and no load that is made once only.
pub(crate) const REQUESTS: u32 = 8;

/// The name of experiment `number`.
pub(crate) fn kernel(number: usize) -> String {
    format!("exp_{number:03}")
}

/// Loads add what they read, stores and copies are read back, so that nothing is done in vain.
const HEAD: &str = r#"// One warp, one access to shared memory, REQUESTS times. Addresses come from a table, so that no compiler knows them.
#include <cstdio>
#include <cuda_runtime.h>

struct Row { int lane[32]; int source[32]; };

__device__ __forceinline__ unsigned base(unsigned char* s) { return static_cast<unsigned>(__cvta_generic_to_shared(s)); }
template <int BYTES> __device__ __forceinline__ unsigned load(unsigned a);
template <> __device__ __forceinline__ unsigned load<1>(unsigned a) {
  unsigned r; asm volatile("ld.shared.u8 %0, [%1];" : "=r"(r) : "r"(a) : "memory"); return r;
}
template <> __device__ __forceinline__ unsigned load<2>(unsigned a) {
  unsigned short r; asm volatile("ld.shared.u16 %0, [%1];" : "=h"(r) : "r"(a) : "memory"); return r;
}
template <> __device__ __forceinline__ unsigned load<4>(unsigned a) {
  unsigned r; asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(a) : "memory"); return r;
}
template <> __device__ __forceinline__ unsigned load<8>(unsigned a) {
  unsigned x, y; asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(x), "=r"(y) : "r"(a) : "memory"); return x + 3 * y;
}
template <> __device__ __forceinline__ unsigned load<16>(unsigned a) {
  unsigned x, y, z, w;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(a) : "memory");
  return x + 3 * y + 5 * z + 7 * w;
}
template <int BYTES> __device__ __forceinline__ void store(unsigned a, unsigned v);
template <> __device__ __forceinline__ void store<1>(unsigned a, unsigned v) {
  asm volatile("st.shared.u8 [%0], %1;" :: "r"(a), "r"(v) : "memory");
}
template <> __device__ __forceinline__ void store<2>(unsigned a, unsigned v) {
  asm volatile("st.shared.u16 [%0], %1;" :: "r"(a), "h"(static_cast<unsigned short>(v)) : "memory");
}
template <> __device__ __forceinline__ void store<4>(unsigned a, unsigned v) {
  asm volatile("st.shared.u32 [%0], %1;" :: "r"(a), "r"(v) : "memory");
}
template <> __device__ __forceinline__ void store<8>(unsigned a, unsigned v) {
  asm volatile("st.shared.v2.u32 [%0], {%1,%2};" :: "r"(a), "r"(v), "r"(v + 1) : "memory");
}
template <> __device__ __forceinline__ void store<16>(unsigned a, unsigned v) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" :: "r"(a), "r"(v), "r"(v + 1), "r"(v + 2), "r"(v + 3) : "memory");
}
template <int BYTES> __device__ __forceinline__ void copy(unsigned a, const unsigned char* g) {
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(g) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(a), "l"(g), "n"(BYTES) : "memory");
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}
template <int BYTES> __device__ __forceinline__ void loads(const Row* row, unsigned* out) {
  __shared__ __align__(1024) unsigned char s[SPAN + 1024 * REQUESTS];
  int at = row->lane[threadIdx.x];
  if (at < 0) return;
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < REQUESTS; ++i) sum += load<BYTES>(base(s) + at + 1024 * i);
  out[threadIdx.x] = sum;
}
template <int BYTES> __device__ __forceinline__ void stores(const Row* row, unsigned* out) {
  __shared__ __align__(1024) unsigned char s[SPAN + 1024 * REQUESTS];
  int at = row->lane[threadIdx.x];
  if (at < 0) return;
  unsigned value = out[threadIdx.x];
#pragma unroll
  for (int i = 0; i < REQUESTS; ++i) store<BYTES>(base(s) + at + 1024 * i, value + i);
  out[threadIdx.x] = load<BYTES>(base(s) + at);
}
template <int BYTES> __device__ __forceinline__ void copies(const Row* row, unsigned* out, const unsigned char* source) {
  __shared__ __align__(1024) unsigned char s[SPAN + 1024 * REQUESTS];
  int at = row->lane[threadIdx.x];
  if (at < 0) return;
#pragma unroll
  for (int i = 0; i < REQUESTS; ++i) copy<BYTES>(base(s) + at + 1024 * i, source + row->source[threadIdx.x]);
  out[threadIdx.x] = load<BYTES>(base(s) + at);
}
"#;

const FOOT: &str = r#"
int main() {
  Row* rows; unsigned* out; unsigned char* source;
  bool ok = cudaMalloc(&rows, sizeof table) == cudaSuccess && cudaMalloc(&out, 128) == cudaSuccess &&
            cudaMalloc(&source, SOURCE) == cudaSuccess &&
            cudaMemcpy(rows, table, sizeof table, cudaMemcpyHostToDevice) == cudaSuccess &&
            cudaMemset(out, 0, 128) == cudaSuccess && cudaMemset(source, 0, SOURCE) == cudaSuccess;
  if (ok) launch(rows, out, source);
  cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s\n", ok ? cudaGetErrorString(error) : "no memory");
  return ok && error == cudaSuccess ? 0 : 1;
}
"#;

/// The whole program.
pub(crate) fn program(experiments: &[Experiment]) -> String {
    let mut text = HEAD.replace("REQUESTS", &REQUESTS.to_string()).replace("SPAN", &SPAN.to_string());
    let (mut table, mut launch) = (String::new(), String::new());
    for (number, experiment) in experiments.iter().enumerate() {
        let name = kernel(number);
        let (body, source) = match experiment.op {
            Op::Load => ("loads", ""),
            Op::Store => ("stores", ""),
            Op::Copy => ("copies", ", source"),
        };
        let lanes = list(experiment.addresses.iter().map(|a| a.unwrap_or(-1)));
        let sources = list(experiment.sources.iter().copied());
        let _ = writeln!(
            text,
            "// {}\nextern \"C\" __global__ void {name}(const Row* row, unsigned* out, const unsigned char* source) {{ \
             {body}<{}>(row, out{source}); }}",
            experiment.name, experiment.bytes
        );
        let _ = writeln!(table, "  {{{{{lanes}}}, {{{sources}}}}},");
        let _ = writeln!(launch, "  {name}<<<1, 32>>>(rows + {number}, out, source);");
    }
    let _ = write!(text, "\nstatic const Row table[] = {{\n{table}}};\n");
    let _ = write!(
        text,
        "static void launch(const Row* rows, unsigned* out, const unsigned char* source) {{\n{launch}}}\n"
    );
    text + &FOOT.replace("SOURCE", &SOURCE.to_string())
}

fn list(numbers: impl Iterator<Item = i64>) -> String {
    numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(",")
}

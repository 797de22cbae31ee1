//! cuBLAS as a baseline, through cudarc, loaded when it is first asked for.

use std::sync::Arc;

use cudarc::cublas::{result, sys};
use cudarc::driver::CudaStream;

use crate::dtype::DType;
use crate::launch::bench::BenchError;
use crate::launch::library;
use crate::view::ViewRef;

/// A handle on a stream, in cuBLAS's default math mode: f32 is not rounded to tf32 (cuBLAS Library, `cublasMath_t`).
pub(super) struct Cublas {
    handle: sys::cublasHandle_t,
    // The stream outlives the handle.
    _stream: Arc<CudaStream>,
}

/// How cuBLAS, which takes columns as contiguous, is told of a matrix.
struct Matrix {
    op: sys::cublasOperation_t,
    address: u64,
    ld: i32,
    batch: i64,
}

impl Matrix {
    /// Seen as its own transpose, as which cuBLAS sees rows. `None` where neither mode is contiguous or the stride is larger
    /// than cuBLAS's integers.
    fn transposed(view: &ViewRef) -> Option<Self> {
        let (shape, stride) = (view.layout.shape(), view.layout.stride());
        let (&[rows, cols], &[s0, s1]) = (shape.get(..2)?.first_chunk()?, stride.get(..2)?.first_chunk()?);
        let (op, ld) = match (s0, s1) {
            (ld, 1) => (sys::cublasOperation_t::CUBLAS_OP_N, ld.max(cols)),
            (1, ld) => (sys::cublasOperation_t::CUBLAS_OP_T, ld.max(rows)),
            _ => return None,
        };
        Some(Self { op, address: view.ptr, ld: i32::try_from(ld).ok()?, batch: stride.get(2).copied().unwrap_or(0) })
    }
}

impl Cublas {
    pub(super) fn new(stream: &Arc<CudaStream>) -> Result<Self, BenchError> {
        if library::find(library::CUBLAS).is_none() {
            return Err(BenchError::Cublas("libcublas is not there; put its folder into LD_LIBRARY_PATH".into()));
        }
        let failed = |e: result::CublasError| BenchError::Cublas(e.to_string());
        let handle = result::create_handle().map_err(failed)?;
        let cublas = Self { handle, _stream: stream.clone() };
        // SAFETY: handle and stream are alive, and the stream outlives the handle.
        unsafe { result::set_stream(handle, stream.cu_stream().cast()) }.map_err(failed)?;
        Ok(cublas)
    }

    /// D = A @ B for views `(M,K)`, `(K,N)` and row-major `(M,N)`, with an optional last mode L: all of f32, or A and B of f16
    /// with sums of f32.
    pub(super) fn product(&self, a: &ViewRef, b: &ViewRef, d: &ViewRef) -> Result<(), BenchError> {
        let int = |e: i64| i32::try_from(e).ok();
        let extent = |v: &ViewRef, mode: usize| v.layout.shape().get(mode).copied().unwrap_or(1);
        let extents = [extent(d, 0), extent(d, 1), extent(a, 1), extent(d, 2)].map(int);
        let extents = if let [Some(m), Some(n), Some(k), Some(l)] = extents { Some([m, n, k, l]) } else { None };
        let matrices = [a, b, d].map(Matrix::transposed);
        let (Some(extents), [Some(x), Some(y), Some(z)]) = (extents, matrices) else {
            return Err(BenchError::Cublas("the operands are not matrices that cuBLAS takes".into()));
        };
        let status = match (a.dtype, b.dtype, d.dtype) {
            (DType::F32, DType::F32, DType::F32) => self.single(extents, &x, &y, &z),
            (DType::F16, DType::F16, DType::F16) => self.half(extents, &x, &y, &z, sys::cudaDataType::CUDA_R_16F),
            (DType::F16, DType::F16, DType::F32) => self.half(extents, &x, &y, &z, sys::cudaDataType::CUDA_R_32F),
            (a, b, d) => {
                let found = format!("found {a} @ {b} to {d}, required f32, or f16 to f16 or f32");
                return Err(BenchError::Cublas(found));
            }
        };
        status.result().map_err(|e| BenchError::Cublas(e.to_string()))
    }

    fn single(&self, [m, n, k, l]: [i32; 4], a: &Matrix, b: &Matrix, d: &Matrix) -> sys::cublasStatus_t {
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        // SAFETY: the addresses are those of views that hold the matrices, of f32, on the stream's device; the scalars are read
        // before the call returns, as the pointer mode of a new handle is the host's.
        unsafe {
            sys::cublasSgemmStridedBatched(
                self.handle,
                b.op,
                a.op,
                n,
                m,
                k,
                &alpha,
                b.address as *const f32,
                b.ld,
                b.batch,
                a.address as *const f32,
                a.ld,
                a.batch,
                &beta,
                d.address as *mut f32,
                d.ld,
                d.batch,
                l,
            )
        }
    }

    fn half(
        &self,
        [m, n, k, l]: [i32; 4],
        a: &Matrix,
        b: &Matrix,
        d: &Matrix,
        out: sys::cudaDataType,
    ) -> sys::cublasStatus_t {
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        let f16 = sys::cudaDataType::CUDA_R_16F;
        // SAFETY: the addresses are those of views that hold the matrices, A and B of f16, D of the type `out`, on the stream's
        // device; the scalars are of the compute type, f32, and are read before the call returns.
        unsafe {
            sys::cublasGemmStridedBatchedEx(
                self.handle,
                b.op,
                a.op,
                n,
                m,
                k,
                (&raw const alpha).cast(),
                b.address as *const core::ffi::c_void,
                f16,
                b.ld,
                b.batch,
                a.address as *const core::ffi::c_void,
                f16,
                a.ld,
                a.batch,
                (&raw const beta).cast(),
                d.address as *mut core::ffi::c_void,
                out,
                d.ld,
                d.batch,
                l,
                sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once. A failure leaves nothing to do.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

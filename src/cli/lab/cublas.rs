//! cuBLAS as a baseline, through cudarc, loaded when it is first asked for.

use std::sync::Arc;

use cutemplate::dtype::DType;
use cutemplate::launch::cudarc::cublas::{result, sys};
use cutemplate::launch::cudarc::driver::CudaStream;
use cutemplate::launch::has_library;
use cutemplate::view::ViewRef;

use super::BenchError;
use super::matrix::{Product, Stored};

/// A handle on a stream, in cuBLAS's default math mode: f32 is not rounded to tf32 (cuBLAS Library, `cublasMath_t`).
pub(super) struct Cublas {
    handle: sys::cublasHandle_t,
    // The stream outlives the handle.
    _stream: Arc<CudaStream>,
}

impl Cublas {
    pub(super) fn new(stream: &Arc<CudaStream>) -> Result<Self, BenchError> {
        if !has_library(if cfg!(windows) { &["cublas", "cublas64_13"] } else { &["cublas"] }) {
            return Err(BenchError::Cublas("libcublas is not there; put its folder into LD_LIBRARY_PATH".into()));
        }
        let failed = |e: result::CublasError| BenchError::Cublas(e.to_string());
        let handle = result::create_handle().map_err(failed)?;
        let cublas = Self { handle, _stream: stream.clone() };
        // SAFETY: handle and stream are alive, and the stream outlives the handle.
        unsafe { result::set_stream(handle, stream.cu_stream().cast()) }.map_err(failed)?;
        Ok(cublas)
    }

    /// D = A @ B for views `(M,K)`, `(K,N)` and `(M,N)` of f32, with an optional last mode L.
    pub(super) fn product(&self, a: &ViewRef, b: &ViewRef, d: &ViewRef) -> Result<(), BenchError> {
        if let Some(other) = [a, b, d].into_iter().find(|view| view.dtype != DType::F32) {
            return Err(BenchError::Cublas(format!("found {}, required f32", other.dtype)));
        }
        let int = |e: i64| i32::try_from(e).ok();
        let ints = |product: &Product| {
            let [m, n, k, l] = product.extents.map(int);
            let [x, y, d] = [&product.x, &product.y, &product.d].map(|matrix| int(matrix.ld));
            Some(([m?, n?, k?, l?], [x?, y?, d?]))
        };
        let product = Product::of(a, b, d);
        let Some((product, ([m, n, k, l], lds))) = product.and_then(|p| Some((p, ints(&p)?))) else {
            return Err(BenchError::Cublas("the operands are not matrices that cuBLAS takes".into()));
        };
        let op = |matrix: &Stored| match matrix.turned {
            true => sys::cublasOperation_t::CUBLAS_OP_T,
            false => sys::cublasOperation_t::CUBLAS_OP_N,
        };
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        let Product { x, y, d, .. } = product;
        // SAFETY: the addresses are those of views that hold f32 matrices on the stream's device. The scalars are read
        // before the call returns, because a new handle's pointer mode is the host's.
        let status = unsafe {
            sys::cublasSgemmStridedBatched(
                self.handle,
                op(&x),
                op(&y),
                m,
                n,
                k,
                &alpha,
                x.address as *const f32,
                lds[0],
                x.batch,
                y.address as *const f32,
                lds[1],
                y.batch,
                &beta,
                d.address as *mut f32,
                lds[2],
                d.batch,
                l,
            )
        };
        status.result().map_err(|e| BenchError::Cublas(e.to_string()))
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once. A failure leaves nothing to do.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

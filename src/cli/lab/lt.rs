//! cuBLASLt as a baseline, through cudarc, loaded when it is first asked for.

use core::ffi::c_void;
use std::sync::Arc;

use cutemplate::dtype::DType;
use cutemplate::launch::cudarc::cublaslt::{result, sys};
use cutemplate::launch::cudarc::driver::{CudaSlice, CudaStream, DevicePtr as _};
use cutemplate::launch::{DriverError, has_library};
use cutemplate::plan::{self, Arithmetic, BlockScales};
use cutemplate::view::{ViewLayout, ViewRef};

use super::BenchError;
use super::epilogue::{Activation, Epilogue};
use super::matrix::{Product, Stored};

/// The workspace of an algorithm, in bytes.
const WORKSPACE: usize = 64 << 20;

/// Algorithms that the heuristics are asked for.
const ASKED: usize = 64;

/// An algorithm that cuBLASLt's heuristics propose.
pub(super) type Algorithm = sys::cublasLtMatmulHeuristicResult_t;

fn failed(error: result::CublasError) -> BenchError {
    BenchError::Cublas(format!("cublasLt: {error}"))
}

/// How products are computed: the type of sums, whether those of 8-bit floats keep no more bits than tensor cores do, and the blocks of A
/// and B that have scales.
pub(super) type Compute = (sys::cublasComputeType_t, bool, Option<BlockScales>);

/// In f32, which is not rounded to tf32.
const F32: Compute = (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F, false, None);

/// cublasLtMatmulMatrixScale_t: an f32 for 128 elements along K, and for 128 x 128.
const SCALES: [i32; 2] = [4, 5];

/// A handle, with a workspace on the device of a stream.
pub(super) struct CublasLt {
    handle: sys::cublasLtHandle_t,
    /// The arithmetic of the timed products.
    pub(super) compute: Compute,
    workspace: u64,
    // The memory at that address.
    _workspace: CudaSlice<u8>,
    stream: Arc<CudaStream>,
}

impl CublasLt {
    /// Which is compared with such products.
    pub(super) fn new(stream: &Arc<CudaStream>, product: &plan::Product) -> Result<Self, BenchError> {
        if !has_library(if cfg!(windows) { &["cublasLt", "cublasLt64_13"] } else { &["cublasLt"] }) {
            let help = "libcublasLt is not there; put its folder, which is that of libcublas, into LD_LIBRARY_PATH";
            return Err(BenchError::Cublas(help.into()));
        }
        let memory: CudaSlice<u8> = stream.alloc_zeros(WORKSPACE).map_err(DriverError::of("cuMemAllocAsync"))?;
        let workspace = memory.device_ptr(stream).0;
        let handle = result::create_handle().map_err(failed)?;
        let compute = match product.arithmetic() {
            Arithmetic::Tf32 => (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32, false, None),
            Arithmetic::Fp8 { promoted } => (F32.0, promoted == 0, product.block_scales()),
            Arithmetic::Int8 => (sys::cublasComputeType_t::CUBLAS_COMPUTE_32I, false, None),
            Arithmetic::F32 | Arithmetic::TensorCores => F32,
        };
        Ok(Self { handle, compute, workspace, _workspace: memory, stream: stream.clone() })
    }

    /// The version of the library: `13.0.0`.
    pub(super) fn version() -> String {
        // SAFETY: the function takes nothing; `new` has found the library, without which it panics.
        let version = unsafe { sys::cublasLtGetVersion() };
        // CUBLAS_VERSION: ten thousands, hundreds and ones.
        format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
    }

    /// D = A @ B by the algorithm that the heuristics propose first; f32 is not rounded to tf32.
    pub(super) fn product(&self, a: &ViewRef, b: &ViewRef, d: &ViewRef) -> Result<(), BenchError> {
        let matmul = Matmul::new(&[*a, *b, *d], &Epilogue::PLAIN, &[], F32)?;
        let all = self.algorithms(&matmul, &[&matmul])?;
        let mut last = None;
        for algorithm in &all {
            match self.launch(&matmul, algorithm) {
                Ok(()) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            BenchError::Cublas("cublasLt: its heuristics propose nothing for these operands".into())
        }))
    }

    /// The heuristics' proposals for a product, the best first by their own judgement, on the operands of all `sets`.
    pub(super) fn algorithms(&self, matmul: &Matmul, sets: &[&Matmul]) -> Result<Vec<Algorithm>, BenchError> {
        use sys::cublasLtMatmulPreferenceAttributes_t as Attribute;
        let preference = Preference(result::create_matmul_pref().map_err(failed)?);
        let set = |attribute, value: *const c_void, bytes| {
            // SAFETY: the preference is alive, and the attribute has this many bytes.
            unsafe { result::set_matmul_pref_attribute(preference.0, attribute, value, bytes) }.map_err(failed)
        };
        let bytes = WORKSPACE as u64;
        set(Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (&raw const bytes).cast(), size_of::<u64>())?;
        let alignments = [
            Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        ];
        for (which, attribute) in alignments.into_iter().enumerate() {
            let alignment = alignment(sets.iter().map(|set| set.addresses[which]));
            set(attribute, (&raw const alignment).cast(), size_of::<u32>())?;
        }
        let mut found: Vec<Algorithm> = Vec::with_capacity(ASKED);
        let mut count = 0;
        let [a, b, c, d] = matmul.layouts.each_ref().map(|layout| layout.0);
        // SAFETY: handle, descriptors and preference are alive; there is room for as many results as are asked for.
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                matmul.desc.0,
                a,
                b,
                c,
                d,
                preference.0,
                ASKED as i32,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        match status {
            sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS => {}
            sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => return Ok(Vec::new()),
            status => return Err(failed(result::CublasError(status))),
        }
        // SAFETY: the call has written the first `count`, which is no more than was asked for.
        unsafe { found.set_len(usize::try_from(count).unwrap_or(0).min(ASKED)) };
        found.retain(|one| one.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS && one.workspaceSize <= WORKSPACE);
        Ok(found)
    }

    /// Puts a product into the stream.
    pub(super) fn launch(&self, matmul: &Matmul, algorithm: &Algorithm) -> Result<(), BenchError> {
        let [a, b, c, d] = matmul.layouts.each_ref().map(|layout| layout.0);
        let [at_a, at_b, at_c, at_d] = matmul.addresses;
        // SAFETY: handle and descriptors are alive. The addresses are those of views that hold matrices of these
        // layouts, on the stream's device. Scalars are f32, the scale type, on the host, the pointer mode of a new
        // descriptor. The workspace is at least as large as any algorithm may want.
        unsafe {
            result::matmul(
                self.handle,
                matmul.desc.0,
                (&raw const matmul.alpha).cast(),
                (&raw const matmul.beta).cast(),
                at_a as *const c_void,
                a,
                at_b as *const c_void,
                b,
                at_c as *const c_void,
                c,
                at_d as *mut c_void,
                d,
                &algorithm.algo,
                self.workspace as *mut c_void,
                WORKSPACE,
                self.stream.cu_stream().cast(),
            )
        }
        .map_err(failed)
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once. A failure leaves nothing to do.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// The largest power of 2, up to 256, that all of these addresses are multiples of.
fn alignment(addresses: impl Iterator<Item = u64>) -> u32 {
    1 << addresses.fold(256_u64, |all, address| all | address).trailing_zeros()
}

struct Preference(sys::cublasLtMatmulPreference_t);

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}

struct Desc(sys::cublasLtMatmulDesc_t);

impl Desc {
    fn set<T>(&self, attribute: sys::cublasLtMatmulDescAttributes_t, value: &T) -> Result<(), BenchError> {
        // SAFETY: the descriptor is alive; the library checks the size, and copies the value.
        unsafe { result::set_matmul_desc_attribute(self.0, attribute, (&raw const *value).cast(), size_of::<T>()) }
            .map_err(failed)
    }
}

impl Drop for Desc {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        let _ = unsafe { result::destroy_matmul_desc(self.0) };
    }
}

struct Layout(sys::cublasLtMatrixLayout_t);

impl Layout {
    fn new(dtype: DType, matrix: &Stored, batches: i64) -> Result<Self, BenchError> {
        use sys::cublasLtMatrixLayoutAttribute_t as Attribute;
        let [rows, cols] = [matrix.rows, matrix.cols].map(i64::unsigned_abs);
        let layout = Self(result::create_matrix_layout(data_type(dtype)?, rows, cols, matrix.ld).map_err(failed)?);
        if batches != 1 {
            let count = i32::try_from(batches).map_err(|_| BenchError::Cublas(format!("found {batches} batches")))?;
            layout.set(Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count)?;
            layout.set(Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch)?;
        }
        Ok(layout)
    }

    fn set<T>(&self, attribute: sys::cublasLtMatrixLayoutAttribute_t, value: &T) -> Result<(), BenchError> {
        // SAFETY: as for `Desc::set`.
        unsafe { result::set_matrix_layout_attribute(self.0, attribute, (&raw const *value).cast(), size_of::<T>()) }
            .map_err(failed)
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        let _ = unsafe { result::destroy_matrix_layout(self.0) };
    }
}

fn data_type(dtype: DType) -> Result<sys::cudaDataType, BenchError> {
    match dtype {
        DType::F16 => Ok(sys::cudaDataType::CUDA_R_16F),
        DType::Bf16 => Ok(sys::cudaDataType::CUDA_R_16BF),
        DType::F32 => Ok(sys::cudaDataType::CUDA_R_32F),
        DType::E4m3 => Ok(sys::cudaDataType::CUDA_R_8F_E4M3),
        DType::E5m2 => Ok(sys::cudaDataType::CUDA_R_8F_E5M2),
        DType::I8 => Ok(sys::cudaDataType::CUDA_R_8I),
        DType::I32 => Ok(sys::cudaDataType::CUDA_R_32I),
        other => Err(BenchError::Cublas(format!("found {other}, required f16, bf16, f32, e4m3, e5m2, i8 or i32"))),
    }
}

/// A product of one set of operands.
pub(super) struct Matmul {
    desc: Desc,
    /// Column-major layouts of A, B, C and D.
    layouts: [Layout; 4],
    addresses: [u64; 4],
    /// Bits of an f32, or of an i32 beside sums of integers.
    alpha: u32,
    beta: u32,
}

impl Matmul {
    /// The call for a plan's operands, in the order A, B, .., D.
    pub(super) fn new(
        operands: &[ViewRef],
        epilogue: &Epilogue,
        scalars: &[f64],
        (compute, is_fast, blocks): Compute,
    ) -> Result<Self, BenchError> {
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        let wrong = || BenchError::Cublas("the operands are not matrices that cuBLAS takes".into());
        let [a, b, others @ .., d] = operands else { return Err(wrong()) };
        let product = Product::of(a, b, d).ok_or_else(wrong)?;
        let (x, y) = if product.transposed { (b, a) } else { (a, b) };
        let c = match epilogue.c {
            Some((index, _)) => product.alike(operands.get(index).ok_or_else(wrong)?).ok_or_else(wrong)?,
            None => product.d,
        };
        let [.., batches] = product.extents;
        // Sums of integers are given as they are, or scaled by an f32 into as many elements of 8 bits.
        let of_integers = compute == sys::cublasComputeType_t::CUBLAS_COMPUTE_32I;
        let are_integers = of_integers && d.dtype == DType::I32;
        let of_d = if of_integers && !are_integers { DType::I8 } else { d.dtype };
        let of_scalars = if are_integers { sys::cudaDataType::CUDA_R_32I } else { sys::cudaDataType::CUDA_R_32F };
        let desc = Desc(result::create_matmul_desc(compute, of_scalars).map_err(failed)?);
        // cublasOperation_t: 0 as it is, 1 turned.
        desc.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &i32::from(product.x.turned))?;
        desc.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &i32::from(product.y.turned))?;
        desc.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &(word(epilogue) as u32))?;
        if is_fast {
            desc.set(Attribute::CUBLASLT_MATMUL_DESC_FAST_ACCUM, &1_i8)?;
        }
        if let (Some(rows), [.., of_a, of_b]) = (blocks, others) {
            let (modes, pointers) = (
                [Attribute::CUBLASLT_MATMUL_DESC_A_SCALE_MODE, Attribute::CUBLASLT_MATMUL_DESC_B_SCALE_MODE],
                [Attribute::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, Attribute::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER],
            );
            for (of, (scales, rows)) in [of_a, of_b].into_iter().zip(rows).enumerate() {
                let required = scales_layout(of, rows, scales.layout.shape()).ok_or_else(wrong)?;
                if scales.layout != required {
                    let found = format!("cublasLt takes scales as {required}, found {}", scales.layout);
                    return Err(BenchError::Cublas(found));
                }
                let its = if product.transposed { 1 - of } else { of };
                desc.set(modes[its], &SCALES[usize::from(rows > 1)])?;
                desc.set(pointers[its], &scales.ptr)?;
            }
        }
        if let Some(bias) = epilogue.bias {
            let bias = operands.get(bias).ok_or_else(wrong)?;
            desc.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.ptr)?;
            let stride = bias.layout.stride().get(2).copied().unwrap_or(0);
            if batches != 1 && stride != 0 {
                desc.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &stride)?;
            }
        }
        let layouts = [
            Layout::new(x.dtype, &product.x, batches)?,
            Layout::new(y.dtype, &product.y, batches)?,
            // No C is a float of 8 bits (cuBLAS, "cublasLtMatmul", supported types).
            Layout::new(if of_d == DType::E4m3 { DType::Bf16 } else { of_d }, &c, batches)?,
            Layout::new(of_d, &product.d, batches)?,
        ];
        let addresses = [&product.x, &product.y, &c, &product.d].map(|matrix| matrix.address);
        let beta = epilogue.c.map_or(0.0, |(_, beta)| beta.value(scalars));
        let bits = |x: f32| if are_integers { (x as i32).cast_unsigned() } else { x.to_bits() };
        Ok(Self { desc, layouts, addresses, alpha: bits(epilogue.alpha.value(scalars)), beta: bits(beta) })
    }
}

/// How cuBLASLt takes the scales of A (0) or B (1) for blocks of so many rows or columns. Those of 128 elements lie side by side along M or
/// N, those of squares along K, in rows of whole 16 bytes.
pub(super) fn scales_layout(of: usize, rows: i64, shape: &[i64]) -> Option<ViewLayout> {
    let [along, across] = if (rows == 1) == (of == 0) { [0, 1] } else { [1, 0] };
    let row = shape.get(along)?;
    let mut stride = [1; 2];
    stride[across] = if rows == 1 { *row } else { (row + 3) / 4 * 4 };
    ViewLayout::strided(shape, &stride)
}

/// cuBLASLt's word for it.
fn word(epilogue: &Epilogue) -> sys::cublasLtEpilogue_t {
    use sys::cublasLtEpilogue_t as Word;
    match (epilogue.activation, epilogue.bias.is_some()) {
        (Activation::None, false) => Word::CUBLASLT_EPILOGUE_DEFAULT,
        (Activation::None, true) => Word::CUBLASLT_EPILOGUE_BIAS,
        (Activation::Relu, false) => Word::CUBLASLT_EPILOGUE_RELU,
        (Activation::Relu, true) => Word::CUBLASLT_EPILOGUE_RELU_BIAS,
        (Activation::GeluTanh, false) => Word::CUBLASLT_EPILOGUE_GELU,
        (Activation::GeluTanh, true) => Word::CUBLASLT_EPILOGUE_GELU_BIAS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alignment_is_that_of_all_addresses() {
        let of = |addresses: &[u64]| alignment(addresses.iter().copied());
        assert_eq!([of(&[4096, 512]), of(&[4096, 16]), of(&[2, 4]), of(&[])], [256, 16, 2, 256]);
    }
}

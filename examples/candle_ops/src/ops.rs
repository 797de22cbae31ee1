//! The operations.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, WithDType, bail};
use cutemplate::view::{View, ViewLayout, ViewMut};
use half::f16;
#[cfg(feature = "cuda")]
use {
    candle_core::CudaStorage, candle_core::backend::BackendStorage, candle_core::cuda_backend::CudaDType,
    cutemplate::launch::cudarc::driver::CudaSlice,
};

use crate::generated::{linear_relu, mul_relu, mul_relu_strided, row_sums};
use crate::kernel::Loaded;
use crate::storage::{has_rows, layout, matrix, row_major};

static MUL_RELU: Loaded<mul_relu::Recipe> = Loaded::new(&mul_relu::ARTIFACT);
static MUL_RELU_STRIDED: Loaded<mul_relu_strided::Recipe> = Loaded::new(&mul_relu_strided::ARTIFACT);
static ROW_SUMS: Loaded<row_sums::Recipe> = Loaded::new(&row_sums::ARTIFACT);
static LINEAR_RELU: Loaded<linear_relu::Recipe> = Loaded::new(&linear_relu::ARTIFACT);

/// The elements of a storage from the tensor's first one on.
pub(crate) fn on_cpu<'a, T: WithDType>(storage: &'a CpuStorage, of: &Layout) -> Result<&'a [T]> {
    Ok(storage.as_slice::<T>()?.get(of.start_offset()..).unwrap_or_default())
}

#[cfg(feature = "cuda")]
pub(crate) fn on_gpu<'a, T: CudaDType>(
    storage: &'a CudaStorage,
    of: &Layout,
) -> Result<cutemplate::launch::cudarc::driver::CudaView<'a, T>> {
    let slice: &CudaSlice<T> = storage.as_cuda_slice()?;
    match slice.try_slice(of.start_offset()..) {
        Some(view) => Ok(view),
        None => bail!("found an offset of {} in {} elements", of.start_offset(), slice.len()),
    }
}

/// relu(a * b) of f32 tensors of one shape, whatever their strides: transposed, sliced, broadcast.
#[derive(Clone, Copy, Debug)]
pub struct MulRelu;

impl MulRelu {
    /// a, b and y as matrices.
    fn views(a: &Layout, b: &Layout) -> Result<[ViewLayout; 3]> {
        if a.dims() != b.dims() {
            bail!("found {:?} and {:?}, required one shape; broadcast_as gives one", a.dims(), b.dims());
        }
        let [a, b] = [matrix(a)?, matrix(b)?];
        Ok([a, b, row_major(a.shape())?])
    }
}

impl CustomOp2 for MulRelu {
    fn name(&self) -> &'static str {
        "mul_relu"
    }

    fn cpu_fwd(&self, s1: &CpuStorage, l1: &Layout, s2: &CpuStorage, l2: &Layout) -> Result<(CpuStorage, Shape)> {
        let [a, b, y] = Self::views(l1, l2)?;
        let mut out = vec![0_f32; l1.shape().elem_count()];
        let views = (
            View::host_strided(on_cpu::<f32>(s1, l1)?, a),
            View::host_strided(on_cpu::<f32>(s2, l2)?, b),
            ViewMut::host_strided(&mut out, y),
        );
        match has_rows(&a) && has_rows(&b) {
            true => MUL_RELU.run(mul_relu::args(views.0, views.1, views.2))?,
            false => MUL_RELU_STRIDED.run(mul_relu_strided::args(views.0, views.1, views.2))?,
        }
        Ok((CpuStorage::F32(out), l1.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, s1: &CudaStorage, l1: &Layout, s2: &CudaStorage, l2: &Layout) -> Result<(CudaStorage, Shape)> {
        let [a, b, y] = Self::views(l1, l2)?;
        let (device, stream) = (s1.device(), s1.device().cuda_stream());
        let mut out = device.alloc_zeros::<f32>(l1.shape().elem_count())?;
        let (s1, s2) = (on_gpu::<f32>(s1, l1)?, on_gpu::<f32>(s2, l2)?);
        let views = (View::device_strided(&s1, a), View::device_strided(&s2, b), ViewMut::device_strided(&mut out, y));
        match has_rows(&a) && has_rows(&b) {
            true => MUL_RELU.launch(&stream, mul_relu::args(views.0, views.1, views.2))?,
            false => MUL_RELU_STRIDED.launch(&stream, mul_relu_strided::args(views.0, views.1, views.2))?,
        }
        Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), l1.shape().clone()))
    }

    fn bwd(&self, a: &Tensor, b: &Tensor, y: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let passed = (grad * y.gt(0_f32)?.to_dtype(grad.dtype())?)?;
        Ok((Some((&passed * b)?), Some((&passed * a)?)))
    }
}

/// The sums of an f32 tensor along its last mode, whatever its strides.
#[derive(Clone, Copy, Debug)]
pub struct RowSums;

impl RowSums {
    /// a as a matrix, y as a vector, and the shape of y.
    fn views(a: &Layout) -> Result<(ViewLayout, ViewLayout, Shape)> {
        let matrix = matrix(a)?;
        let y = row_major(&matrix.shape()[..1])?;
        let shape = a.dims().split_last().map_or(&[][..], |(_, outer)| outer);
        Ok((matrix, y, Shape::from(shape)))
    }
}

impl CustomOp1 for RowSums {
    fn name(&self) -> &'static str {
        "row_sums"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, of: &Layout) -> Result<(CpuStorage, Shape)> {
        let (a, y, shape) = Self::views(of)?;
        let mut out = vec![0_f32; shape.elem_count()];
        let a = View::host_strided(on_cpu::<f32>(storage, of)?, a);
        ROW_SUMS.run(row_sums::args(a, ViewMut::host_strided(&mut out, y)))?;
        Ok((CpuStorage::F32(out), shape))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, storage: &CudaStorage, of: &Layout) -> Result<(CudaStorage, Shape)> {
        let (a, y, shape) = Self::views(of)?;
        let device = storage.device();
        let mut out = device.alloc_zeros::<f32>(shape.elem_count())?;
        let storage = on_gpu::<f32>(storage, of)?;
        let args = row_sums::args(View::device_strided(&storage, a), ViewMut::device_strided(&mut out, y));
        ROW_SUMS.launch(&device.cuda_stream(), args)?;
        Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), shape))
    }
}

/// relu(x @ w^T + bias) in one kernel: x (.., K), w (N, K) and bias (N) of f16, as a linear layer keeps them; rows of x
/// and w are contiguous.
#[derive(Clone, Copy, Debug)]
pub struct LinearRelu;

impl LinearRelu {
    /// x, w^T, bias and y as matrices, and the shape of y.
    fn views(x: &Layout, w: &Layout, bias: &Layout) -> Result<([ViewLayout; 4], Shape)> {
        let (rows, &[n, k], &[along]) = (matrix(x)?, w.dims(), bias.dims()) else {
            bail!("found w {:?} and bias {:?}, required a matrix and a vector", w.dims(), bias.dims());
        };
        let m = usize::try_from(rows.shape()[0]).unwrap_or_default();
        if x.dims().last() != Some(&k) || along != n {
            bail!(
                "found x {:?}, w {:?} and bias {:?}, required (.., K), (N, K) and (N)",
                x.dims(),
                w.dims(),
                bias.dims()
            );
        }
        let transposed = layout([k, n], [w.stride()[1], w.stride()[0]])?;
        let shape: Vec<usize> = x.dims().iter().rev().skip(1).rev().copied().chain([n]).collect();
        let views = [rows, transposed, layout([m, n], [0, bias.stride()[0]])?, layout([m, n], [n, 1])?];
        Ok((views, Shape::from(shape)))
    }
}

impl CustomOp3 for LinearRelu {
    fn name(&self) -> &'static str {
        "linear_relu"
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
        s3: &CpuStorage,
        l3: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ([x, w, bias, y], shape) = Self::views(l1, l2, l3)?;
        let mut out = vec![f16::ZERO; shape.elem_count()];
        let x = View::host_strided(on_cpu::<f16>(s1, l1)?, x);
        let w = View::host_strided(on_cpu::<f16>(s2, l2)?, w);
        let bias = View::host_strided(on_cpu::<f16>(s3, l3)?, bias);
        LINEAR_RELU.run(linear_relu::args(x, w, bias, ViewMut::host_strided(&mut out, y)))?;
        Ok((CpuStorage::F16(out), shape))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        s1: &CudaStorage,
        l1: &Layout,
        s2: &CudaStorage,
        l2: &Layout,
        s3: &CudaStorage,
        l3: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let ([x, w, bias, y], shape) = Self::views(l1, l2, l3)?;
        let device = s1.device();
        let mut out = device.alloc_zeros::<f16>(shape.elem_count())?;
        let (s1, s2, s3) = (on_gpu::<f16>(s1, l1)?, on_gpu::<f16>(s2, l2)?, on_gpu::<f16>(s3, l3)?);
        let [x, w, bias] = [(&s1, x), (&s2, w), (&s3, bias)].map(|(slice, layout)| View::device_strided(slice, layout));
        let args = linear_relu::args(x, w, bias, ViewMut::device_strided(&mut out, y));
        LINEAR_RELU.launch(&device.cuda_stream(), args)?;
        Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), shape))
    }
}

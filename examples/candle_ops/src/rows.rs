//! Operations along the last mode: softmax and the root-mean-square norm, of f32 tensors whose rows lie anywhere.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, bail};
use cutemplate::view::{View, ViewLayout, ViewMut};
#[cfg(feature = "cuda")]
use {crate::ops::on_gpu, candle_core::CudaStorage, candle_core::backend::BackendStorage};

use crate::generated::{rms_norm, softmax};
use crate::kernel::Loaded;
use crate::ops::on_cpu;
use crate::storage::{layout, matrix, row_major};

static SOFTMAX: Loaded<softmax::Recipe> = Loaded::new(&softmax::ARTIFACT);
static RMS_NORM: Loaded<rms_norm::Recipe> = Loaded::new(&rms_norm::ARTIFACT);

/// `exp(x - max(x)) / sum(exp(x - max(x)))` along the last mode, as `candle_nn::ops::softmax_last_dim` has it.
#[derive(Clone, Copy, Debug)]
pub struct Softmax;

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, of: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, y) = (matrix(of)?, row_major(matrix(of)?.shape())?);
        let mut out = vec![0_f32; of.shape().elem_count()];
        let x = View::host_strided(on_cpu::<f32>(storage, of)?, x);
        SOFTMAX.run(softmax::args(x, ViewMut::host_strided(&mut out, y)))?;
        Ok((CpuStorage::F32(out), of.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, storage: &CudaStorage, of: &Layout) -> Result<(CudaStorage, Shape)> {
        let (x, y) = (matrix(of)?, row_major(matrix(of)?.shape())?);
        let device = storage.device();
        let mut out = device.alloc_zeros::<f32>(of.shape().elem_count())?;
        let storage = on_gpu::<f32>(storage, of)?;
        let args = softmax::args(View::device_strided(&storage, x), ViewMut::device_strided(&mut out, y));
        SOFTMAX.launch(&device.cuda_stream(), args)?;
        Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), of.shape().clone()))
    }
}

/// `x * rsqrt(mean(x * x) + eps) * weight` along the last mode, as `candle_nn::ops::rms_norm` has it.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm {
    pub eps: f64,
}

impl RmsNorm {
    /// x, the weight as a row for all rows, and y.
    fn views(x: &Layout, weight: &Layout) -> Result<[ViewLayout; 3]> {
        let (rows, &[n]) = (matrix(x)?, weight.dims()) else {
            bail!("found a weight {:?}, required a vector", weight.dims());
        };
        if x.dims().last() != Some(&n) {
            bail!("found x {:?} and a weight {:?}, required (.., N) and (N)", x.dims(), weight.dims());
        }
        let m = usize::try_from(rows.shape()[0]).unwrap_or_default();
        Ok([rows, layout([m, n], [0, weight.stride()[0]])?, row_major(rows.shape())?])
    }
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn cpu_fwd(&self, s1: &CpuStorage, l1: &Layout, s2: &CpuStorage, l2: &Layout) -> Result<(CpuStorage, Shape)> {
        let [x, weight, y] = Self::views(l1, l2)?;
        let mut out = vec![0_f32; l1.shape().elem_count()];
        let x = View::host_strided(on_cpu::<f32>(s1, l1)?, x);
        let weight = View::host_strided(on_cpu::<f32>(s2, l2)?, weight);
        RMS_NORM.run(rms_norm::args(x, weight, ViewMut::host_strided(&mut out, y), self.eps))?;
        Ok((CpuStorage::F32(out), l1.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, s1: &CudaStorage, l1: &Layout, s2: &CudaStorage, l2: &Layout) -> Result<(CudaStorage, Shape)> {
        let [x, weight, y] = Self::views(l1, l2)?;
        let device = s1.device();
        let mut out = device.alloc_zeros::<f32>(l1.shape().elem_count())?;
        let (s1, s2) = (on_gpu::<f32>(s1, l1)?, on_gpu::<f32>(s2, l2)?);
        let (x, weight) = (View::device_strided(&s1, x), View::device_strided(&s2, weight));
        RMS_NORM
            .launch(&device.cuda_stream(), rms_norm::args(x, weight, ViewMut::device_strided(&mut out, y), self.eps))?;
        Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), l1.shape().clone()))
    }
}

//! Which kernels nvcc compiles together.

use crate::ptx_set::PtxSet;
use crate::{apply, rows, sgemm, sum, variations};

pub(crate) static KERNELS: PtxSet = PtxSet::new(|| {
    [apply::of_nvcc(), sgemm::of_nvcc(), sum::of_nvcc(), rows::of_nvcc(), variations::of_nvcc()].concat()
});

//! Which kernels nvcc compiles together.

use crate::ptx_set::PtxSet;
use crate::{append, apply, rows, sgemm, sum, top_k, turned, variations};

pub(crate) static KERNELS: PtxSet = PtxSet::new(|| {
    let tensors =
        [append::of_nvcc(), apply::of_nvcc(), turned::of_nvcc(), sum::of_nvcc(), rows::of_nvcc(), top_k::of_nvcc()];
    [tensors.concat(), sgemm::of_nvcc(), variations::of_nvcc()].concat()
});

//! Which texts are compiled together, once for each mode: those that need nothing but what CUDA C++ itself has, and those of CuTe; and
//! which kernels nvcc compiles.

use crate::host_common::Texts;
use crate::ptx_set::PtxSet;
use crate::{apply, asynchronous, bounds, by_hand, entries, races, sgemm, stuck, sum, variations};

pub(crate) static CUDA: Texts =
    Texts::new(|| [bounds::texts(), entries::texts(), races::texts(), stuck::texts()].concat());

pub(crate) static CUTE: Texts = Texts::new(|| [asynchronous::texts(), by_hand::texts()].concat());

pub(crate) static KERNELS: PtxSet =
    PtxSet::new(|| [apply::of_nvcc(), sgemm::of_nvcc(), sum::of_nvcc(), variations::of_nvcc()].concat());

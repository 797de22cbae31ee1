//! Which texts are compiled together, once for each mode: those that need nothing but what CUDA C++ itself has, and those of CuTe.

use crate::host_common::Texts;
use crate::{asynchronous, bounds, by_hand, entries, races, stuck};

pub(crate) static CUDA: Texts =
    Texts::new(|| [bounds::texts(), entries::texts(), races::texts(), stuck::texts()].concat());

pub(crate) static CUTE: Texts = Texts::new(|| [asynchronous::texts(), by_hand::texts()].concat());

//! The `__global__` functions of a kernel.

use core::fmt;

use crate::arch::Arch;
use crate::model::{Footprint, Occupancy};
use crate::units::Bytes;

/// One `extern "C" __global__` function of a kernel, with the block that it is launched with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name: the plan's name for one entry, with a suffix for the others, `gemm_reduce` of `gemm`. It calls the
    /// function of the header that [`Entry::function`] names.
    pub name: String,
    /// Threads of a block.
    pub threads: u32,
    /// Static shared memory of a block.
    pub smem: Bytes,
    /// Dynamic shared memory of a block, which each launch asks for.
    pub dynamic_smem: Bytes,
    /// Registers of a thread, as estimated before a compiler sees the kernel, where there is an estimate.
    pub registers: Option<u64>,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Blocks that a multiprocessor should have room for: the second argument of `__launch_bounds__`.
    pub min_blocks: Option<u32>,
    /// Whether its grid may begin while the kernel before it in the stream ends (CUDA C++ Programming Guide, "Programmatic Dependent
    /// Launch"): its text waits for that kernel before it touches memory that others write or read.
    #[serde(default, skip_serializing_if = "is_not")]
    pub overlaps: bool,
    /// The threads of a block along x, y and z, where they do not all lie along x.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<[u32; 3]>,
    /// The offset and the size of each parameter of the function, in bytes of the parameter struct. Empty where it takes the whole
    /// struct as its only parameter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<[usize; 2]>,
}

/// An unset flag is not written: the text format is older than the flag.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_not(flag: &bool) -> bool {
    !flag
}

impl Entry {
    /// An entry without dynamic shared memory.
    pub fn new(name: &str, threads: u32, smem: Bytes) -> Self {
        Self {
            name: name.to_owned(),
            threads,
            smem,
            dynamic_smem: Bytes(0),
            registers: None,
            cluster: 1,
            min_blocks: None,
            overlaps: false,
            shape: None,
            params: Vec::new(),
        }
    }

    /// The same with an estimate of its registers.
    pub fn with_registers(self, registers: u64) -> Self {
        Self { registers: Some(registers), ..self }
    }

    /// The blocks that a multiprocessor of this architecture holds at once, with the estimated registers.
    pub fn occupancy(&self, arch: Arch) -> Option<Occupancy> {
        self.registers.map(|registers| self.occupancy_with(arch, registers))
    }

    /// The same with the registers that a compiler gave the kernel.
    pub fn occupancy_with(&self, arch: Arch, registers: u64) -> Occupancy {
        Footprint { threads: self.threads, registers, smem: self.shared_memory() }.occupancy(arch)
    }

    /// Shared memory of a block, static and dynamic.
    pub fn shared_memory(&self) -> Bytes {
        Bytes(self.smem.0.saturating_add(self.dynamic_smem.0))
    }

    /// Threads of a block along x, y and z.
    pub fn block(&self) -> [u32; 3] {
        self.shape.unwrap_or([self.threads, 1, 1])
    }

    #[cfg_attr(not(feature = "ptx"), allow(dead_code, reason = "the executor takes them"))]
    /// Bytes of the parameter struct that the function reads, of `all`: without the padding behind its last parameter where it takes
    /// several.
    pub(crate) fn param_bytes(&self, all: usize) -> usize {
        self.params.last().map_or(all, |[offset, size]| (offset + size).min(all))
    }

    /// The function in namespace `cutemplate::<kernel>` that it calls: its suffix, `reduce` for `gemm_reduce`; `kernel` for
    /// the entry that has the kernel's own name.
    pub fn function(&self, kernel: &str) -> &str {
        let suffix = self.name.strip_prefix(kernel).and_then(|rest| rest.strip_prefix('_'));
        suffix.unwrap_or("kernel")
    }

    /// What its declaration says beside the name: the launch bounds, and the cluster where there is one.
    pub(crate) fn attributes(&self) -> Vec<String> {
        let min_blocks = self.min_blocks.map(|blocks| format!(", {blocks}")).unwrap_or_default();
        let bounds = format!("__launch_bounds__({}{min_blocks})", self.threads);
        let cluster = (self.cluster > 1).then(|| format!("__cluster_dims__({}, 1, 1)", self.cluster));
        core::iter::once(bounds).chain(cluster).collect()
    }
}

impl fmt::Display for Entry {
    /// `256 a block, 49152 B of shared memory, 49152 B of it dynamic, room for 2 blocks on a multiprocessor`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} a block, {} of shared memory", self.threads, self.shared_memory())?;
        if self.dynamic_smem.0 > 0 {
            write!(f, ", {} of it dynamic", self.dynamic_smem)?;
        }
        if self.cluster > 1 {
            write!(f, ", clusters of {}", self.cluster)?;
        }
        match self.min_blocks {
            Some(1) => f.write_str(", room for 1 block on a multiprocessor"),
            Some(blocks) => write!(f, ", room for {blocks} blocks on a multiprocessor"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_calls_the_function_of_its_suffix() {
        let entry = |name| Entry::new(name, 32, Bytes(0));
        assert_eq!(entry("gemm").function("gemm"), "kernel");
        assert_eq!(entry("gemm_reduce").function("gemm"), "reduce");
        assert_eq!(entry("gemm_split_reduce").function("gemm_split"), "reduce");
    }
}

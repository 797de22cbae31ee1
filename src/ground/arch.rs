//! GPU architectures: the limits that plans are checked against, and what nvcc is told.
//!
//! Source of the numbers: CUDA C++ Programming Guide, "Compute Capabilities", tables "Feature Support per Compute
//! Capability" and "Technical Specifications per Compute Capability".

use core::fmt;
use core::str::FromStr;

use crate::diagnostic::debug_as_display;
use crate::settings::json_as_text;
use crate::units::Bytes;

/// A compilation target: a compute capability, with `a` where architecture-specific features are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// T4, RTX 20 series: for what needs neither `cp.async` nor a tensor core of 8.0.
    Sm75,
    /// A100.
    Sm80,
    /// RTX 30 series.
    Sm86,
    /// L4, L40, RTX 40 series.
    Sm89,
    /// H100, H200 without architecture-specific features.
    Sm90,
    /// H100, H200 with WGMMA and `setmaxnreg`; such code runs on compute capability 9.0 only.
    Sm90a,
    /// B200 without architecture-specific features.
    Sm100,
    /// RTX 50 series, RTX PRO Blackwell, without architecture-specific features.
    Sm120,
}

struct Row {
    arch: Arch,
    name: &'static str,
    capability: (u32, u32),
    smem_per_block: u64,
    smem_per_sm: u64,
    /// Shared memory that CUDA keeps for itself in each block, and the unit in which a block gets it.
    smem_given: (u64, u64),
    /// Threads, blocks.
    resident: (u32, u32),
    arch_specific: bool,
}

/// From compute capability 8.0 on.
const SINCE_80: (u64, u64) = (1024, 128);

const TABLE: &[Row] = &[
    Row {
        arch: Arch::Sm75,
        name: "sm_75",
        capability: (7, 5),
        smem_per_block: 64 << 10,
        smem_per_sm: 64 << 10,
        smem_given: (0, 256),
        resident: (1024, 16),
        arch_specific: false,
    },
    Row {
        arch: Arch::Sm80,
        name: "sm_80",
        capability: (8, 0),
        smem_per_block: 163 << 10,
        smem_per_sm: 164 << 10,
        smem_given: SINCE_80,
        resident: (2048, 32),
        arch_specific: false,
    },
    Row {
        arch: Arch::Sm86,
        name: "sm_86",
        capability: (8, 6),
        smem_per_block: 99 << 10,
        smem_per_sm: 100 << 10,
        smem_given: SINCE_80,
        resident: (1536, 16),
        arch_specific: false,
    },
    Row {
        arch: Arch::Sm89,
        name: "sm_89",
        capability: (8, 9),
        smem_per_block: 99 << 10,
        smem_per_sm: 100 << 10,
        smem_given: SINCE_80,
        resident: (1536, 24),
        arch_specific: false,
    },
    Row {
        arch: Arch::Sm90,
        name: "sm_90",
        capability: (9, 0),
        smem_per_block: 227 << 10,
        smem_per_sm: 228 << 10,
        smem_given: SINCE_80,
        resident: (2048, 32),
        arch_specific: false,
    },
    Row {
        arch: Arch::Sm90a,
        name: "sm_90a",
        capability: (9, 0),
        smem_per_block: 227 << 10,
        smem_per_sm: 228 << 10,
        smem_given: SINCE_80,
        resident: (2048, 32),
        arch_specific: true,
    },
    Row {
        arch: Arch::Sm100,
        name: "sm_100",
        capability: (10, 0),
        smem_per_block: 227 << 10,
        smem_per_sm: 228 << 10,
        smem_given: SINCE_80,
        resident: (2048, 32),
        arch_specific: false,
    },
    Row {
        arch: Arch::Sm120,
        name: "sm_120",
        capability: (12, 0),
        smem_per_block: 99 << 10,
        smem_per_sm: 100 << 10,
        smem_given: SINCE_80,
        resident: (1536, 24),
        arch_specific: false,
    },
];

impl Arch {
    /// Every architecture, in table order.
    pub const ALL: &'static [Arch] =
        &[Arch::Sm75, Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90, Arch::Sm90a, Arch::Sm100, Arch::Sm120];

    /// Threads in one block, at most.
    pub const MAX_THREADS: u64 = 1024;
    /// 32-bit registers that one thread can name.
    pub const MAX_REGISTERS_PER_THREAD: u64 = 255;
    /// 32-bit registers that one block can own.
    pub const REGISTERS_PER_BLOCK: u64 = 64 << 10;
    /// 32-bit registers of one multiprocessor.
    pub const REGISTERS_PER_SM: u64 = 64 << 10;
    /// Parts of a multiprocessor; each has a quarter of its registers, and a warp lives in one.
    pub const PARTITIONS: u64 = 4;
    /// A warp gets registers in multiples of this number (CUDA Occupancy Calculator, "Register allocation unit size").
    pub const REGISTER_UNIT: u64 = 256;
    /// Threads in a warp.
    pub const WARP: u64 = 32;
    /// Widest load or store of one thread (PTX ISA, `ld` and `st` with `.v4.b32`).
    pub const MAX_VECTOR: Bytes = Bytes(16);
    /// Blocks along x, at most.
    pub const MAX_GRID_X: u64 = (1 << 31) - 1;
    /// Blocks along y or z, at most.
    pub const MAX_GRID_YZ: u64 = (1 << 16) - 1;
    /// Shared memory that a kernel can declare in its text; more of it is dynamic.
    pub const STATIC_SMEM: Bytes = Bytes(48 << 10);

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name that nvcc uses: `sm_80`, `sm_90a`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The suffix after `sm_` and `compute_`: `80`, `90a`.
    pub fn suffix(self) -> &'static str {
        &self.name()[3..]
    }

    /// Compute capability, (major, minor).
    pub fn capability(self) -> (u32, u32) {
        self.row().capability
    }

    /// Shared memory that one block can use, with opt-in.
    pub fn smem_per_block(self) -> Bytes {
        Bytes(self.row().smem_per_block)
    }

    /// Shared memory of one multiprocessor, for all of its blocks.
    pub fn smem_per_sm(self) -> Bytes {
        Bytes(self.row().smem_per_sm)
    }

    /// The shared memory that a block takes if it asks for `smem` (CUDA C++ Programming Guide, "Shared Memory" of
    /// compute capability 8.x and 9.0: CUDA keeps 1 KiB of each block; CUDA Occupancy Calculator, "Shared Memory
    /// allocation unit size").
    ///
    /// ```
    /// use cutemplate::{arch::Arch, units::Bytes};
    /// assert_eq!([Arch::Sm75, Arch::Sm80].map(|arch| arch.smem_of_block(Bytes(100))), [Bytes(256), Bytes(1152)]);
    /// ```
    pub fn smem_of_block(self, smem: Bytes) -> Bytes {
        let (reserved, unit) = self.row().smem_given;
        Bytes((smem.0 + reserved).next_multiple_of(unit))
    }

    /// Threads on one multiprocessor at once, at most.
    pub fn threads_per_sm(self) -> u32 {
        self.row().resident.0
    }

    /// Blocks on one multiprocessor at once, at most.
    pub fn blocks_per_sm(self) -> u32 {
        self.row().resident.1
    }

    /// Compute capabilities of Tegra, newest last: Jetson TX1, TX2, Xavier, Orin, and Thor under both of its numbers.
    pub const TEGRA: [(u32, u32); 6] = [(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)];

    /// Whether SASS for `self` runs on a device of the given compute capability: same major, minor not older,
    /// and exactly equal for architecture-specific targets. None of it runs on Tegra, which compiles PTX (CUDA C++
    /// Programming Guide, "Binary Compatibility").
    ///
    /// ```
    /// use cutemplate::arch::Arch;
    /// assert!(Arch::Sm80.sass_runs_on((8, 6)) && !Arch::Sm80.sass_runs_on((8, 7)));
    /// ```
    pub fn sass_runs_on(self, capability: (u32, u32)) -> bool {
        let ((major, minor), (own_major, own_minor)) = (capability, self.capability());
        !Self::TEGRA.contains(&capability)
            && own_major == major
            && if self.row().arch_specific { own_minor == minor } else { own_minor <= minor }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no architecture.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown architecture `{name}`; known are {known}", name = self.0, known = known())]
pub struct UnknownArch(pub String);

debug_as_display!(UnknownArch);

fn known() -> String {
    Arch::ALL.iter().map(|arch| arch.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        TABLE.iter().find(|r| r.name == s).map(|r| r.arch).ok_or_else(|| UnknownArch(s.to_owned()))
    }
}

json_as_text!(Arch);

/// The architectures that one fatbin serves: SASS for each, and PTX of the lowest for devices that came later.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<Arch>")]
pub struct Targets(Vec<Arch>);

impl Targets {
    /// A non-empty set of architectures; order and repetition do not matter.
    ///
    /// Returns `None` for an empty set.
    pub fn new(archs: impl IntoIterator<Item = Arch>) -> Option<Self> {
        let mut archs: Vec<Arch> = archs.into_iter().collect();
        archs.sort();
        archs.dedup();
        (!archs.is_empty()).then_some(Self(archs))
    }

    /// The architectures, oldest first.
    pub fn archs(&self) -> &[Arch] {
        &self.0
    }

    /// The architecture whose PTX goes into the fatbin. PTX of an architecture-specific target would run on no
    /// other device, so there is none where only such a target is asked for.
    pub fn ptx(&self) -> Option<Arch> {
        Some(self.virtual_arch()).filter(|arch| !arch.row().arch_specific)
    }

    /// The architecture for which nvcc compiles the text; ptxas makes machine code for each target from it. It is the
    /// oldest one, without its specific features if there are others.
    ///
    /// ```
    /// use cutemplate::arch::{Arch::*, Targets};
    /// let of = |archs: &[_]| Targets::new(archs.iter().copied()).map(|targets| targets.virtual_arch());
    /// assert_eq!([of(&[Sm80, Sm90a]), of(&[Sm90a]), of(&[Sm90a, Sm100])], [Some(Sm80), Some(Sm90a), Some(Sm90)]);
    /// ```
    pub fn virtual_arch(&self) -> Arch {
        match self.0[..] {
            [Arch::Sm90a, _, ..] => Arch::Sm90,
            _ => self.0[0],
        }
    }

    /// The architecture of a device of the given compute capability, as code of these targets sees it: the newest one
    /// that it runs SASS of. An architecture-specific one counts only if it is among them. `None` if they have no code
    /// for it.
    ///
    /// ```
    /// use cutemplate::arch::{Arch, Targets};
    ///
    /// let sm80 = Targets::new([Arch::Sm80]).expect("an architecture");
    /// let on = |capability| [sm80.arch_on(capability), Targets::default().arch_on(capability)];
    /// assert_eq!(on((9, 0)), [Some(Arch::Sm90), Some(Arch::Sm90a)]);
    /// assert_eq!(on((8, 6)), [Some(Arch::Sm86); 2]);
    /// assert_eq!(on((7, 5)), [None; 2]);
    /// ```
    pub fn arch_on(&self, capability: (u32, u32)) -> Option<Arch> {
        let own = |arch: &&Arch| arch.sass_runs_on(capability) && (!arch.row().arch_specific || self.0.contains(arch));
        let newest = |of: &[Arch]| of.iter().filter(own).max().copied();
        // PTX also runs on devices that this version does not know.
        let by_ptx = || self.ptx().filter(|arch| arch.capability() <= capability);
        self.run_on(capability).then(|| newest(Arch::ALL).or_else(by_ptx))?
    }

    /// Whether a fatbin of these targets has code for a device of the given compute capability.
    pub fn run_on(&self, capability: (u32, u32)) -> bool {
        self.0.iter().any(|a| a.sass_runs_on(capability)) || self.ptx().is_some_and(|a| a.capability() <= capability)
    }
}

impl TryFrom<Vec<Arch>> for Targets {
    type Error = &'static str;

    fn try_from(archs: Vec<Arch>) -> Result<Self, Self::Error> {
        Targets::new(archs).ok_or("no architecture is named")
    }
}

impl Targets {
    /// The fatbin, of several, that a device of this compute capability runs: the last one with SASS for it, else with
    /// PTX.
    pub(crate) fn best<'t>(
        all: impl DoubleEndedIterator<Item = &'t Targets> + ExactSizeIterator + Clone,
        capability: (u32, u32),
    ) -> Option<usize> {
        let sass = |targets: &Targets| targets.0.iter().any(|arch| arch.sass_runs_on(capability));
        let all = || all.clone().enumerate().rev();
        let found = all().find(|(_, targets)| sass(targets));
        found.or_else(|| all().find(|(_, targets)| targets.run_on(capability))).map(|(index, _)| index)
    }
}

impl Default for Targets {
    /// `sm_80` and `sm_90a`.
    fn default() -> Self {
        Self(vec![Arch::Sm80, Arch::Sm90a])
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, a) in self.0.iter().enumerate() {
            write!(f, "{}{a}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_architecture_in_order() {
        assert_eq!(TABLE.len(), Arch::ALL.len());
        for (row, arch) in TABLE.iter().zip(Arch::ALL) {
            assert_eq!(row.arch, *arch);
            assert_eq!(row.name.parse(), Ok(*arch));
        }
    }

    #[test]
    fn code_runs_where_the_guide_says() {
        assert!(Arch::Sm80.sass_runs_on((8, 6)));
        assert!(!Arch::Sm86.sass_runs_on((8, 0)));
        assert!(!Arch::Sm80.sass_runs_on((9, 0)));
        assert!(!Arch::Sm90a.sass_runs_on((9, 1)));
        for tegra in Arch::TEGRA {
            assert!(!Arch::ALL.iter().any(|arch| arch.sass_runs_on(tegra)), "{tegra:?}");
            assert_eq!(Targets::default().run_on(tegra), tegra >= (8, 0), "{tegra:?}: by PTX of sm_80");
        }
        let both = Targets::default();
        assert!(both.run_on((9, 0)) && both.run_on((8, 9)) && both.run_on((12, 0)), "PTX of sm_80 serves the rest");
        assert!(!both.run_on((7, 5)));
        let oldest = Targets::new([Arch::Sm75, Arch::Sm90a]).expect("not empty");
        assert!(
            oldest.run_on((7, 5)) && oldest.run_on((8, 6)) && !oldest.run_on((7, 0)),
            "PTX of sm_75 serves the rest"
        );
        let hopper = Targets::new([Arch::Sm90a]).expect("not empty");
        assert!(!hopper.run_on((10, 0)));
        assert!(Arch::Sm100.sass_runs_on((10, 3)) && !Arch::Sm100.sass_runs_on((12, 0)));
        let newer = Targets::new([Arch::Sm90a, Arch::Sm120]).expect("not empty");
        assert!(newer.run_on((9, 0)) && newer.run_on((10, 0)) && newer.run_on((12, 1)), "PTX of sm_90 serves the rest");
    }
}

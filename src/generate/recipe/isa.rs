//! Groups of architectures, each with a text of its own.

use crate::arch::{Arch, Targets};

/// Architectures that share a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// `cp.async`, `ldmatrix`, `mma.sync`.
    Sm80,
    /// TMA, WGMMA.
    Sm90a,
}

impl Isa {
    fn of(arch: Arch) -> Isa {
        if arch == Arch::Sm90a { Isa::Sm90a } else { Isa::Sm80 }
    }

    /// Those that targets need, each with its own.
    pub(crate) fn among(targets: &Targets) -> impl Iterator<Item = (Isa, Targets)> {
        let own =
            |isa| Some((isa, Targets::new(targets.archs().iter().copied().filter(|arch| Isa::of(*arch) == isa))?));
        [Isa::Sm80, Isa::Sm90a].into_iter().filter_map(own)
    }

    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Isa::Sm80 => "sm80",
            Isa::Sm90a => "sm90a",
        }
    }
}

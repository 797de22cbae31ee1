//! GPUs as the models of time see them.

use crate::arch::Arch;

/// A GPU: the properties that its architecture does not determine.
///
/// ```
/// use cutemplate::model::H200;
///
/// // Products of f32 that its lanes can start in a second: 128 of a multiprocessor, two operations each.
/// let most = 2.0 * 128.0 * H200.sms as f64 * H200.clock;
/// assert_eq!((most / 1e11).round(), 669.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Its name, as the driver gives it.
    pub name: &'static str,
    /// Its architecture, which limits the contents of a multiprocessor.
    pub arch: Arch,
    /// Multiprocessors.
    pub sms: u64,
    /// Cycles per second of a multiprocessor.
    pub clock: f64,
    /// Bytes per second that a device-to-device copy reads and writes, caches cold.
    pub copy: f64,
    /// Bytes per second from L2 to the multiprocessors, for choices between recipes; a [`Pipe`](crate::model::Pipe)
    /// uses the most that they can take.
    pub l2: f64,
    /// Seconds that a warp lives that loads once and stores once.
    pub warp: f64,
}

/// The NVIDIA H200 of `benches/NOTES.md`: multiprocessors as the driver counts them (`MULTIPROCESSOR_COUNT`), the highest clock of
/// its multiprocessors (`nvidia-smi -q -d CLOCK`), the copy's rate, the life of a warp from the naive f16 kernel. The rate of L2 is
/// an assumption: nothing in `benches` has measured it.
pub const H200: Machine = Machine {
    name: "NVIDIA H200",
    arch: Arch::Sm90a,
    sms: 132,
    clock: 1.98e9,
    copy: 4.25e12,
    l2: 5.5e12,
    warp: 0.89e-6,
};

/// A GPU by its datasheet: multiprocessors, boost clock in GHz, and GB/s of device memory, which a copy does not reach.
/// Two properties were not measured. L2 is taken to give multiprocessors 64 bytes per cycle, and a warp to live as long
/// as on an H200. If a datasheet gives no clock, it follows from the f32 rate at 256 operations per cycle and
/// multiprocessor: 75 TFLOP/s of a B200, 125 of an RTX PRO 6000 Blackwell.
const fn by_datasheet(name: &'static str, arch: Arch, sms: u64, ghz: f64, memory: f64) -> Machine {
    let clock = ghz * 1e9;
    Machine { name, arch, sms, clock, copy: memory * 1e9, l2: 64.0 * sms as f64 * clock, warp: H200.warp }
}

impl Machine {
    /// A GPU of an architecture: the one that was measured, or else a large one by its datasheet, whose predictions are bounds.
    ///
    /// ```
    /// use cutemplate::arch::Arch;
    /// use cutemplate::model::{H200, Machine};
    ///
    /// assert_eq!(Machine::of(Arch::Sm90a), H200);
    /// assert_eq!((Machine::of(Arch::Sm80).sms, Machine::of(Arch::Sm89).sms), (108, 142));
    /// ```
    pub fn of(arch: Arch) -> Self {
        match arch {
            Arch::Sm75 => by_datasheet("NVIDIA T4 (datasheet)", arch, 40, 1.59, 320.0),
            Arch::Sm80 => by_datasheet("NVIDIA A100 80GB (datasheet)", arch, 108, 1.41, 2039.0),
            Arch::Sm86 => by_datasheet("NVIDIA RTX A6000 (datasheet)", arch, 84, 1.80, 768.0),
            Arch::Sm89 => by_datasheet("NVIDIA L40 (datasheet)", arch, 142, 2.49, 864.0),
            Arch::Sm90 | Arch::Sm90a => H200,
            Arch::Sm100 => by_datasheet("NVIDIA B200 (datasheet)", arch, 148, 1.98, 8000.0),
            Arch::Sm120 => by_datasheet("NVIDIA RTX PRO 6000 Blackwell (datasheet)", arch, 188, 2.60, 1792.0),
        }
    }
}

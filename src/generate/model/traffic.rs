//! The requests of a kernel's loads and stores to the memory system, counted from the addresses of every warp.
//!
//! The unit is the request: one load or store of a warp. It is served in sectors of 32 bytes, each asked for once, however
//! many lanes want some of it (CUDA C++ Programming Guide, "Device Memory Accesses"; Nsight Compute,
//! `l1tex__t_requests_pipe_lsu_mem_global_op_ld` and `l1tex__t_sectors_pipe_lsu_mem_global_op_ld`).

use core::fmt;

use super::banks::WARP;
use super::machine::Machine;
use super::work::{Pipe, Work};
use crate::arch::Arch;
use crate::view::{Access, ViewRef};

/// Bytes of one sector of global memory.
pub const SECTOR: u64 = 32;

/// Sectors of one line of L1.
const SECTORS_PER_LINE: u64 = 4;

/// Bytes of one line of L1.
pub(crate) const LINE: u64 = SECTOR * SECTORS_PER_LINE;

/// The traffic of one operand in one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Traffic {
    /// The operand.
    pub operand: &'static str,
    /// Whether it is written.
    pub written: bool,
    /// Loads or stores of whole warps.
    pub requests: u64,
    /// Sectors that the requests ask for.
    pub sectors: u64,
    /// Lines of 128 bytes that the sectors lie in, each request's counted by itself: L1 looks up one in a cycle.
    pub lines: u64,
    /// Bytes that the lanes ask for; what several lanes share counts once for each.
    pub lane_bytes: u64,
    /// Bytes of the operand: each element once.
    pub bytes: u64,
}

impl Traffic {
    /// Traffic of warps that each take 32 neighbours of a row `(M,N)` at a time, or one element of a row `(M)`. The
    /// first row stands for all.
    pub fn along_rows(operand: &'static str, view: &ViewRef) -> Self {
        let (bytes, size) = (view.dtype.bytes().0, view.layout.distinct().size().unwrap_or(u64::MAX));
        let written = view.access == Access::Write;
        let mut counter = Counter::new(operand, written, size.saturating_mul(bytes));
        let mode = |all: &[i64], mode: usize| all.get(mode).map(|x| x.unsigned_abs());
        let (n, stride) = (mode(view.layout.shape(), 1), mode(view.layout.stride(), 1).unwrap_or(0));
        for first in (0..n.unwrap_or(1)).step_by(WARP) {
            let lanes = first..(first + WARP as u64).min(n.unwrap_or(1));
            counter.request(lanes.map(|n| view.ptr.wrapping_add(n * stride * bytes)), bytes);
        }
        let rows = mode(view.layout.shape(), 0).unwrap_or(0);
        Self { bytes: counter.traffic.bytes, ..counter.traffic.times(rows) }
    }

    /// The same counts, multiplied. Data that is never requested is not moved.
    pub(crate) fn times(self, count: u64) -> Self {
        Self {
            requests: self.requests.saturating_mul(count),
            sectors: self.sectors.saturating_mul(count),
            lines: self.lines.saturating_mul(count),
            lane_bytes: self.lane_bytes.saturating_mul(count),
            bytes: if count > 0 { self.bytes } else { 0 },
            ..self
        }
    }

    /// Sectors that one request asks for, on average.
    pub fn sectors_per_request(&self) -> f64 {
        self.sectors as f64 / self.requests.max(1) as f64
    }

    /// Bytes of the sectors asked for over bytes of the operand: how often each is asked for, by threads that share it, or since
    /// sectors are not used whole.
    pub fn reuse(&self) -> f64 {
        self.sectors as f64 * SECTOR as f64 / self.bytes.max(1) as f64
    }
}

/// Counts the requests of one operand.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    traffic: Traffic,
    sectors: Vec<u64>,
}

impl Counter {
    pub(crate) fn new(operand: &'static str, written: bool, bytes: u64) -> Self {
        let traffic = Traffic { operand, written, requests: 0, sectors: 0, lines: 0, lane_bytes: 0, bytes };
        Self { traffic, sectors: Vec::with_capacity(64) }
    }

    /// One load or store of a warp: the addresses of the lanes that take part, `bytes` each. Without lanes there is none.
    pub(crate) fn request(&mut self, lanes: impl Iterator<Item = u64>, bytes: u64) {
        self.sectors.clear();
        let mut ascending = true;
        let mut lanes_in = 0;
        for address in lanes {
            lanes_in += 1;
            for sector in address / SECTOR..=address.saturating_add(bytes - 1) / SECTOR {
                match self.sectors.last() {
                    Some(last) if *last == sector => {}
                    last => {
                        ascending &= last.is_none_or(|last| *last < sector);
                        self.sectors.push(sector);
                    }
                }
            }
        }
        if lanes_in == 0 {
            return;
        }
        if !ascending {
            self.sectors.sort_unstable();
            self.sectors.dedup();
        }
        self.traffic.requests += 1;
        self.traffic.sectors += self.sectors.len() as u64;
        let lines = self.sectors.chunk_by(|a, b| a / SECTORS_PER_LINE == b / SECTORS_PER_LINE);
        self.traffic.lines += lines.count() as u64;
        self.traffic.lane_bytes += lanes_in * bytes;
    }

    /// The same operand, with nothing counted yet.
    pub(crate) fn restart(&mut self) {
        let Traffic { operand, written, bytes, .. } = self.traffic;
        *self = Self::new(operand, written, bytes);
    }

    /// Adds another count of the same operand, `times` times.
    pub(crate) fn add(&mut self, other: &Counter, times: u64) {
        let (own, more) = (&mut self.traffic, other.traffic.times(times));
        own.requests += more.requests;
        own.sectors += more.sectors;
        own.lines += more.lines;
        own.lane_bytes += more.lane_bytes;
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic
    }
}

/// What holds a launch up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The bytes that have to come from and go to device memory.
    Bandwidth,
    /// Each warp waits for its loads, and too few bytes are on their way meanwhile.
    Latency,
    /// Sectors are asked for that are not used, or several times.
    Sectors,
    /// Instructions; a scheduler starts one per cycle.
    Instructions,
    /// Passes over shared memory and lookups of lines in L1.
    Wavefronts,
    /// Bytes from L2 to the multiprocessors.
    L2,
    /// Products that tensor cores add.
    TensorCores,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Bandwidth => "bandwidth of device memory",
            Limit::Latency => "latency: too few bytes in flight",
            Limit::Sectors => "sectors that are not used whole",
            Limit::Instructions => "instructions, one a cycle and scheduler",
            Limit::Wavefronts => "shared memory and L1, one pass or line a cycle",
            Limit::L2 => "bandwidth of L2",
            Limit::TensorCores => "tensor cores",
        })
    }
}

/// The prediction of a launch, from its layouts alone. Counts saturate at the largest number of 64 bits, so that lower
/// bounds stay true.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Prediction {
    /// Each operand.
    pub traffic: Vec<Traffic>,
    /// Blocks of the launch.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// The other work of the multiprocessors, if that can take the time.
    pub work: Option<Work>,
}

impl Prediction {
    /// Bytes that every element being moved once takes.
    pub fn bytes(&self) -> u64 {
        self.traffic.iter().map(|t| t.bytes).fold(0, u64::saturating_add)
    }

    /// Bytes of all sectors that are asked for.
    pub fn sector_bytes(&self) -> u64 {
        self.traffic.iter().map(|t| t.sectors.saturating_mul(SECTOR)).fold(0, u64::saturating_add)
    }

    /// Seconds on a machine, caches cold, and what holds it up.
    ///
    /// If the multiprocessors have work of their own, the time is the busiest [`Pipe`]'s, a lower bound of the launch
    /// without waiting. Otherwise, moving the bytes and waiting for warps overlap, but near equality they hinder each
    /// other: `(t_bytes^3 + t_warps^3)^(1/3)`. The exponent is empirical: it fits the naive kernel in f16 and f32, and
    /// bf16, f64 and i8 were predicted with it. Sectors that neighbouring requests share are taken to be served by a
    /// cache.
    pub fn seconds(&self, machine: &Machine) -> (f64, Limit) {
        if let Some(work) = &self.work {
            return work.seconds(self, machine);
        }
        let bytes = self.bytes() as f64 / machine.copy;
        // By threads and blocks; registers may leave fewer.
        let per_block = u64::from(self.threads).div_ceil(WARP as u64);
        let warps_per_sm = u64::from(machine.arch.threads_per_sm()) / Arch::WARP;
        let resident = (warps_per_sm / per_block.max(1)).clamp(1, u64::from(machine.arch.blocks_per_sm()));
        let warps = self.blocks as f64 / (machine.sms * resident) as f64 * machine.warp;
        let limit = if warps > bytes {
            Limit::Latency
        } else if self.sector_bytes() > self.bytes().saturating_mul(2) {
            Limit::Sectors
        } else {
            Limit::Bandwidth
        };
        ((bytes.powi(3) + warps.powi(3)).cbrt(), limit)
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  operand   requests      sectors  per request       reuse")?;
        for t in &self.traffic {
            let (per, reuse) = (t.sectors_per_request(), t.reuse());
            write!(f, "\n  {:7} {:10} {:12} {per:12.2} {reuse:11.2}", t.operand, t.requests, t.sectors)?;
        }
        Ok(())
    }
}

/// The time of a launch on a machine.
#[derive(Clone, Copy, Debug)]
pub struct On<'a>(&'a Prediction, &'a Machine);

impl Prediction {
    /// Its time on a machine, as text: each pipe, if there are any, and the limit.
    pub fn on<'a>(&'a self, machine: &'a Machine) -> On<'a> {
        On(self, machine)
    }
}

impl fmt::Display for On<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(launch, machine) = self;
        let (seconds, limit) = launch.seconds(machine);
        let (micros, name) = (seconds * 1e6, machine.name);
        let Some(work) = &launch.work else {
            let rate = launch.bytes() as f64 / seconds / 1e12;
            return write!(f, "  {micros:.1} us on an {name}, {rate:.2} TB/s, caches cold; limit: {limit}");
        };
        for Pipe { limit, seconds } in work.pipes(launch, machine) {
            writeln!(f, "  {:10.1} us  {limit}", seconds * 1e6)?;
        }
        let rate = work.flop as f64 / seconds / 1e12;
        write!(f, "  at least {micros:.1} us on an {name}, {rate:.1} TFLOP/s; limit: {limit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(lanes: impl Iterator<Item = u64>, bytes: u64) -> (u64, u64) {
        let mut counter = Counter::new("A", false, 0);
        counter.request(lanes, bytes);
        (counter.traffic().requests, counter.traffic().sectors)
    }

    #[test]
    fn a_request_asks_for_each_sector_once() {
        assert_eq!(count((0..32).map(|l| 2 * l), 2), (1, 2));
        assert_eq!(count((0..32).map(|l| 16 * l), 16), (1, 16));
        assert_eq!(count((0..32).map(|l| 2 * l + 2), 2), (1, 3));
        assert_eq!(count((0..32).map(|l| 4096 * l), 4), (1, 32));
        assert_eq!(count((0..32).map(|_| 64), 4), (1, 1));
        assert_eq!(count((0..32).rev().map(|l| 16 * l), 16), (1, 16));
        assert_eq!(count(core::iter::empty(), 4), (0, 0));
    }
}

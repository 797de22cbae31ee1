//! Runs a launch: checks it, places its memory, and starts the machine.

use super::code::{Base, Code, Inst, Op};
use super::entry_profile::profile;
use super::error::Error;
use super::launch::{Launch, TensorCores};
use super::machine::products::sums::{AMPERE, HOPPER};
use super::machine::races::race::Races;
use super::machine::reports::{causes::Lines, report::site};
use super::machine::undefined::shadow::sides;
use super::machine::{BEFORE, Checks, Grid, MULTIPROCESSORS, SHARED_STRIDE, SHARED_WINDOW, SharedPlace, run_blocks};
use super::parse::clip;
use super::place::{Placed, Shared};
use crate::{Path, Report};

impl Launch<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// The launch is invalid on every GPU, or the entry is unsupported. Faults of the kernel are in the report.
    pub fn run(mut self) -> Result<Report, Error> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        let code = self.module.code(&self.entry)?;
        if self.next != 0 && self.next != code.params.len() {
            return Err(Error::launch("the launch has fewer arguments than the entry has parameters")
                .found(format!("{} arguments", self.next))
                .required(format!("{} for {}", code.params.len(), code.name)));
        }
        self.check(code)?;
        let mut placed = self.place(code)?;
        self.fill(code, &mut placed)?;
        let Placed { memory, buffers, globals, param, workspace } = placed;
        let Shared { places: shared, offsets, reserved, bytes: one_block } = self.shared(code)?;
        let cluster = self.cluster_of(code)?;
        let ranks = cluster.iter().product::<u32>();
        // Matrix descriptors have 18 address bits, so the blocks of a cluster differ in the bits above.
        let shared_stride = if ranks == 1 { one_block } else { one_block.next_multiple_of(SHARED_STRIDE) };
        let shared = (0..ranks).flat_map(|rank| {
            shared.iter().map(move |v| SharedPlace {
                start: v.start + u64::from(rank) * shared_stride,
                rank,
                ..v.clone()
            })
        });
        let shared: Vec<SharedPlace> = shared.collect();
        let variables = globals;
        let globals: Vec<u64> = variables.iter().map(|i| memory.allocations[*i].start).collect();
        let param = memory.allocations[param].start;
        let constants = code.constants.iter().map(|c| {
            let base = match c.base {
                Base::Zero => 0,
                Base::Global(i) => globals[i as usize],
                Base::Shared(i) => offsets[i as usize],
                Base::SharedGeneric(i) => offsets[i as usize] + SHARED_WINDOW,
                Base::Param => param,
            };
            let shared = matches!(c.base, Base::Shared(_) | Base::SharedGeneric(_));
            (c.row, c.wide, base.wrapping_add(c.value), shared)
        });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let grid = Grid {
            code,
            memory: &memory,
            constants: constants.collect(),
            params: self.params.clone(),
            grid: self.grid,
            block: self.block,
            cluster,
            dynamic_smem: self.dynamic_smem,
            shared,
            shared_bytes: shared_stride * u64::from(ranks),
            shared_stride,
            reserved,
            workspace: workspace.map_or(0, |i| memory.allocations[i].start),
            checks: Checks {
                bounds: self.modes.bounds,
                init: self.modes.init,
                races: self.modes.races,
                paths: self.paths && self.modes.races,
                profile: self.profile,
                early: self.programmatic && self.modes.races,
            },
            sides: if self.modes.init { sides(code) } else { Vec::new() },
            allow: &self.allow,
            seed: self.seed,
            budget: self.budget,
            workers: self.workers.unwrap_or(cores).max(1),
            adder: match self.tensor_cores {
                TensorCores::Fast => None,
                TensorCores::Hopper => Some(HOPPER),
                TensorCores::Ampere => Some(AMPERE),
            },
            races: self.modes.races.then(|| std::sync::Mutex::new(Races::default())),
            lines: Lines::default(),
            actors: std::sync::atomic::AtomicU32::new(BEFORE + 1),
        };
        let done = run_blocks(&grid);
        let blocks = grid.clusters() * u64::from(grid.ranks());
        drop(grid);
        for (buffer, allocation) in self.buffers.iter_mut().zip(&buffers) {
            buffer.data.copy_back(&memory, *allocation);
        }
        for (name, data) in &mut self.variables {
            data.copy_back(&memory, variables[variable(code, name)?]);
        }
        let paths = done.paths.by_pair().into_iter().map(|((first, then), by)| Path {
            first: site(code, first),
            then: site(code, then),
            by: by.into_iter().map(|pc| site(code, pc)).collect(),
        });
        Ok(Report {
            findings: done.findings,
            allowed: done.allowed,
            dropped: done.dropped,
            printed: done.printed,
            finished_blocks: done.finished,
            blocks,
            instructions: done.instructions,
            lane_instructions: done.lane_instructions,
            paths: paths.collect(),
            profile: self.profile.then(|| profile(code, &done.profile, done.stages)),
        })
    }

    fn check(&self, code: &Code) -> Result<(), Error> {
        let threads = self.block.iter().try_fold(1_u32, |n, b| n.checked_mul(*b)).filter(|n| (1..=1024).contains(n));
        let limits = [0x7fff_ffff_u32, 65535, 65535];
        let blocks = self.grid.iter().zip(limits).all(|(n, most)| (1..=most).contains(n))
            && self.grid.iter().try_fold(1_u64, |n, b| n.checked_mul(u64::from(*b))).is_some_and(|n| n <= 1 << 31);
        let deep = self.block[2] <= 64;
        if threads.is_none() || !blocks || !deep {
            return Err(Error::launch("the grid or the block cannot be run")
                .found(format!("grid {:?}, block {:?}", self.grid, self.block))
                .required("1 to 1024 threads in a block, at most 64 of them in z; 1 to 2^31-1, 65535, 65535 blocks, at most 2^31 in all"));
        }
        if let Some(want) = code.reqntid.filter(|want| *want != self.block) {
            return Err(Error::launch("the entry is compiled for another block")
                .found(format!("block {:?}", self.block))
                .required(format!("block {want:?}, by .reqntid")));
        }
        if self.cooperative {
            self.check_resident(code, threads.unwrap_or(1024))?;
        }
        let most = code.maxntid.map_or(1024, |n| n.iter().fold(1, |all: u32, n| all.saturating_mul(*n)));
        if threads.is_some_and(|n| n > most) {
            return Err(Error::launch("the block has more threads than the entry is compiled for")
                .found(format!("block {:?}", self.block))
                .required(format!("at most {most} threads, by .maxntid")));
        }
        if self.tensor_cores == TensorCores::Ampere {
            let is_small = |i: &Inst| i.op == Op::Mma && code.mmas[i.x as usize].a.bits() == 8;
            if let Some(at) = code.insts.iter().position(is_small) {
                return Err(Error::unsupported(code.places[at].0, "Ampere's tensor cores have no 8-bit floats")
                    .found(code.names[code.opcodes[at] as usize].clone()));
            }
        }
        if self.params.len() as u64 != code.param_bytes {
            return Err(Error::launch("the parameters do not fit the entry")
                .found(format!("{} B", self.params.len()))
                .required(format!("{} B", code.param_bytes)));
        }
        Ok(())
    }
}

impl Launch<'_> {
    /// All blocks of a cooperative launch must be resident on an H200. A multiprocessor has 32 blocks, 2048 threads and 228 KB of shared
    /// memory, of which each block takes 1 KB more (CUDA C++ Programming Guide, "Compute Capabilities"). Registers are not counted.
    fn check_resident(&self, code: &Code, threads: u32) -> Result<(), Error> {
        let smem = code.shared.iter().filter_map(|v| v.bytes).fold(u64::from(self.dynamic_smem), u64::saturating_add);
        let each =
            (2048 / u64::from(threads.next_multiple_of(32))).min((228 << 10) / smem.saturating_add(1024)).min(32);
        let most = each * u64::from(MULTIPROCESSORS);
        let blocks: u64 = self.grid.iter().map(|n| u64::from(*n)).product();
        if blocks <= most {
            return Ok(());
        }
        Err(Error::launch("a cooperative launch has more blocks than are resident at once")
            .found(format!("{blocks} blocks"))
            .required(format!("at most {most}: {each} on each of {MULTIPROCESSORS} multiprocessors")))
    }
}

/// The number of a variable of the module.
pub(super) fn variable(code: &Code, name: &str) -> Result<usize, Error> {
    let mut found = code.globals.iter().enumerate().filter(|(_, v)| v.name == name).map(|(i, _)| i);
    match (found.next(), found.next()) {
        (Some(i), None) => Ok(i),
        (Some(_), Some(_)) => Err(Error::launch("several variables of the text have one name").found(clip(name))),
        (None, _) => {
            Err(Error::launch("the text has no such variable").found(clip(name)).required(match &code.globals[..] {
                [] => "a text with variables in global or constant memory".to_owned(),
                all => {
                    format!("one of {}", all.iter().map(|v| v.name.as_str()).take(20).collect::<Vec<_>>().join(", "))
                }
            }))
        }
    }
}

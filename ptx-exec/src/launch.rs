//! One launch: memory, parameters, dimensions and checks.

use super::Module;
use super::allow::Allow;
use super::code::{Base, Code, Inst, Op};
use super::device_memory::DeviceMemory;
use super::entry_profile::profile;
use super::error::Error;
use super::machine::sums::{AMPERE, HOPPER};
use super::machine::{
    BEFORE, Checks, Grid, MULTIPROCESSORS, SHARED_STRIDE, SHARED_WINDOW, SharedPlace, causes::Lines, race::Races,
    report::site, run_blocks, shadow::sides,
};
use super::maps::{LaunchMap, MapPlace};
use super::memory::Memory;
use super::parse::clip;
use super::place::{Placed, Shared};
use crate::tensor::Tensor;
use crate::tensor_map::TensorMap;
use crate::{Path, Report};

/// Optional checks. Every launch finds accesses outside all memory, misaligned accesses, deadlocks and traps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modes {
    /// Finds accesses outside the elements of a tensor: see [`Buffer::tensors`].
    pub bounds: bool,
    /// Finds uninitialised values that reach an address, a branch or a result.
    pub init: bool,
    /// Finds data races.
    pub races: bool,
}

impl Modes {
    /// No optional check.
    pub const PLAIN: Modes = Modes { bounds: false, init: false, races: false };
    /// Every check.
    pub const ALL: Modes = Modes { bounds: true, init: true, races: true };
}

/// Where memory is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// As a driver places it: allocations at multiples of 256 bytes, shared memory at a multiple of 1024.
    #[default]
    Driver,
    /// At exactly the declared alignment, to find code that relies on more.
    Exact,
}

/// How `mma` adds floating-point products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TensorCores {
    /// In f32, product by product. This is fast, and within the error bound of the chips.
    #[default]
    Fast,
    /// As the tensor cores of Hopper chips: compared with an H200, bit by bit.
    Hopper,
    /// As the tensor cores of Ampere chips, after the paper MMA-Sim, arXiv 2511.10909.
    Ampere,
}

/// The contents of a buffer.
#[derive(Debug)]
pub enum Data<'a> {
    /// The kernel only reads it.
    Read(&'a [u8]),
    /// The kernel writes it; copied back afterwards.
    Write(&'a mut [u8]),
    /// Memory that exists during the launch, with its size in bytes.
    Scratch(u64),
    /// Memory that an earlier launch may have written and a later one may read. The kernel writes it; copied back afterwards.
    Keep(&'a mut DeviceMemory),
}

impl Data<'_> {
    /// The bytes before the launch; `None` of scratch.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Data::Read(bytes) => Some(bytes),
            Data::Write(bytes) => Some(bytes),
            Data::Keep(memory) => Some(&memory.bytes),
            Data::Scratch(_) => None,
        }
    }

    pub(super) fn size(&self) -> u64 {
        match self {
            Data::Scratch(bytes) => *bytes,
            _ => self.bytes().map_or(0, |bytes| bytes.len() as u64),
        }
    }

    /// Takes over what the launch left.
    fn copy_back(&mut self, memory: &Memory, allocation: usize) {
        match self {
            Data::Write(bytes) => memory.copy_out(allocation, bytes),
            Data::Keep(kept) => {
                memory.copy_out(allocation, &mut kept.bytes);
                kept.unwritten = memory.unwritten(allocation);
            }
            Data::Read(_) | Data::Scratch(_) => {}
        }
    }
}

/// Memory of the device.
#[derive(Debug)]
pub struct Buffer<'a> {
    /// Its name in findings.
    pub name: String,
    /// Its contents.
    pub data: Data<'a>,
    /// Alignment in bytes for [`Placement::Exact`]: a power of two of at most 2^20.
    pub align: u64,
    /// Address of its first byte, modulo `align`.
    pub offset: u64,
    /// Whether its contents count as initialised. [`Data::Keep`] says it by itself.
    pub written: bool,
    /// The tensors in it, which may overlap. Without tensors, every byte is an element.
    pub tensors: Vec<Tensor>,
}

impl<'a> Buffer<'a> {
    /// A buffer without tensors: every byte is an element.
    pub fn new(name: impl Into<String>, data: Data<'a>) -> Buffer<'a> {
        let written = !matches!(data, Data::Scratch(_));
        Buffer { name: name.into(), data, align: 16, offset: 0, written, tensors: Vec::new() }
    }
}

/// Default limit of warp instructions for a launch: some seconds, or a minute in all modes. It ends endless polling loops.
pub const STEP_BUDGET: u64 = 1_000_000_000;

/// A launch of an entry, made by [`Module::launch`].
#[derive(Debug)]
pub struct Launch<'a> {
    pub(super) module: &'a Module,
    pub(super) entry: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) cluster: Option<[u32; 3]>,
    pub(super) maps: Vec<LaunchMap>,
    pub(super) dynamic_smem: u32,
    pub(super) buffers: Vec<Buffer<'a>>,
    pub(super) params: Vec<u8>,
    pub(super) pointers: Vec<(usize, usize, u64)>,
    pub(super) next: usize,
    pub(super) modes: Modes,
    pub(super) placement: Placement,
    pub(super) tensor_cores: TensorCores,
    pub(super) seed: u64,
    pub(super) budget: u64,
    pub(super) workers: Option<usize>,
    pub(super) paths: bool,
    pub(super) profile: bool,
    pub(super) programmatic: bool,
    pub(super) variables: Vec<(String, Data<'a>)>,
    pub(super) allow: Vec<Allow>,
    pub(super) cooperative: bool,
    pub(super) failed: Option<Error>,
}

impl<'a> Launch<'a> {
    /// Blocks of the grid in x, y, z; missing ones are 1.
    #[must_use]
    pub fn grid(mut self, blocks: &[u32]) -> Self {
        self.grid = triple(blocks);
        self
    }

    /// Threads of a block in x, y, z; missing ones are 1.
    #[must_use]
    pub fn block(mut self, threads: &[u32]) -> Self {
        self.block = triple(threads);
        self
    }

    /// Blocks of a cluster, if the entry does not declare them.
    #[must_use]
    pub fn cluster(mut self, blocks: &[u32]) -> Self {
        self.cluster = Some(triple(blocks));
        self
    }

    /// Enables programmatic dependent launch (PDL): the grid may begin while the grid before it in the stream ends. The race check then
    /// requires `griddepcontrol.wait` before a warp accesses memory. A warp that meets such a warp at a barrier needs none.
    #[must_use]
    pub fn programmatic(mut self, programmatic: bool) -> Self {
        self.programmatic = programmatic;
        self
    }

    /// Makes the launch cooperative, as `cudaLaunchCooperativeKernel`: all blocks are resident, and `grid.sync()` works.
    #[must_use]
    pub fn cooperative(mut self, cooperative: bool) -> Self {
        self.cooperative = cooperative;
        self
    }

    /// Dynamic shared memory of a block, in bytes.
    #[must_use]
    pub fn dynamic_smem(mut self, bytes: u32) -> Self {
        self.dynamic_smem = bytes;
        self
    }

    /// Sets the optional checks.
    #[must_use]
    pub fn modes(mut self, modes: Modes) -> Self {
        self.modes = modes;
        self
    }

    /// Sets where memory is placed.
    #[must_use]
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets how `mma` adds floating-point products.
    #[must_use]
    pub fn tensor_cores(mut self, tensor_cores: TensorCores) -> Self {
        self.tensor_cores = tensor_cores;
        self
    }

    /// Sets the seed, which decides the order of warps and blocks. The same seed gives the same result.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Limit of warp instructions [10^9, [`STEP_BUDGET`]].
    #[must_use]
    pub fn step_budget(mut self, instructions: u64) -> Self {
        self.budget = instructions;
        self
    }

    /// Host threads that run blocks [all cores]. If blocks may see each other's writes, through atomics or fences, one thread runs them
    /// in turns.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Whether the report has the happens-before paths between conflicting accesses; requires mode `races`.
    #[must_use]
    pub fn paths(mut self, yes: bool) -> Self {
        self.paths = yes;
        self
    }

    /// Whether the report has a profile.
    #[must_use]
    pub fn profile(mut self, yes: bool) -> Self {
        self.profile = yes;
        self
    }

    /// The next parameter: bytes as the entry reads them.
    #[must_use]
    pub fn arg_bytes(mut self, bytes: &[u8]) -> Self {
        match self.param(bytes.len()) {
            Ok(at) => {
                // Where `params` gave fewer bytes than the entry has, `run` says so.
                if let Some(room) = self.params.get_mut(at..at + bytes.len()) {
                    room.copy_from_slice(bytes);
                }
            }
            Err(e) => self.failed = self.failed.or(Some(e)),
        }
        self
    }

    /// The next parameter: a pointer to memory that the kernel reads.
    #[must_use]
    pub fn input(self, name: &str, data: &'a [u8]) -> Self {
        self.arg_buffer(Buffer::new(name, Data::Read(data)))
    }

    /// The next parameter: a pointer to memory that the kernel writes.
    #[must_use]
    pub fn output(self, name: &str, data: &'a mut [u8]) -> Self {
        self.arg_buffer(Buffer::new(name, Data::Write(data)))
    }

    /// The next parameter: a pointer to a buffer.
    #[must_use]
    pub fn arg_buffer(mut self, buffer: Buffer<'a>) -> Self {
        let index = self.buffers.len();
        self.buffers.push(buffer);
        match self.param(8) {
            Ok(at) => self.pointers.push((at, index, 0)),
            Err(e) => self.failed = self.failed.or(Some(e)),
        }
        self
    }

    /// A buffer for pointers inside parameters: see [`Launch::pointer`].
    #[must_use]
    pub fn buffer(mut self, buffer: Buffer<'a>) -> Self {
        self.buffers.push(buffer);
        self
    }

    /// Stores the address of a byte of buffer `index` at `offset` of the parameters. Buffers count in the order of their calls.
    #[must_use]
    pub fn pointer(mut self, offset: usize, index: usize, byte: u64) -> Self {
        self.pointers.push((offset, index, byte));
        self
    }

    /// Sets a `__device__` or `__constant__` variable of the module before the launch, by its name in the PTX. The data must have the
    /// variable's size. With [`Data::Write`] and [`Data::Keep`] it is copied back afterwards, in any state space.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, data: Data<'a>) -> Self {
        self.variables.push((name.into(), data));
        self
    }

    /// Findings that do not fail the launch; each call adds to them.
    #[must_use]
    pub fn allow(mut self, findings: Allow) -> Self {
        self.allow.push(findings);
        self
    }

    /// Puts a tensor map at `offset` of the parameters; its tensor begins at a byte of buffer `index`. The driver's 128 bytes are opaque,
    /// so this executor has an encoding of its own. A kernel may copy it and change it by `tensormap.replace`.
    #[must_use]
    pub fn tensor_map(mut self, offset: usize, index: usize, byte: u64, spec: TensorMap) -> Self {
        self.maps.push(LaunchMap { place: MapPlace::Param(offset), buffer: index, byte, spec });
        self
    }

    /// The same for a map in memory, at byte `at` of buffer `holder`, a multiple of 64.
    #[must_use]
    pub fn tensor_map_in(mut self, holder: usize, at: u64, index: usize, byte: u64, spec: TensorMap) -> Self {
        self.maps.push(LaunchMap { place: MapPlace::Buffer(holder, at), buffer: index, byte, spec });
        self
    }

    /// The next parameter: a tensor map of a buffer from [`Launch::buffer`] or an argument, by number.
    #[must_use]
    pub fn arg_tensor_map(mut self, index: usize, byte: u64, spec: TensorMap) -> Self {
        match self.param(128) {
            Ok(at) => return self.tensor_map(at, index, byte, spec),
            Err(e) => self.failed = self.failed.or(Some(e)),
        }
        self
    }

    /// All parameters at once, as the entry reads them.
    #[must_use]
    pub fn params(mut self, bytes: &[u8]) -> Self {
        self.params = bytes.to_vec();
        self
    }

    /// Where the next parameter lies.
    fn param(&mut self, bytes: usize) -> Result<usize, Error> {
        let code = self.module.code(&self.entry)?;
        let number = self.next;
        self.next += 1;
        let Some(p) = code.params.get(number) else {
            return Err(Error::launch("the launch has more arguments than the entry has parameters")
                .found(format!("argument {}", number + 1))
                .required(format!("{} arguments of {}", code.params.len(), code.name)));
        };
        if p.bytes != bytes as u64 {
            return Err(Error::launch(format!("argument {} does not fit its parameter", number + 1))
                .found(format!("{bytes} B"))
                .required(format!("{} B for {}", p.bytes, p.name)));
        }
        Ok(p.offset as usize)
    }

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

fn triple(of: &[u32]) -> [u32; 3] {
    core::array::from_fn(|i| of.get(i).copied().unwrap_or(1))
}

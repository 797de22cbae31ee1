//! One launch: memory, parameters, dimensions and checks.

use super::Module;
use super::allow::Allow;
use super::device_memory::DeviceMemory;
use super::error::Error;
use super::maps::{LaunchMap, MapPlace};
use super::memory::Memory;
use crate::tensor::Tensor;
use crate::tensor_map::TensorMap;

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
    pub(super) fn copy_back(&mut self, memory: &Memory, allocation: usize) {
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

/// Methods that set one field.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($value:ident: $ty:ty) $field:ident = $set:expr;)*) => {
        impl Launch<'_> {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $value: $ty) -> Self {
                self.$field = $set;
                self
            })*
        }
    };
}

setters! {
    /// Blocks of the grid in x, y, z; missing ones are 1.
    grid(blocks: &[u32]) grid = triple(blocks);
    /// Threads of a block in x, y, z; missing ones are 1.
    block(threads: &[u32]) block = triple(threads);
    /// Blocks of a cluster, if the entry does not declare them.
    cluster(blocks: &[u32]) cluster = Some(triple(blocks));
    /// Enables programmatic dependent launch (PDL): the grid may begin while the grid before it in the stream ends. The race check then
    /// requires `griddepcontrol.wait` before a warp accesses memory. A warp that meets such a warp at a barrier needs none.
    programmatic(programmatic: bool) programmatic = programmatic;
    /// Makes the launch cooperative, as `cudaLaunchCooperativeKernel`: all blocks are resident, and `grid.sync()` works.
    cooperative(cooperative: bool) cooperative = cooperative;
    /// Dynamic shared memory of a block, in bytes.
    dynamic_smem(bytes: u32) dynamic_smem = bytes;
    /// Sets the optional checks.
    modes(modes: Modes) modes = modes;
    /// Sets where memory is placed.
    placement(placement: Placement) placement = placement;
    /// Sets how `mma` adds floating-point products.
    tensor_cores(tensor_cores: TensorCores) tensor_cores = tensor_cores;
    /// Sets the seed, which decides the order of warps and blocks. The same seed gives the same result.
    seed(seed: u64) seed = seed;
    /// Limit of warp instructions [10^9, [`STEP_BUDGET`]].
    step_budget(instructions: u64) budget = instructions;
    /// Host threads that run blocks [all cores]. If blocks may see each other's writes, through atomics or fences, one thread runs them
    /// in turns.
    workers(workers: usize) workers = Some(workers);
    /// Whether the report has the happens-before paths between conflicting accesses; requires mode `races`.
    paths(yes: bool) paths = yes;
    /// Whether the report has a profile.
    profile(yes: bool) profile = yes;
    /// All parameters at once, as the entry reads them.
    params(bytes: &[u8]) params = bytes.to_vec();
}

impl<'a> Launch<'a> {
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
}

fn triple(of: &[u32]) -> [u32; 3] {
    core::array::from_fn(|i| of.get(i).copied().unwrap_or(1))
}

//! The entries of a kernel of this crate in their module, launched by jobs.

use core::num::NonZero;
use std::sync::Arc;

use ptx_exec::{
    Buffer, Data, Error, Launch, MapSwizzle, Modes, Module, Placement, Report, STEP_BUDGET, Tensor, TensorCores,
    TensorMap, Ty,
};

use super::error::Refused;
use super::extent::{self, Bytes, Extent, Region};
use super::job::{self, Job, VECTOR};
use crate::dtype::DType;
use crate::plan::{Abi, Entry, EntryLaunch};
use crate::tiling::{self, MapType, TensorMapSpec};
use crate::units;

/// The name of a workspace.
const WORKSPACE: &str = "the workspace";
/// The driver's alignment of allocations, promised for a workspace.
const ALLOCATION: u64 = 256;

/// How kernels are run, and which faults are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The faults that are looked for.
    pub modes: Modes,
    /// Where memory is placed: exactly, so that what relies on more than binding asks for is found.
    pub placement: Placement,
    /// How sums of `mma` are made.
    pub tensor_cores: TensorCores,
    /// Decides the order of warps and blocks.
    pub seed: u64,
    /// Warp instructions that each grid may take [10^9, [`STEP_BUDGET`]].
    pub step_budget: u64,
    /// Host threads that run blocks; `None` for as many as there are cores.
    pub workers: Option<NonZero<usize>>,
    /// Whether reports say by what conflicting accesses were ordered.
    pub paths: bool,
    /// Whether reports count what each instruction did.
    pub profile: bool,
}

impl Default for Options {
    /// Everything is looked for.
    fn default() -> Self {
        Options {
            modes: Modes::ALL,
            placement: Placement::Exact,
            tensor_cores: TensorCores::Fast,
            seed: 0,
            step_budget: STEP_BUDGET,
            workers: None,
            paths: false,
            profile: false,
        }
    }
}

/// The entries of one kernel in a module.
#[derive(Debug)]
pub struct Program {
    module: Arc<Module>,
    entries: Vec<String>,
    /// Bytes of the parameters that each entry reads, where they are not all of them.
    param_bytes: Vec<Option<usize>>,
    /// Entries that begin while the kernel before them ends (PDL).
    programmatic: Vec<String>,
    options: Options,
}

impl Program {
    /// The entries of these names, in the order in which jobs number them.
    ///
    /// # Errors
    /// The module has no such entry, or it uses what the executor does not run.
    pub fn new(module: impl Into<Arc<Module>>, entries: Vec<String>, options: Options) -> Result<Program, Error> {
        let module = module.into();
        entries.iter().try_for_each(|name| module.launch(name).map(drop))?;
        Ok(Program { module, entries, param_bytes: Vec::new(), programmatic: Vec::new(), options })
    }

    /// The kernel of a plan, which nvcc made this PTX of.
    ///
    /// # Errors
    /// As [`Program::new`], or the text is not PTX.
    pub fn of(abi: &Abi, ptx: impl Into<String>, options: Options) -> Result<Program, Error> {
        let named = |entries: &mut dyn Iterator<Item = &Entry>| entries.map(|e| e.name.clone()).collect();
        let program = Program::new(Module::parse(ptx)?, named(&mut abi.entries().iter()), options)?;
        let all = abi.params().size();
        let param_bytes = abi.entries().iter().map(|e| Some(e.param_bytes(all))).collect();
        Ok(Program { programmatic: named(&mut abi.entries().iter().filter(|e| e.overlaps)), param_bytes, ..program })
    }

    /// The same with other options.
    #[must_use]
    pub fn with(self, options: Options) -> Program {
        Program { options, ..self }
    }

    /// A launch of one grid, as the options have it.
    fn begin(&self, grid: &EntryLaunch, params: &[u8]) -> Result<Launch<'_>, Error> {
        let Options { modes, placement, tensor_cores, seed, step_budget, workers, paths, profile } = self.options;
        let name = &self.entries[grid.entry];
        let read = self.param_bytes.get(grid.entry).copied().flatten().unwrap_or(params.len());
        let params = params.get(..read).unwrap_or(params);
        let launch = self.module.launch(name)?.programmatic(self.programmatic.contains(name));
        let launch = launch.grid(&grid.grid).block(&grid.block).dynamic_smem(grid.dynamic_smem).params(params);
        let launch = launch.modes(modes).placement(placement).tensor_cores(tensor_cores).seed(seed);
        let launch = launch.step_budget(step_budget).paths(paths).profile(profile);
        Ok(match workers {
            Some(workers) => launch.workers(workers.get()),
            None => launch,
        })
    }

    /// Runs one grid of a job, on the memory of its regions and its workspace.
    fn grid(
        &self,
        grid: &EntryLaunch,
        job: &Job<'_>,
        extents: &[Extent],
        memory: &mut [(Region, Bytes<'_>)],
        workspace: Option<&mut Vec<u8>>,
        is_first: bool,
    ) -> Result<Report, Error> {
        let mut launch = self.begin(grid, job.params)?;
        let modulo = if self.options.placement == Placement::Exact { VECTOR } else { ALLOCATION };
        let last = memory.len();
        for (number, (region, bytes)) in memory.iter_mut().enumerate() {
            for i in &region.tensors {
                let byte = extents[*i].address() - region.address;
                launch = launch.pointer(job.tensors[*i].param_offset, number, byte);
            }
            for map in job.tensor_maps.iter().filter(|map| !map.in_workspace) {
                // A map is of a tensor of the job; its address says of which region.
                let byte = map.spec.address.wrapping_sub(region.address);
                if byte < region.bytes {
                    launch = launch.tensor_map(map.param_offset, number, byte, tensor_map(&map.spec));
                }
            }
            let data = match bytes {
                Bytes::Read(bytes) => Data::Read(bytes),
                Bytes::Write(bytes) => Data::Write(bytes),
                Bytes::Copied(bytes) => {
                    if region.is_output {
                        Data::Write(bytes)
                    } else {
                        Data::Read(bytes)
                    }
                }
            };
            let tensors = tensors(region, job, extents);
            let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
            let mut buffer = Buffer::new(names.join(" and "), data);
            (buffer.align, buffer.offset, buffer.tensors) = (modulo, region.address % modulo, tensors);
            // An output is not written yet, unless an input lies in its place, or an earlier grid has run.
            buffer.written = region.is_input || !is_first;
            launch = launch.buffer(buffer);
        }
        if let (Some(room), Some(bytes)) = (job.workspace, workspace) {
            let mut buffer = Buffer::new(WORKSPACE, Data::Write(bytes));
            (buffer.align, buffer.written) = (ALLOCATION, !is_first);
            launch = launch.buffer(buffer).pointer(room.param_offset, last, 0);
            for map in job.tensor_maps.iter().filter(|map| map.in_workspace) {
                launch = launch.tensor_map(map.param_offset, last, map.spec.address, tensor_map(&map.spec));
            }
        }
        launch.run()
    }
}

impl Program {
    /// The names of the entries, which a job calls by their number.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Runs a job. Inputs are copied in, outputs are copied back to their last byte: gaps, and whatever lies behind the view, too.
    ///
    /// # Errors
    /// The buffers are not the memory of the views, or the job could not be run. What the kernel does wrong is in the report.
    pub fn run(&self, job: &Job<'_>, buffers: &mut [super::Buffer<'_>]) -> Result<Report, super::Error> {
        let extents = job::extents(job, buffers)?;
        // SAFETY: each extent was taken from a buffer, which is borrowed for this call.
        unsafe { self.run_on(job, &extents) }
    }

    /// Checks a job, then runs its grids on the memory of its tensors.
    ///
    /// # Safety
    /// What each extent says of the caller's memory is readable, and writable where it says so, for the time of the call, and
    /// nobody else writes it.
    ///
    /// # Errors
    /// The job could not be run. What the kernel does wrong is in the report.
    pub(super) unsafe fn run_on(&self, job: &Job<'_>, extents: &[Extent]) -> Result<Report, super::Error> {
        job::check(&self.entries, job)?;
        if job.launches.is_empty() {
            return Ok(Report::default());
        }
        let with_bytes = |region: Region| {
            // SAFETY: as for this function.
            let bytes = unsafe { region.bytes(extents) };
            (region, bytes)
        };
        let mut memory: Vec<(Region, Bytes<'_>)> = extent::regions(extents).into_iter().map(with_bytes).collect();
        let mut workspace = job.workspace.map(|w| workspace(w.bytes)).transpose()?;
        let mut all = Report::default();
        for (number, grid) in job.launches.iter().enumerate() {
            let report = self.grid(grid, job, extents, &mut memory, workspace.as_mut(), number == 0)?;
            join(&mut all, report);
            if !all.is_clean() {
                break;
            }
        }
        for (region, bytes) in memory.iter().filter(|(region, _)| region.is_output) {
            if let Bytes::Copied(bytes) = bytes {
                // SAFETY: as for this function.
                unsafe { region.write(extents, bytes) };
            }
        }
        Ok(all)
    }
}

/// Memory that nobody has written, of as many bytes as a launch asks for.
fn workspace(bytes: units::Bytes) -> Result<Vec<u8>, super::Error> {
    let mut room = Vec::new();
    let count = usize::try_from(bytes.0).ok().filter(|count| room.try_reserve_exact(*count).is_ok());
    let count = count.ok_or_else(|| Refused {
        what: "the workspace does not fit into memory".to_owned(),
        found: format!("{} bytes for the workspace", bytes.0),
        required: "as many as this machine has".to_owned(),
        because: "the executor gives a launch the workspace that its kernel asks for".to_owned(),
        help: "launch it on smaller tensors, or look at the bytes that the kernel is declared with".to_owned(),
    });
    room.resize(count.map_err(|refused| super::Error::Job(Box::new(refused)))?, 0xff_u8);
    Ok(room)
}

/// Adds the report of another grid.
fn join(all: &mut Report, more: Report) {
    all.findings.extend(more.findings);
    all.allowed.extend(more.allowed);
    all.printed.push_str(&more.printed);
    all.finished_blocks += more.finished_blocks;
    all.blocks += more.blocks;
    all.instructions += more.instructions;
    all.lane_instructions += more.lane_instructions;
    all.paths.extend(more.paths);
    if let Some(more) = more.profile {
        let all = all.profile.get_or_insert_default();
        all.instructions.extend(more.instructions);
        if all.stages.is_empty() {
            all.stages = more.stages;
        }
    }
}

/// The tensors of a region, as the executor knows tensors.
fn tensors(region: &Region, job: &Job<'_>, extents: &[Extent]) -> Vec<Tensor> {
    let tensor = |i: &usize| {
        let view = &job.tensors[*i].view;
        Tensor {
            name: job.tensors[*i].name.to_owned(),
            offset: extents[*i].address() - region.address,
            item: view.dtype.bytes().0,
            // Extents of a view are not negative.
            shape: view.layout.shape().iter().map(|n| n.unsigned_abs()).collect(),
            stride: view.layout.stride().to_vec(),
        }
    };
    region.tensors.iter().map(tensor).collect()
}

/// A tensor map, as the executor knows it.
fn tensor_map(spec: &TensorMapSpec) -> TensorMap {
    let ty = match spec.dtype {
        MapType::Tf32 => Ty::Tf32,
        MapType::Of(DType::F64) => Ty::F64,
        MapType::Of(DType::F32) => Ty::F32,
        MapType::Of(DType::F16) => Ty::F16,
        MapType::Of(DType::Bf16) => Ty::Bf16,
        MapType::Of(DType::I32) => Ty::S32,
        MapType::Of(DType::I16) => Ty::S16,
        MapType::Of(DType::E4m3 | DType::E5m2 | DType::I8 | DType::U8 | DType::Bool) => Ty::U8,
    };
    let swizzle = match spec.swizzle {
        tiling::MapSwizzle::None => MapSwizzle::None,
        tiling::MapSwizzle::B32 => MapSwizzle::B32,
        tiling::MapSwizzle::B64 => MapSwizzle::B64,
        tiling::MapSwizzle::B128 => MapSwizzle::B128,
    };
    // Of more modes than a map has, none: the launch refuses it.
    let rank = spec.rank as usize;
    let (dims, extents) = (spec.dims.get(..rank).unwrap_or_default(), spec.extents.get(..rank).unwrap_or_default());
    let strides = spec.strides.get(..rank.saturating_sub(1)).unwrap_or_default();
    TensorMap::new(ty, dims, strides, extents).swizzle(swizzle)
}

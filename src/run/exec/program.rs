//! The entries of a kernel of this crate in their module, launched by jobs.

use core::num::NonZero;
use std::sync::Arc;

use super::{Buffer, Data, Error, Modes, Module, Placement, STEP_BUDGET, TensorCores};
use crate::exec::extent::{self, Bytes, Extent, Region};
use crate::exec::job::{self, Job, VECTOR};
use crate::exec::{self, Finding, Report, Target, target};
use crate::plan::{Abi, Entry, EntryLaunch};

/// What a workspace is called.
const WORKSPACE: &str = "workspace";
/// What a driver aligns allocations to, and a workspace is promised.
const ALLOCATION: u64 = 256;

/// How kernels are run, and what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is looked for.
    pub modes: Modes,
    /// Where memory is placed: exactly, so that what relies on more than binding asks for is found.
    pub placement: Placement,
    /// How sums of `mma` are made.
    pub tensor_cores: TensorCores,
    /// Decides the order of warps and blocks.
    pub seed: u64,
    /// Warp instructions that each grid may take [10^9, [`STEP_BUDGET`]].
    pub step_budget: u64,
    /// Threads of the host that run blocks; as many as there are cores, where it is `None`.
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
    /// Which of them begin while the kernel before them ends.
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
        entries.iter().try_for_each(|name| module.code(name).map(drop))?;
        Ok(Program { module, entries, programmatic: Vec::new(), options })
    }

    /// The kernel of a plan, which nvcc made this PTX of.
    ///
    /// # Errors
    /// As [`Program::new`], or the text is not PTX.
    pub fn of(abi: &Abi, ptx: impl Into<String>, options: Options) -> Result<Program, Error> {
        let named = |entries: &mut dyn Iterator<Item = &Entry>| entries.map(|e| e.name.clone()).collect();
        let program = Program::new(Module::parse(ptx)?, named(&mut abi.entries().iter()), options)?;
        Ok(Program { programmatic: named(&mut abi.entries().iter().filter(|e| e.overlaps)), ..program })
    }

    /// The same with other options.
    #[must_use]
    pub fn with(self, options: Options) -> Program {
        Program { options, ..self }
    }

    /// One grid of a job, on the memory of its regions and its workspace.
    fn grid(
        &self,
        grid: &EntryLaunch,
        job: &Job<'_>,
        extents: &[Extent],
        memory: &mut [(Region, Bytes<'_>)],
        workspace: Option<&mut Vec<u8>>,
        is_first: bool,
    ) -> Result<Report, Error> {
        let Options { modes, placement, tensor_cores, seed, step_budget, workers, paths, profile } = self.options;
        let mut launch = self.module.launch(&self.entries[grid.entry])?;
        launch = launch.grid(&grid.grid).block(&grid.block).dynamic_smem(grid.dynamic_smem).params(job.params);
        launch = launch.programmatic(self.programmatic.contains(&self.entries[grid.entry]));
        launch = launch.modes(modes).placement(placement).tensor_cores(tensor_cores).seed(seed);
        launch = launch.step_budget(step_budget).paths(paths).profile(profile);
        if let Some(workers) = workers {
            launch = launch.workers(workers.get());
        }
        let modulo = if placement == Placement::Exact { VECTOR } else { ALLOCATION };
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
                    launch = launch.tensor_map(map.param_offset, number, byte, map.spec);
                }
            }
            let elements = modes.bounds.then(|| elements(region, job, extents)).flatten();
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
            let mut buffer = Buffer::new(number.to_string(), data);
            (buffer.align, buffer.offset, buffer.elements) = (modulo, region.address % modulo, elements);
            // An output is not written yet, unless an input lies in its place, or an earlier grid has run.
            buffer.written = region.is_input || !is_first;
            launch = launch.buffer(buffer);
        }
        if let (Some(room), Some(bytes)) = (job.workspace, workspace) {
            let mut buffer = Buffer::new(WORKSPACE, Data::Write(bytes));
            (buffer.align, buffer.written) = (ALLOCATION, !is_first);
            launch = launch.buffer(buffer).pointer(room.param_offset, last, 0);
            for map in job.tensor_maps.iter().filter(|map| map.in_workspace) {
                launch = launch.tensor_map(map.param_offset, last, map.spec.address, map.spec);
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
    pub fn run(&self, job: &Job<'_>, buffers: &mut [exec::Buffer<'_>]) -> Result<Report, exec::Error> {
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
    pub(in crate::run::exec) unsafe fn run_on(&self, job: &Job<'_>, extents: &[Extent]) -> Result<Report, exec::Error> {
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
        let mut workspace = job.workspace.map(|w| vec![0xff_u8; w.bytes.0 as usize]);
        let mut all = Report::default();
        for (number, grid) in job.launches.iter().enumerate() {
            let report = self.grid(grid, job, extents, &mut memory, workspace.as_mut(), number == 0)?;
            join(&mut all, report);
            if !all.is_clean() {
                break;
            }
        }
        for finding in &mut all.findings {
            name(finding, job, extents, &memory);
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

/// What a further grid did.
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

/// Brings bytes of regions back to tensors.
fn name(finding: &mut Finding, job: &Job<'_>, extents: &[Extent], memory: &[(Region, Bytes<'_>)]) {
    let origin = finding.origin.as_mut().map(|origin| &mut origin.target);
    for target in finding.target.as_mut().into_iter().chain(origin) {
        name_target(target, job, extents, memory);
    }
}

fn name_target(of: &mut Target, job: &Job<'_>, extents: &[Extent], memory: &[(Region, Bytes<'_>)]) {
    let Target::Buffer { name, offset, size } = of else { return };
    if name == WORKSPACE {
        *of = Target::Workspace { offset: *offset, size: *size };
        return;
    }
    let region = name.parse().ok().and_then(|number: usize| memory.get(number));
    let Some((region, _)) = region else { return };
    let address = region.address.wrapping_add_signed(*offset);
    let starts = region.tensors.iter().map(|i| (*i, extents[*i].address()));
    if let Some(tensor) = target::tensor(job.tensors, address, starts) {
        *of = tensor;
    }
}

/// Bytes of a region that belong to elements, one bit each; `None` where there are too many to list.
fn elements(region: &Region, job: &Job<'_>, extents: &[Extent]) -> Option<Vec<u64>> {
    let mut bits = vec![0_u64; (region.bytes / 64 + 1) as usize];
    for i in &region.tensors {
        let view = &job.tensors[*i].view;
        let (layout, size) = (view.layout, view.dtype.bytes().0);
        let start = extents[*i].address() - region.address;
        let count = layout.size().filter(|n| *n <= 1 << 26)?;
        let mut coordinate = vec![0_i64; layout.rank()];
        for _ in 0..count {
            let at: i64 = coordinate.iter().zip(layout.stride()).map(|(c, d)| c * d).sum();
            let first = start + at as u64 * size;
            let (word, bit, all) = ((first / 64) as usize, first % 64, (1 << size) - 1);
            *bits.get_mut(word)? |= all << bit;
            if bit + size > 64 {
                *bits.get_mut(word + 1)? |= all >> (64 - bit);
            }
            for (c, n) in coordinate.iter_mut().zip(layout.shape()) {
                *c += 1;
                if *c < *n {
                    break;
                }
                *c = 0;
            }
        }
    }
    Some(bits)
}

//! What came of one run, in the caller's terms.

use serde::Deserialize;

use super::Program;
use super::arena::Layout;
use super::program::SharedVariable;
use super::symbols::Symbols;
use crate::exec::extent::Extent;
use crate::exec::finding::{Finding, FindingKind, Other, Site, SourceLine, Who};
use crate::exec::job::Job;
use crate::exec::{Report, Target, target};
use crate::plan::EntryLaunch;

/// The answer of the process, as protocol.h writes it.
#[derive(Debug, Deserialize)]
pub(super) struct Raw {
    finished_blocks: u64,
    found: u64,
    findings: Vec<RawFinding>,
}

#[derive(Debug, Deserialize)]
struct RawFinding {
    kind: u32,
    space: u32,
    flags: u32,
    offset: i64,
    launch: usize,
    block: Option<u64>,
    thread: Option<u64>,
    other_block: Option<u64>,
    other_thread: Option<u64>,
    other_pc: u64,
    size: u64,
    count: u64,
    signal: u64,
    line: u64,
    file: String,
    text: String,
    pcs: Vec<u64>,
}

/// The numbers of `Flags` and `Space` in state.h.
const IS_WRITE: u32 = 1;
const OTHER_IS_WRITE: u32 = 4;
const HAS_OTHER: u32 = 16;
const ARENA: u32 = 1;
const SHARED: u32 = 2;
const DYNAMIC: u32 = 3;

/// By the numbers of `Kind` in state.h, from 1.
const KINDS: [FindingKind; 11] = [
    FindingKind::OutOfBounds,
    FindingKind::WriteToInput,
    FindingKind::Race,
    FindingKind::Uninitialized,
    FindingKind::Deadlock,
    FindingKind::Crash,
    FindingKind::Timeout,
    FindingKind::Undefined,
    FindingKind::Trap,
    FindingKind::AddressError,
    FindingKind::Misaligned,
];

/// Brings addresses back to tensors, variables and lines.
pub(super) fn resolve(
    program: &Program,
    job: &Job<'_>,
    layout: &Layout,
    extents: &[Extent],
    raw: Raw,
    log: String,
) -> Report {
    let pcs = raw.findings.iter().flat_map(|f| f.pcs.iter().copied().chain([f.other_pc]));
    let symbols = Symbols::of(program, pcs);
    let resolver = Resolver { program, job, layout, extents, symbols };
    let findings: Vec<Finding> = raw.findings.iter().filter_map(|f| resolver.finding(f)).collect();
    let dropped = raw.found.saturating_sub(findings.len() as u64);
    Report { finished_blocks: raw.finished_blocks, findings, dropped, printed: log, ..Report::default() }
}

struct Resolver<'a> {
    program: &'a Program,
    job: &'a Job<'a>,
    layout: &'a Layout,
    extents: &'a [Extent],
    symbols: Symbols,
}

impl Resolver<'_> {
    fn finding(&self, raw: &RawFinding) -> Option<Finding> {
        let launch = self.job.launches.get(raw.launch)?;
        let who = |block, thread| who(launch, block, thread);
        let has_other = (raw.flags & HAS_OTHER != 0).then_some(());
        let other = has_other.and_then(|()| who(raw.other_block, raw.other_thread)).map(|who| Other {
            who,
            write: raw.flags & OTHER_IS_WRITE != 0,
            in_flight: false,
            site: self.symbols.line(&[raw.other_pc]).map(site),
        });
        Some(Finding {
            entry: self.program.entries.get(launch.entry).filter(|_| self.program.entries.len() > 1).cloned(),
            who: who(raw.block, raw.thread),
            target: self.target(raw, launch),
            write: raw.flags & IS_WRITE != 0,
            bytes: raw.size,
            site: self.line(raw).map(site),
            other: other.map(Box::new),
            count: raw.count,
            signal: u32::try_from(raw.signal).ok().filter(|&s| s != 0),
            detail: raw.text.trim_end().to_owned(),
            ..Finding::new(*KINDS.get((raw.kind as usize).checked_sub(1)?)?)
        })
    }

    fn line(&self, raw: &RawFinding) -> Option<SourceLine> {
        if raw.file.is_empty() {
            return self.symbols.line(&raw.pcs);
        }
        let file = raw.file.rsplit('/').next().unwrap_or(&raw.file).to_owned();
        Some(SourceLine { file, line: u32::try_from(raw.line).ok()? })
    }

    fn target(&self, raw: &RawFinding, launch: &EntryLaunch) -> Option<Target> {
        match raw.space {
            ARENA => {
                let offset = u64::try_from(raw.offset).ok()?;
                self.workspace(offset).or_else(|| self.tensor(offset))
            }
            SHARED => Some(self.shared(raw.offset)),
            DYNAMIC => Some(Target::DynamicShared { offset: raw.offset, size: launch.dynamic_smem.into() }),
            _ => (raw.offset != 0).then_some(Target::Address(raw.offset.cast_unsigned())),
        }
    }

    fn workspace(&self, offset: u64) -> Option<Target> {
        let region = self.layout.workspace_at(offset)?;
        Some(Target::Workspace { offset: offset.cast_signed() - region.offset.cast_signed(), size: region.own.bytes })
    }

    fn tensor(&self, offset: u64) -> Option<Target> {
        let start = |i: usize| Some(self.layout.tensor(i, self.extents)?.1);
        target::tensor(self.job.tensors, offset, (0..self.job.tensors.len()).filter_map(|i| Some((i, start(i)?))))
    }

    fn shared(&self, offset: i64) -> Target {
        let at = offset.cast_unsigned();
        let after = self.program.shared.partition_point(|v| v.offset <= at);
        match after.checked_sub(1).or(if self.program.shared.is_empty() { None } else { Some(0) }) {
            Some(i) => {
                let SharedVariable { name, offset: start, size } = &self.program.shared[i];
                Target::Shared { name: name.clone(), offset: offset - start.cast_signed(), size: *size }
            }
            None => Target::Address(at),
        }
    }
}

fn site(line: SourceLine) -> Site {
    Site { ptx_line: 0, opcode: String::new(), source: vec![line] }
}

fn who(launch: &EntryLaunch, block: Option<u64>, thread: Option<u64>) -> Option<Who> {
    let thread = thread.map(|t| split(t, launch.block));
    Some(Who { block: split(block?, launch.grid), thread, warp: None, lanes: 0 })
}

/// A linear number as `(x,y,z)`, x the fastest.
fn split(number: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
    [number % x, number / x % y, number / x / y].map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

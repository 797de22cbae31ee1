//! What came of one run, in the caller's terms.

use core::fmt;

use serde::Deserialize;

use super::finding::{Actor, Earlier, Finding, FindingKind, Line, Target};
use super::job::{Extent, Launch, Layout};
use super::program::SharedVariable;
use super::symbols::Symbols;
use super::{Mode, Program};
use crate::plan::EntryLaunch;
use crate::view::ViewLayout;

/// What a run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The mode that the kernel was compiled for.
    pub mode: Mode,
    /// Blocks of all entries that ran to their end.
    pub finished_blocks: u64,
    /// What the kernel did wrong, in the order in which it was seen; one for each place in the text.
    pub findings: Vec<Finding>,
    /// Findings beyond those that are kept.
    pub dropped: u64,
    /// What the kernel printed, and the sanitizers' own words.
    pub log: String,
}

impl Report {
    /// Of a launch without a grid.
    pub(super) fn of_nothing(mode: Mode) -> Report {
        Report { mode, finished_blocks: 0, findings: Vec::new(), dropped: 0, log: String::new() }
    }

    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.dropped == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return write!(f, "mode {}: {} blocks, no findings", self.mode, self.finished_blocks);
        }
        for (i, finding) in self.findings.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{finding}")?;
        }
        if self.dropped > 0 {
            write!(f, "\n... and {} more findings", self.dropped)?;
        }
        Ok(())
    }
}

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

/// Brings addresses back to tensors, variables and lines.
pub(super) fn resolve(
    program: &Program,
    launch: &Launch<'_>,
    layout: &Layout,
    extents: &[Extent],
    raw: Raw,
    log: String,
) -> Report {
    let pcs = raw.findings.iter().flat_map(|f| f.pcs.iter().copied().chain([f.other_pc]));
    let symbols = Symbols::of(program, pcs);
    let resolver = Resolver { program, launch, layout, extents, symbols };
    let findings: Vec<Finding> = raw.findings.iter().filter_map(|f| resolver.finding(f)).collect();
    let dropped = raw.found.saturating_sub(findings.len() as u64);
    Report { mode: program.mode, finished_blocks: raw.finished_blocks, findings, dropped, log }
}

struct Resolver<'a> {
    program: &'a Program,
    launch: &'a Launch<'a>,
    layout: &'a Layout,
    extents: &'a [Extent],
    symbols: Symbols,
}

impl Resolver<'_> {
    fn finding(&self, raw: &RawFinding) -> Option<Finding> {
        let earlier = (raw.flags & HAS_OTHER != 0).then_some(());
        let launch = self.launch.launches.get(raw.launch)?;
        let actor = |block, thread| actor(launch, block, thread);
        let earlier = earlier.and_then(|()| actor(raw.other_block, raw.other_thread)).map(|actor| Earlier {
            actor,
            write: raw.flags & OTHER_IS_WRITE != 0,
            line: self.symbols.line(&[raw.other_pc]),
        });
        Some(Finding {
            kind: FindingKind::from_number(raw.kind)?,
            entry: self.program.entries.get(launch.entry).filter(|_| self.program.entries.len() > 1).cloned(),
            actor: actor(raw.block, raw.thread),
            target: self.target(raw, launch),
            write: raw.flags & IS_WRITE != 0,
            bytes: raw.size,
            line: self.line(raw),
            earlier,
            count: raw.count,
            signal: u32::try_from(raw.signal).ok().filter(|&s| s != 0),
            detail: raw.text.trim_end().to_owned(),
        })
    }

    fn line(&self, raw: &RawFinding) -> Option<Line> {
        if raw.file.is_empty() {
            return self.symbols.line(&raw.pcs);
        }
        let file = raw.file.rsplit('/').next().unwrap_or(&raw.file).to_owned();
        Some(Line { file, line: u32::try_from(raw.line).ok()? })
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
        Some(Target::Workspace { offset: offset.cast_signed() - region.offset.cast_signed(), size: region.bytes })
    }

    /// The tensor that an offset in the arena belongs to: one that has it as an element, else the nearest.
    fn tensor(&self, offset: u64) -> Option<Target> {
        let target = |i: usize| {
            let view = &self.launch.tensors[i].view;
            let (_, start) = self.layout.tensor(i, self.extents)?;
            let element =
                (i64::try_from(offset).ok()? - i64::try_from(start).ok()?).div_euclid(view.dtype.bytes().0 as i64);
            let (distance, coordinate) = locate(&view.layout, element);
            Some((distance, i, coordinate))
        };
        let (_, i, coordinate) = (0..self.launch.tensors.len()).filter_map(target).min()?;
        let tensor = &self.launch.tensors[i];
        Some(Target::Tensor { name: tensor.name, coordinate, layout: tensor.view.layout })
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

fn actor(launch: &EntryLaunch, block: Option<u64>, thread: Option<u64>) -> Option<Actor> {
    Some(Actor { block: split(block?, launch.grid), thread: thread.map(|t| split(t, launch.block)) })
}

/// The coordinate of the element at an offset, and how far outside the shape it lies along each mode, the largest stride
/// first: all zeros for an element of the tensor.
fn locate(layout: &ViewLayout, offset: i64) -> (Vec<i64>, Vec<i64>) {
    let mut coordinate = vec![0; layout.rank()];
    let mut distance = Vec::new();
    let mut rest = offset;
    // Modes of one element too: past the end of a single row lies the next row.
    let mut modes: Vec<usize> = (0..layout.rank()).filter(|i| layout.stride()[*i] > 0).collect();
    modes.sort_by_key(|i| (core::cmp::Reverse(layout.stride()[*i]), *i));
    for i in modes {
        let (extent, stride) = (layout.shape()[i], layout.stride()[i]);
        let c = rest.div_euclid(stride);
        rest -= c * stride;
        coordinate[i] = c;
        distance.push((c - (extent - 1)).max(-c).max(0));
    }
    // Where every mode is left out, there is one element; with a larger least stride, what lies between.
    distance.push(rest.abs());
    (distance, coordinate)
}

/// A linear number as `(x,y,z)`, x the fastest.
fn split(number: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
    [number % x, number / x % y, number / x / y].map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

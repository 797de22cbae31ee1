//! Findings by cause: the rule and the lines. All occurrences of one cause are one finding, with counts.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::OnceLock;

use super::report::{site, who};
use crate::allow::Allow;
use crate::code::{Code, Op};
use crate::machine::Grid;
use crate::machine::threads::warp::Warp;
use crate::{Finding, FindingKind, Rule, SourceLine, Who};

/// Causes that a block keeps, and causes that it keeps if the launch allows some.
const MOST: usize = 256;
const MOST_WITH_ALLOWED: usize = 4096;
/// Occurrences in a block before it is stopped.
const ENOUGH: u64 = 1 << 18;
/// Places of a cause that are distinguished.
const MOST_PLACES: usize = 1024;
/// Places of a cause that are named after the first.
const NAMED: usize = 16;

/// The place of an instruction, for telling causes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    /// A file and a line of it.
    Source(u32, u32),
    /// An instruction, where there is no source.
    Ptx(u32),
    /// Instructions without synchronisation between them, by their first, if there is no source.
    Stretch(u32),
    /// There is no other access, or it does not matter.
    None,
}

/// The cause of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cause {
    rule: Rule,
    at: [Line; 2],
}

/// The places of an entry's instructions.
#[derive(Debug, Default)]
pub(crate) struct Lines(OnceLock<Vec<(Line, Line)>>);

impl Lines {
    /// The line of each instruction, and its stretch.
    fn of(&self, code: &Code) -> &[(Line, Line)] {
        self.0.get_or_init(|| {
            let targets = targets(code);
            let mut first = 0;
            let of = |pc: usize| {
                if targets.contains(&(pc as u32)) || pc > 0 && synchronises(code.insts[pc - 1].op) {
                    first = pc as u32;
                }
                match user_line(code, pc) {
                    Some((file, line)) => (Line::Source(file, line), Line::Source(file, line)),
                    None => (Line::Ptx(pc as u32), Line::Stretch(first)),
                }
            };
            (0..code.insts.len()).map(of).collect()
        })
    }
}

/// Instructions that a branch may go to.
fn targets(code: &Code) -> BTreeSet<u32> {
    let branches = code.insts.iter().filter(|inst| inst.op == Op::Bra).map(|inst| inst.x);
    branches.chain(code.tables.iter().flatten().copied()).collect()
}

/// Whether an instruction may order accesses before and after it.
fn synchronises(op: Op) -> bool {
    matches!(
        op,
        Op::Bar
            | Op::BarArrive
            | Op::BarRed
            | Op::WarpSync
            | Op::Fence
            | Op::ProxyFence
            | Op::Map
            | Op::InitFence
            | Op::CpWait
            | Op::GridWait
            | Op::Mbarrier
            | Op::WgmmaFence
            | Op::WgmmaWait
            | Op::ClusterArrive
            | Op::ClusterWait
            | Op::Atom
    )
}

/// The innermost line of an instruction that is in no header of the toolkit, else the outermost.
fn user_line(code: &Code, pc: usize) -> Option<(u32, u32)> {
    let mut at = code.places[pc].1;
    let mut last = None;
    while let Some(loc) = at.and_then(|i| code.locs.get(i as usize)) {
        if loc.line > 0 {
            last = Some((loc.file, loc.line));
            let name = code.files.iter().find(|(n, _)| *n == loc.file);
            if name.is_some_and(|(_, name)| !SourceLine::is_library_file(name)) {
                return last;
            }
        }
        at = loc.inlined_at;
    }
    last
}

/// A finding with its occurrences.
#[derive(Debug)]
struct Occurrences {
    finding: Finding,
    /// Its instructions, each with the instruction of the other access.
    places: BTreeSet<[u32; 2]>,
    /// For uninitialised values, the instructions that read them from memory.
    origins: BTreeSet<u32>,
    /// Lanes, by block and warp.
    threads: BTreeMap<([u32; 3], u32), u32>,
}

/// The findings of a block, or of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    all: BTreeMap<Cause, Occurrences>,
    /// Number of occurrences whose cause was not kept.
    dropped: u64,
    /// Number of occurrences.
    met: u64,
}

/// A broken rule, with its place and its threads.
pub(crate) struct Broken {
    pub(crate) rule: Rule,
    pub(crate) pc: u32,
    /// The instruction of the other access.
    pub(crate) other: Option<u32>,
    pub(crate) block: [u32; 3],
    pub(crate) warp: u32,
    pub(crate) lanes: u32,
}

impl Broken {
    pub(crate) fn by(w: &Warp, rule: Rule, pc: u32, lanes: u32) -> Broken {
        Broken { rule, pc, other: None, block: w.ctaid, warp: w.index, lanes }
    }

    pub(crate) fn by_whom(who: &Who, rule: Rule, pc: u32) -> Broken {
        Broken { rule, pc, other: None, block: who.block, warp: who.warp.unwrap_or(0), lanes: who.lanes }
    }

    /// The lanes that break it.
    pub(crate) fn who(&self, g: &Grid<'_>) -> Who {
        who(g, self.block, self.warp, self.lanes)
    }

    fn cause(&self, g: &Grid<'_>) -> Cause {
        let lines = g.lines.of(g.code);
        let [at, other] = [Some(self.pc), self.other].map(|pc| pc.and_then(|pc| lines.get(pc as usize)));
        let at = match (at, other, self.rule) {
            (None, ..) => [Line::None; 2],
            // The cause is the read that brought the value, or the product without a wait.
            (Some(_), Some((other, _)), Rule::Initialised | Rule::ProductRegisters) => [*other, Line::None],
            // One fence serves all bytes that a copy or product reads.
            (Some((_, at)), Some(_), Rule::ProxyFence | Rule::WriteBeforeAsync) => [*at, Line::None],
            // The order of the two depends on the seed.
            (Some((_, at)), Some((_, other)), _) => [*at.min(other), *at.max(other)],
            (Some((at, _)), None, _) => [*at, Line::None],
        };
        Cause { rule: self.rule, at }
    }
}

impl Findings {
    /// Keeps a finding, or counts it where its cause has one.
    pub(crate) fn keep(&mut self, g: &Grid<'_>, broken: &Broken, make: impl FnOnce() -> Finding) {
        // Allowed findings do not stop the block.
        self.met += u64::from(g.allow.is_empty());
        let full = self.all.len() >= if g.allow.is_empty() { MOST } else { MOST_WITH_ALLOWED };
        let known = match self.all.entry(broken.cause(g)) {
            Entry::Occupied(known) => {
                let known = known.into_mut();
                known.finding.count += 1;
                if let Some(who) = &mut known.finding.who
                    && (who.warp, who.block) == (Some(broken.warp), broken.block)
                {
                    who.lanes |= broken.lanes;
                }
                known
            }
            Entry::Vacant(_) if full => return self.dropped += 1,
            Entry::Vacant(room) => room.insert(Occurrences {
                finding: make(),
                places: BTreeSet::new(),
                origins: BTreeSet::new(),
                threads: BTreeMap::new(),
            }),
        };
        *known.threads.entry((broken.block, broken.warp)).or_default() |= broken.lanes;
        if known.places.len() < MOST_PLACES {
            let is_origin = broken.rule == Rule::Initialised;
            known.origins.extend(broken.other.filter(|_| is_origin));
            let other = broken.other.filter(|_| !is_origin).unwrap_or(u32::MAX);
            known.places.insert([broken.pc.min(other), broken.pc.max(other)]);
        }
    }

    /// Whether there are so many occurrences that the block should stop.
    pub(crate) fn is_enough(&self) -> bool {
        self.met > ENOUGH
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Joins the findings of blocks that come after these.
    pub(crate) fn join(&mut self, mut more: Findings) {
        more.close();
        self.dropped += more.dropped;
        for (cause, more) in more.all {
            match self.all.entry(cause) {
                Entry::Vacant(room) => drop(room.insert(more)),
                Entry::Occupied(known) => known.into_mut().join(more),
            }
        }
    }

    /// Closes the counts: these blocks have ended.
    fn close(&mut self) {
        for Occurrences { finding, threads, .. } in self.all.values_mut() {
            let blocks: BTreeSet<[u32; 3]> = threads.keys().map(|(block, _)| *block).collect();
            finding.threads += threads.values().map(|lanes| u64::from(lanes.count_ones())).sum::<u64>();
            finding.blocks += blocks.len() as u64;
            threads.clear();
        }
    }

    /// Takes out the causes that a launch allows at each of their places, so that they do not hide other causes.
    pub(crate) fn take_allowed(&mut self, code: &Code, rules: &[Allow]) -> Findings {
        let mut taken = Findings::default();
        if rules.is_empty() {
            return taken;
        }
        self.close();
        for (cause, known) in core::mem::take(&mut self.all) {
            let is_allowed = known.is_allowed(code, rules);
            let of = if is_allowed { &mut taken } else { &mut *self };
            of.all.insert(cause, known);
        }
        taken
    }

    /// The findings of a launch, and the number of occurrences without a finding.
    pub(crate) fn into_findings(mut self, code: &Code) -> (Vec<Finding>, u64) {
        self.close();
        self.one_direction(code);
        self.without_echoes(code);
        let line = |pc: u32| code.places.get(pc as usize).map_or(0, |(at, _)| at.line);
        let finished = self.all.into_values().map(|Occurrences { mut finding, places, .. }| {
            let first = [finding.site.as_ref(), finding.other.as_ref().and_then(|o| o.site.as_ref())];
            let mut first = first.map(|site| site.map_or(0, |site| site.ptx_line));
            if first[1] > 0 {
                first.sort_unstable();
            }
            finding.places = places.len() as u64;
            let lines: BTreeSet<[u32; 2]> = places.into_iter().map(|pair| pair.map(line)).collect();
            finding.further = lines.into_iter().filter(|pair| *pair != first).take(NAMED).collect();
            finding
        });
        (finished.collect(), self.dropped)
    }

    /// Joins the two directions of a race between two lines. An access without a wait comes before or after the copy by chance, and one
    /// wait mends both.
    fn one_direction(&mut self, code: &Code) {
        let waits = [Rule::CopyCommit, Rule::CopyWait, Rule::CopyArrival, Rule::BulkWait, Rule::ProductWait];
        let by_chance = |rule: Rule| {
            use Rule::{BlockOrder, ClusterOrder, OneWriter, UseBeforeOverwrite, WarpOrder};
            matches!(rule, WarpOrder | BlockOrder | ClusterOrder | OneWriter | UseBeforeOverwrite)
        };
        for cause in self.all.keys().copied().collect::<Vec<Cause>>() {
            let later = waits.iter().position(|rule| *rule == cause.rule).unwrap_or(waits.len());
            let before = if by_chance(cause.rule) { &waits[..] } else { &waits[..later % waits.len()] };
            let twin =
                before.iter().map(|rule| Cause { rule: *rule, ..cause }).find(|twin| self.all.contains_key(twin));
            if let Some(twin) = twin {
                self.absorb(&twin, &cause);
            }
        }
        self.before_async(code);
    }

    /// Joins findings of one unordered asynchronous read. Such a read lacks a barrier and a fence, and may come before or after the
    /// write. The order in the text decides which of the two is meant to be first.
    fn before_async(&mut self, code: &Code) {
        let all: Vec<Cause> = self.all.keys().filter(|cause| cause.rule == Rule::WriteBeforeAsync).copied().collect();
        for cause in all {
            let Some(known) = self.all.get(&cause) else { continue };
            let same = |(other, of): &(&Cause, &Occurrences)| match other.rule {
                Rule::ProxyFence => other.at == cause.at,
                Rule::ProductWait | Rule::BulkWait => !of.places.is_disjoint(&known.places),
                _ => false,
            };
            let others: Vec<Cause> = self.all.iter().filter(same).map(|(other, _)| *other).collect();
            let is_async =
                |pc: u32| matches!(code.insts.get(pc as usize).map(|inst| inst.op), Some(Op::Wgmma | Op::Bulk));
            let reads_first = known.places.first().is_some_and(|[first, _]| is_async(*first));
            let waits = others.iter().find(|other| reads_first && other.rule != Rule::ProxyFence);
            let into = waits.copied().unwrap_or(cause);
            for other in others.iter().chain([&cause]).filter(|other| **other != into) {
                self.absorb(&into, other);
            }
        }
    }

    /// Joins two causes.
    fn absorb(&mut self, cause: &Cause, other: &Cause) {
        if let Some(more) = self.all.remove(other)
            && let Some(known) = self.all.get_mut(cause)
        {
            known.join(more);
        }
    }

    /// The instructions of causes of some kind.
    fn instructions(&self, of: impl Fn(&Cause) -> bool) -> BTreeSet<u32> {
        let of = self.all.iter().filter(|(cause, _)| of(cause));
        of.flat_map(|(_, known)| known.places.iter().flatten().copied()).collect()
    }

    /// Drops findings that follow from another finding and are mended with it.
    fn without_echoes(&mut self, code: &Code) {
        let racing = self.instructions(|cause| cause.rule.kind() == FindingKind::Race);
        let products = self.instructions(|cause| cause.rule == Rule::ProductRegisters);
        let uninitialised = self.all.keys().any(|cause| cause.rule == Rule::MbarrierInit);
        // A wait for a refused copy or arrival never ends.
        let not_made = self.instructions(|cause| {
            use FindingKind::{BarrierMisuse, Misaligned, OutOfBounds, TensorMap};
            matches!(cause.rule.kind(), BarrierMisuse | Misaligned | OutOfBounds | TensorMap)
        });
        let is_told = |pc: &u32| {
            let op = code.insts.get(*pc as usize).map(|inst| inst.op);
            matches!(op, Some(Op::Bulk | Op::StAsync | Op::Mbarrier | Op::Map))
        };
        let in_vain = not_made.iter().any(is_told);
        let follows = |cause: &Cause, known: &Occurrences| match cause.rule {
            Rule::PeerEnd | Rule::CopyEnd => known.places.iter().any(|[pc, _]| racing.contains(pc)),
            // A wait on an uninitialised `mbarrier` does not wait.
            Rule::CopyArrival | Rule::UseBeforeOverwrite => uninitialised,
            Rule::ProductEnd => known.places.iter().any(|[pc, _]| racing.contains(pc) || products.contains(pc)),
            Rule::Arrival | Rule::End => in_vain,
            // The other thread of a race may not have written the value yet.
            Rule::Initialised => !known.origins.is_empty() && known.origins.is_subset(&racing),
            _ => false,
        };
        self.all.retain(|cause, known| !follows(cause, known));
    }
}

impl Occurrences {
    /// Whether rules allow it at each of its places.
    fn is_allowed(&self, code: &Code, rules: &[Allow]) -> bool {
        let rules: Vec<&Allow> = rules.iter().filter(|rule| rule.allows_kind(&self.finding)).collect();
        let site_of = |pc: &u32| code.places.get(*pc as usize).map(|_| site(code, *pc));
        self.places.iter().all(|pair| {
            let sites: Vec<_> = pair.iter().filter_map(site_of).collect();
            rules.iter().any(|rule| rule.allows_place(&sites))
        })
    }

    fn join(&mut self, more: Occurrences) {
        self.finding.count += more.finding.count;
        self.finding.threads += more.finding.threads;
        self.finding.blocks += more.finding.blocks;
        self.origins.extend(more.origins);
        let room = MOST_PLACES.saturating_sub(self.places.len());
        self.places.extend(more.places.into_iter().take(room));
    }
}

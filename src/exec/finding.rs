//! What a kernel did wrong: who, to what, at which line of the PTX and of its source.

use core::fmt;

use super::target::Target;
use crate::diagnostic::field;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// An access outside of the elements of a tensor, and of every other allocation and variable.
    OutOfBounds,
    /// An address that is no multiple of what the access moves.
    Misaligned,
    /// A write to memory that the kernel was given to read.
    WriteToInput,
    /// What nobody wrote is read, or decides an address, a branch, or a result.
    Uninitialized,
    /// Two accesses of one place that nothing orders, at least one of them a write.
    Race,
    /// A barrier that not all of a warp's threads reach together, or with a count that cannot be.
    BarrierMisuse,
    /// Asynchronous work is not set up, waited for or ended as it has to be.
    Asynchrony,
    /// A tensor map does not fit its copy.
    TensorMap,
    /// Threads wait for what never comes.
    Deadlock,
    /// The launch did not end within its limit of time or steps.
    Timeout,
    /// The kernel executed `trap`.
    Trap,
    /// An `assert` of the kernel failed.
    Assert,
    /// A signal, or the end of the process that ran the kernel.
    Crash,
    /// Undefined behaviour of C++ or of a CUDA intrinsic.
    Undefined,
    /// An access outside an object of the kernel's own: an array in registers, say.
    AddressError,
}

impl FindingKind {
    /// The stable word, as in `error[exec-race]`.
    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "exec-out-of-bounds",
            FindingKind::Misaligned => "exec-misaligned",
            FindingKind::WriteToInput => "exec-write-to-input",
            FindingKind::Uninitialized => "exec-uninitialized",
            FindingKind::Race => "exec-race",
            FindingKind::BarrierMisuse => "exec-barrier",
            FindingKind::Asynchrony => "exec-asynchrony",
            FindingKind::TensorMap => "exec-tensor-map",
            FindingKind::Deadlock => "exec-deadlock",
            FindingKind::Timeout => "exec-timeout",
            FindingKind::Trap => "exec-trap",
            FindingKind::Assert => "exec-assert",
            FindingKind::Crash => "exec-crash",
            FindingKind::Undefined => "exec-undefined",
            FindingKind::AddressError => "exec-address",
        }
    }

    /// One line on what is wrong.
    pub fn title(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "the kernel accesses memory that is not its own",
            FindingKind::Misaligned => "the kernel accesses memory at an address that is not a multiple of the access",
            FindingKind::WriteToInput => "the kernel writes memory that it was given to read",
            FindingKind::Uninitialized => "the kernel depends on memory or registers that nobody wrote",
            FindingKind::Race => "two threads access one place, and nothing orders them",
            FindingKind::BarrierMisuse => "a barrier is not reached as it has to be",
            FindingKind::Asynchrony => "asynchronous work is not waited for as it has to be",
            FindingKind::TensorMap => "a tensor map does not fit its copy",
            FindingKind::Deadlock => "threads wait for what never comes",
            FindingKind::Timeout => "the kernel does not end within its limit",
            FindingKind::Trap => "the kernel stops itself",
            FindingKind::Assert => "an assertion of the kernel fails",
            FindingKind::Crash => "the kernel crashes",
            FindingKind::Undefined => "the kernel does what C++ or CUDA leaves undefined",
            FindingKind::AddressError => "the kernel accesses memory outside its own objects",
        }
    }

    fn required(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "an element of a tensor, or a byte of an allocation or a variable",
            FindingKind::Misaligned => "an address that is a multiple of the bytes that the access moves",
            FindingKind::WriteToInput => "writes to outputs only",
            FindingKind::Uninitialized => {
                "a write before the read: of shared memory by the block, of a workspace by an earlier entry"
            }
            FindingKind::Race => {
                "a barrier, a fence with an atomic, or a wait between the two, or one thread for each element"
            }
            FindingKind::BarrierMisuse => "all threads of the warp at the barrier, and a count of whole warps",
            FindingKind::Asynchrony => {
                "each copy, product or register request is issued, waited for and over before what it touches is used or gone"
            }
            FindingKind::TensorMap => "a map of as many modes, at an address that the copy allows",
            FindingKind::Deadlock => "every thread that a barrier or a mask names gets there",
            FindingKind::Timeout => "an end within the limit of time or steps",
            FindingKind::Trap | FindingKind::Assert | FindingKind::Crash => "a kernel that runs to its end",
            FindingKind::Undefined => "only operations that are defined",
            FindingKind::AddressError => "accesses inside the object that the pointer points into",
        }
    }

    fn because(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "on a GPU it reads or corrupts whatever lies there, or faults",
            FindingKind::Misaligned => {
                "a GPU faults on it (CUDA C++ Programming Guide, \"Device Memory Accesses\"); shared arrays are aligned as the text \
                 declares, and tensors as binding requires, and no better"
            }
            FindingKind::WriteToInput => "the caller, and other launches, read it at the same time",
            FindingKind::Uninitialized => "memory and registers hold what was left there before",
            FindingKind::Race => "threads and blocks run in any order, and on a GPU in another one each time",
            FindingKind::BarrierMisuse => "PTX leaves undefined what then happens; GPUs hang or go on too early",
            FindingKind::Asynchrony => "asynchronous work may happen at any moment between its issue and its wait",
            FindingKind::TensorMap => "on a GPU the copy faults, or moves other bytes",
            FindingKind::Deadlock => "on a GPU the kernel hangs, or goes on with threads missing",
            FindingKind::Timeout => "a loop whose end never comes hangs the GPU",
            FindingKind::Trap | FindingKind::Assert => "the launch fails, and its results are not to be used",
            FindingKind::Crash => "a GPU reports such an access as a fault, or computes on with garbage",
            FindingKind::Undefined => "compilers assume that it does not happen, and each makes something else of it",
            FindingKind::AddressError => "on a GPU it reads or corrupts another variable of the thread",
        }
    }

    fn help(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => {
                "look at the predicate of the access and at the stride of the leading dimension"
            }
            FindingKind::Misaligned => "align the array or the pointer that is passed, or use narrower accesses",
            FindingKind::WriteToInput => "look at which tensor the address was made from; give outputs as outputs",
            FindingKind::Uninitialized => {
                "look at what should have written there, at its predicate, and at what ran first"
            }
            FindingKind::Race => "add __syncthreads() between the two lines, or wait for the copy that is named",
            FindingKind::BarrierMisuse => "move the barrier out of the branch, or count who arrives and what is copied",
            FindingKind::Asynchrony => "add the wait, the commit or the fence that is named",
            FindingKind::TensorMap => "look at the tensor, the box and the swizzle that the map was made of",
            FindingKind::Deadlock => {
                "see who waits where; move the barrier out of the branch, and do not return before it"
            }
            FindingKind::Timeout => "look at the loop's condition, or raise the limit",
            FindingKind::Trap | FindingKind::Assert => "look at the condition that leads there",
            FindingKind::Crash => "run it in mode bounds, which names the access",
            FindingKind::Undefined => "correct the line that is named",
            FindingKind::AddressError => "look at the shape of the fragment and at the shape that is copied into it",
        }
    }
}

/// A line of the kernel's text, or of what it includes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// As the compiler wrote it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A place in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The line of the PTX, counted from 1; 0 where C++ was run.
    pub ptx_line: u32,
    /// The instruction, as `ld.global.f32`; empty where C++ was run.
    pub opcode: String,
    /// The source line, then the lines that its function was inlined at.
    pub source: Vec<SourceLine>,
}

/// The innermost source line of a place that may be unknown.
fn line(site: &Option<Site>) -> Option<&SourceLine> {
    site.as_ref()?.source.first()
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ptx_line > 0 {
            write!(f, "PTX line {} ({})", self.ptx_line, self.opcode)?;
        }
        for (i, line) in self.source.iter().take(6).enumerate() {
            let before = match (i, self.ptx_line) {
                (0, 0) => "",
                (0, _) => ", ",
                _ => ", inlined at ",
            };
            write!(f, "{before}{line}")?;
        }
        Ok(())
    }
}

/// Two accesses of one place that conflict, and what ordered the first before the second: a happens-before path. Of an asynchronous
/// copy, the second is the instruction that puts it in a group, or that it has arrived by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The access that came first.
    pub first: Site,
    /// The one that came after it.
    pub then: Site,
    /// The barriers, fences, waits and commits that order them, each alone or with others of the list.
    pub by: Vec<Site>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |s: &Site| format!("{} {}", s.ptx_line, s.opcode);
        let by: Vec<String> = self.by.iter().map(short).collect();
        write!(f, "{} -> {} -> {}", short(&self.first), by.join(" or "), short(&self.then))
    }
}

/// A thread, or threads of a warp, as `threadIdx` and `blockIdx` name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Who {
    /// `blockIdx`: x, y, z.
    pub block: [u32; 3],
    /// `threadIdx`, of the first of them; `None` where only the block is known.
    pub thread: Option<[u32; 3]>,
    /// The warp in its block, where PTX was run.
    pub warp: Option<u32>,
    /// Its lanes, as a mask; 0 where no warp is known.
    pub lanes: u32,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        match self.thread {
            Some([a, b, c]) => write!(f, "thread ({a},{b},{c}) of block ({x},{y},{z})")?,
            None => write!(f, "a thread of block ({x},{y},{z})")?,
        }
        match (self.warp, self.lanes.count_ones()) {
            (None, _) => Ok(()),
            (Some(warp), 0 | 1) => write!(f, ", warp {warp} lane {}", self.lanes.trailing_zeros().min(31)),
            (Some(warp), n) => write!(f, ", warp {warp}, {n} lanes {:#010x}", self.lanes),
        }
    }
}

/// The other access of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Who it was.
    pub who: Who,
    /// Whether it wrote.
    pub write: bool,
    /// Whether it was an asynchronous copy that nobody had waited for.
    pub in_flight: bool,
    /// Where.
    pub site: Option<Site>,
}

impl Other {
    /// The line of the source, where it is known.
    pub fn line(&self) -> Option<&SourceLine> {
        line(&self.site)
    }
}

/// One thing that the kernel did wrong, at its first occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// Which entry did it; `None` where the kernel has but one.
    pub entry: Option<String>,
    /// Who did it; `None` where it was noticed only afterwards.
    pub who: Option<Who>,
    /// Where in the kernel.
    pub site: Option<Site>,
    /// Whether it was a write.
    pub write: bool,
    /// Bytes of the access; 0 where it is none.
    pub bytes: u64,
    /// What was hit.
    pub target: Option<Target>,
    /// The access that a race is with.
    pub other: Option<Box<Other>>,
    /// The signal that ended the kernel.
    pub signal: Option<u32>,
    /// What else is known: who waits where, a sanitizer's words.
    pub detail: String,
    /// How often it happened at this place.
    pub count: u64,
}

impl Finding {
    /// The line of the source, where it is known.
    pub fn line(&self) -> Option<&SourceLine> {
        line(&self.site)
    }

    fn found(&self) -> String {
        let mut text = self.who.map_or_else(|| "a thread".to_owned(), |who| who.to_string());
        if let Some(entry) = &self.entry {
            text.push_str(&format!(" of {entry}"));
        }
        match (&self.target, self.signal) {
            (Some(target), None) => {
                let verb = if self.write { "writes" } else { "reads" };
                let size = if self.bytes > 0 { format!("{} B at ", self.bytes) } else { String::new() };
                text.push_str(&format!(" {verb} {size}{target}"));
            }
            (target, Some(signal)) => {
                text.push_str(&format!(" gets signal {signal} ({})", signal_name(signal)));
                if let Some(target) = target {
                    text.push_str(&format!(" for {target}"));
                }
            }
            (None, None) => {}
        }
        // Places in PTX are long, and have a line of their own.
        let at = |site: &Option<Site>| match site {
            Some(site) if site.ptx_line > 0 => format!("\nat {site}"),
            Some(site) => format!(", at {site}"),
            None => String::new(),
        };
        text.push_str(&at(&self.site));
        if let Some(other) = &self.other {
            let verb = match (other.write, other.in_flight) {
                (_, true) => "has a copy on its way there",
                (true, _) => "wrote it before",
                (false, _) => "read it before",
            };
            text.push_str(&format!("\n{} {verb}{}", other.who, at(&other.site)));
        }
        if self.count > 1 {
            text.push_str(&format!("\nthe first of {} times at this place", self.count));
        }
        if !self.detail.is_empty() {
            text.push('\n');
            text.push_str(&self.detail);
        }
        text
    }
}

fn signal_name(signal: u32) -> &'static str {
    // Linux, asm-generic/signal.h.
    match signal {
        4 => "illegal instruction",
        6 => "abort",
        7 => "bus error",
        8 => "arithmetic error",
        9 => "killed",
        11 => "segmentation fault",
        _ => "unknown",
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.kind.as_str(), self.kind.title())?;
        field(f, "found:", &self.found())?;
        field(f, "required:", self.kind.required())?;
        field(f, "because:", self.kind.because())?;
        field(f, "help:", self.kind.help())
    }
}

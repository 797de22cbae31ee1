//! What a kernel did wrong: who, to what, at which line of the PTX and of its source.

use core::fmt;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// An access outside of every allocation, variable or tensor element.
    OutOfBounds,
    /// An address that is no multiple of what the access moves.
    Misaligned,
    /// A write to memory that the kernel was given to read.
    WriteToInput,
    /// What nobody wrote decides an address, a branch, or a result.
    Uninitialized,
    /// Two accesses of one place that nothing orders, at least one of them a write.
    Race,
    /// A barrier that not all of a warp's threads reach together, or with a count that cannot be.
    BarrierMisuse,
    /// Threads wait for what never comes.
    Deadlock,
    /// The launch did not end within its step budget.
    Timeout,
    /// The kernel executed `trap`.
    Trap,
    /// An `assert` of the kernel failed.
    Assert,
}

impl FindingKind {
    /// The stable word, as in `error[ptx-race]`.
    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "ptx-out-of-bounds",
            FindingKind::Misaligned => "ptx-misaligned",
            FindingKind::WriteToInput => "ptx-write-to-input",
            FindingKind::Uninitialized => "ptx-uninitialized",
            FindingKind::Race => "ptx-race",
            FindingKind::BarrierMisuse => "ptx-barrier",
            FindingKind::Deadlock => "ptx-deadlock",
            FindingKind::Timeout => "ptx-timeout",
            FindingKind::Trap => "ptx-trap",
            FindingKind::Assert => "ptx-assert",
        }
    }

    /// One line on what is wrong.
    pub fn title(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "the kernel accesses memory that is not its own",
            FindingKind::Misaligned => "the kernel accesses memory at an address that does not fit the access",
            FindingKind::WriteToInput => "the kernel writes memory that it was given to read",
            FindingKind::Uninitialized => "the kernel depends on memory or registers that nobody wrote",
            FindingKind::Race => "two accesses of one place, and nothing orders them",
            FindingKind::BarrierMisuse => "a barrier is not reached as it has to be",
            FindingKind::Deadlock => "threads wait for what never comes",
            FindingKind::Timeout => "the launch does not end within its step budget",
            FindingKind::Trap => "the kernel stops itself",
            FindingKind::Assert => "an assertion of the kernel fails",
        }
    }

    fn required(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "an address inside an allocation, a variable, or an element of a tensor",
            FindingKind::Misaligned => "an address that is a multiple of the bytes that the access moves",
            FindingKind::WriteToInput => "writes to outputs only",
            FindingKind::Uninitialized => "a write before the read",
            FindingKind::Race => "a barrier, a fence with an atomic, or a wait between the two",
            FindingKind::BarrierMisuse => "all threads of the warp at the barrier, and a count of whole warps",
            FindingKind::Deadlock => "every thread that a barrier or a mask names gets there",
            FindingKind::Timeout => "an end within the step budget",
            FindingKind::Trap | FindingKind::Assert => "a kernel that runs to its end",
        }
    }

    fn because(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "on a GPU it reads or corrupts whatever lies there, or faults",
            FindingKind::Misaligned => "a GPU faults",
            FindingKind::WriteToInput => "the caller, and other launches, read it at the same time",
            FindingKind::Uninitialized => "memory and registers hold what was left there before",
            FindingKind::Race => "threads run in any order, and on a GPU in another one each time",
            FindingKind::BarrierMisuse => "PTX leaves undefined what then happens; GPUs hang or go on too early",
            FindingKind::Deadlock => "on a GPU the kernel hangs",
            FindingKind::Timeout => "a loop whose end never comes hangs the GPU",
            FindingKind::Trap | FindingKind::Assert => "the launch fails, and its results are not to be used",
        }
    }

    fn help(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "look at the predicate of the access and at the stride",
            FindingKind::Misaligned => "align the pointer that is passed, or use narrower accesses",
            FindingKind::WriteToInput => "look at which pointer the address was made from; give outputs as outputs",
            FindingKind::Uninitialized => "look at what should have written there, and at its predicate",
            FindingKind::Race => "add __syncthreads() between the two lines, or wait for the copy that is named",
            FindingKind::BarrierMisuse => "move the barrier out of the branch",
            FindingKind::Deadlock => "see below who waits where; move the barrier out of the branch",
            FindingKind::Timeout => "look at the loop's condition, or raise the step budget",
            FindingKind::Trap | FindingKind::Assert => "look at the condition that leads there",
        }
    }
}

/// A line of the source that the PTX was made from, by its `.loc`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

/// An instruction of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The line of the PTX, counted from 1.
    pub ptx_line: u32,
    /// The instruction, as `ld.global.f32`.
    pub opcode: String,
    /// The source line, then the lines that its function was inlined at.
    pub source: Vec<SourceLine>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PTX line {} ({})", self.ptx_line, self.opcode)?;
        for (i, line) in self.source.iter().take(6).enumerate() {
            write!(f, "{}{line}", if i == 0 { ", " } else { ", inlined at " })?;
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

/// Threads of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// `blockIdx`: x, y, z.
    pub block: [u32; 3],
    /// The warp in its block.
    pub warp: u32,
    /// Its lanes, as a mask.
    pub lanes: u32,
    /// `threadIdx` of the first of them.
    pub thread: [u32; 3],
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], [a, b, c]) = (self.block, self.thread);
        write!(f, "thread ({a},{b},{c}) of block ({x},{y},{z})")?;
        match self.lanes.count_ones() {
            0 | 1 => write!(f, ", warp {} lane {}", self.warp, self.lanes.trailing_zeros().min(31)),
            n => write!(f, ", warp {}, {n} lanes {:#010x}", self.warp, self.lanes),
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
    pub site: Site,
}

/// One thing that the kernel did wrong, at its first occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// The entry.
    pub kernel: String,
    /// Who did it.
    pub who: Option<Who>,
    /// Where.
    pub site: Option<Site>,
    /// Whether it was a write.
    pub write: bool,
    /// Bytes of the access; 0 where it is none.
    pub bytes: u64,
    /// The address or variable, in words.
    pub target: String,
    /// The access that a race is with.
    pub other: Option<Box<Other>>,
    /// What else is known.
    pub detail: String,
    /// How often it happened at this place.
    pub count: u64,
}

impl Finding {
    fn found(&self) -> String {
        let mut text = match &self.who {
            Some(who) => format!("{who} of {}", self.kernel),
            None => self.kernel.clone(),
        };
        if !self.target.is_empty() {
            let verb = if self.write { "writes" } else { "reads" };
            text.push_str(&format!(" {verb} {} B at {}", self.bytes, self.target));
        }
        if let Some(site) = &self.site {
            text.push_str(&format!("\nat {site}"));
        }
        if let Some(other) = &self.other {
            let verb = match (other.write, other.in_flight) {
                (_, true) => "has a copy on its way there",
                (true, _) => "wrote it before",
                (false, _) => "read it before",
            };
            text.push_str(&format!("\n{} {verb}\nat {}", other.who, other.site));
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

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.kind.as_str(), self.kind.title())?;
        for (label, text) in [
            ("found:", self.found().as_str()),
            ("required:", self.kind.required()),
            ("because:", self.kind.because()),
            ("help:", self.kind.help()),
        ] {
            for (i, line) in text.lines().enumerate() {
                write!(f, "\n  {:<9} {line}", if i == 0 { label } else { "" })?;
            }
        }
        Ok(())
    }
}

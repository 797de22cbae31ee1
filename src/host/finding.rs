//! What a kernel did wrong: which thread, to what, where in its text.

use core::fmt;

use super::error::field;
use crate::view::ViewLayout;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// An access outside the elements of a tensor or a shared variable.
    OutOfBounds,
    /// A write to a tensor that the kernel only reads.
    WriteToInput,
    /// Two threads on one element, at least one writes, nothing orders them.
    Race,
    /// A read of shared memory that no thread of the block has written, or of a workspace that nobody has.
    Uninitialized,
    /// Threads wait for threads that never come.
    Deadlock,
    /// A signal, or the end of the process.
    Crash,
    /// The kernel ran for longer than its time limit.
    Timeout,
    /// Undefined behaviour of C++ or of a CUDA intrinsic.
    Undefined,
    /// The kernel called `__trap`.
    Trap,
    /// An access outside an object of the kernel's own: an array in registers, say.
    AddressError,
    /// An access at an address that is not a multiple of its size.
    Misaligned,
}

impl FindingKind {
    /// The numbers of `Kind` in state.h.
    pub(super) fn from_number(number: u32) -> Option<FindingKind> {
        use FindingKind::*;
        let kinds = [
            OutOfBounds,
            WriteToInput,
            Race,
            Uninitialized,
            Deadlock,
            Crash,
            Timeout,
            Undefined,
            Trap,
            AddressError,
            Misaligned,
        ];
        kinds.get((number as usize).checked_sub(1)?).copied()
    }

    /// The stable word, as in `error[host-race]`.
    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "host-out-of-bounds",
            FindingKind::WriteToInput => "host-write-to-input",
            FindingKind::Race => "host-race",
            FindingKind::Uninitialized => "host-uninitialized",
            FindingKind::Deadlock => "host-deadlock",
            FindingKind::Crash => "host-crash",
            FindingKind::Timeout => "host-timeout",
            FindingKind::Undefined => "host-undefined",
            FindingKind::Trap => "host-trap",
            FindingKind::AddressError => "host-address",
            FindingKind::Misaligned => "host-misaligned",
        }
    }

    /// One line on what is wrong.
    pub fn title(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "the kernel accesses memory outside its tensors",
            FindingKind::WriteToInput => "the kernel writes a tensor that it was given to read",
            FindingKind::Race => "two threads access one place, and nothing orders them",
            FindingKind::Uninitialized => "the kernel reads memory that nobody wrote",
            FindingKind::Deadlock => "threads of a block wait for each other forever",
            FindingKind::Crash => "the kernel crashes",
            FindingKind::Timeout => "the kernel does not end in time",
            FindingKind::Undefined => "the kernel does what C++ or CUDA leaves undefined",
            FindingKind::Trap => "the kernel stops itself",
            FindingKind::AddressError => "the kernel accesses memory outside its own objects",
            FindingKind::Misaligned => "the kernel accesses memory at an address that is not a multiple of the access",
        }
    }

    fn required(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "an element of the tensor, or a byte of the shared variable",
            FindingKind::WriteToInput => "writes to outputs only",
            FindingKind::Race => "a barrier between the two, or one thread for each element",
            FindingKind::Uninitialized => {
                "a write before the read: of shared memory by a thread of the block, of a workspace by an \
                                           earlier entry"
            }
            FindingKind::Deadlock => {
                "every thread of the block reaches the same barrier, every lane of a mask the same \
                                      intrinsic"
            }
            FindingKind::Crash => "a kernel that runs to its end",
            FindingKind::Timeout => "a kernel that ends within the time limit",
            FindingKind::Undefined => "only operations that are defined",
            FindingKind::Trap => "a kernel that runs to its end",
            FindingKind::AddressError => "accesses inside the object that the pointer points into",
            FindingKind::Misaligned => {
                "an address that is a multiple of the size of the access, wherever the memory begins"
            }
        }
    }

    fn because(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "on a GPU it reads or corrupts whatever lies there, or faults",
            FindingKind::WriteToInput => "the caller, and other launches, read it at the same time",
            FindingKind::Race => "threads of a block are ordered by its barriers alone, and blocks run in any order",
            FindingKind::Uninitialized => "shared memory and workspaces hold what was left there before",
            FindingKind::Deadlock => "on a GPU the kernel hangs, or goes on with threads missing",
            FindingKind::Crash => "a GPU reports such an access as a fault, or computes on with garbage",
            FindingKind::Timeout => "a loop whose end never comes hangs the GPU",
            FindingKind::Undefined => "compilers assume that it does not happen, and each makes something else of it",
            FindingKind::Trap => "the result is not written",
            FindingKind::AddressError => "on a GPU it reads or corrupts another variable of the thread",
            FindingKind::Misaligned => {
                "a GPU faults on it (CUDA C++ Programming Guide, \"Device Memory Accesses\"); shared arrays are aligned as the text declares, and tensors as binding requires, and no better"
            }
        }
    }

    fn help(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "look at the predicate and at the stride of the leading dimension",
            FindingKind::WriteToInput => "look at which tensor the partition was made from",
            FindingKind::Race => {
                "add __syncthreads() between the two lines, or look at how threads are mapped to \
                                  elements"
            }
            FindingKind::Uninitialized => "look at what writes there, at its predicate, and at what ran first",
            FindingKind::Deadlock => "move the barrier out of the branch, and do not return before it",
            FindingKind::Crash => "run it in mode bounds, which names the access",
            FindingKind::Timeout => "look at the loop's condition, or raise Options::time_limit",
            FindingKind::Undefined => "correct the line that is named",
            FindingKind::Trap => "look at the condition that leads there",
            FindingKind::AddressError => "look at the shape of the fragment and at the shape that is copied into it",
            FindingKind::Misaligned => {
                "declare the array with alignas, and look at the strides that lead to the address"
            }
        }
    }
}

/// A thread of a block, as `threadIdx` and `blockIdx` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Actor {
    /// `blockIdx`: x, y, z.
    pub block: [u32; 3],
    /// `threadIdx`: x, y, z; `None` where only the block is known.
    pub thread: Option<[u32; 3]>,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        match self.thread {
            Some([a, b, c]) => write!(f, "thread ({a},{b},{c}) of block ({x},{y},{z})"),
            None => write!(f, "a thread of block ({x},{y},{z})"),
        }
    }
}

/// What an access hit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A tensor, or its surroundings. The coordinate is that of the address: outside the shape where the access is.
    Tensor {
        /// The operand's name.
        name: &'static str,
        /// One number for each mode: that of the largest stride may be negative or past the last, another may lie in the
        /// gap of a padded row.
        coordinate: Vec<i64>,
        /// Shape and strides of the view.
        layout: ViewLayout,
    },
    /// A variable in shared memory.
    Shared {
        /// Its name in the text; the nearest variable before the access, where it hits none.
        name: String,
        /// Bytes from its start.
        offset: i64,
        /// Its size in bytes.
        size: u64,
    },
    /// The launch's workspace, or its surroundings.
    Workspace {
        /// Bytes from its start.
        offset: i64,
        /// Its size in bytes.
        size: u64,
    },
    /// Dynamic shared memory.
    DynamicShared {
        /// Bytes from its start.
        offset: i64,
        /// The launch's dynamic shared memory, in bytes.
        size: u64,
    },
    /// Some other address.
    Address(u64),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tensor { name, coordinate, layout } => {
                let coordinate: Vec<String> = coordinate.iter().map(ToString::to_string).collect();
                write!(f, "{name}({}) of {name} = {layout}", coordinate.join(","))
            }
            Target::Shared { name, offset, size } => write!(f, "byte {offset} of shared {name}[{size} B]"),
            Target::Workspace { offset, size } => write!(f, "byte {offset} of the workspace[{size} B]"),
            Target::DynamicShared { offset, size } => write!(f, "byte {offset} of dynamic shared memory[{size} B]"),
            Target::Address(address) => write!(f, "address {address:#x}"),
        }
    }
}

/// A line of the kernel's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// The file's name, without folders.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The other side of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Who it was.
    pub actor: Actor,
    /// Whether it wrote.
    pub write: bool,
    /// Where in the text.
    pub line: Option<Line>,
}

/// One thing that the kernel did wrong, at its first occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// Which entry did it; `None` where the kernel has but one.
    pub entry: Option<String>,
    /// Who did it; `None` where it was noticed only afterwards.
    pub actor: Option<Actor>,
    /// What was hit.
    pub target: Option<Target>,
    /// Whether it was a write.
    pub write: bool,
    /// Bytes of the access.
    pub bytes: u64,
    /// Where in the kernel's text.
    pub line: Option<Line>,
    /// The access that a race is with.
    pub earlier: Option<Earlier>,
    /// How often it happened, at this place in the text.
    pub count: u64,
    /// The signal that ended the kernel.
    pub signal: Option<u32>,
    /// What else is known: who waits where, the sanitizer's words.
    pub detail: String,
}

impl Finding {
    fn found(&self) -> String {
        let mut text = match &self.actor {
            Some(actor) => actor.to_string(),
            None => "a thread".to_owned(),
        };
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
        if let Some(line) = &self.line {
            text.push_str(&format!(", at {line}"));
        }
        if let Some(earlier) = &self.earlier {
            let verb = if earlier.write { "wrote" } else { "read" };
            text.push_str(&format!("\n{} {verb} it before", earlier.actor));
            if let Some(line) = &earlier.line {
                text.push_str(&format!(", at {line}"));
            }
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

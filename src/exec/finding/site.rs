//! Places in a kernel, and threads.

use core::fmt;

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
pub(super) fn line(site: &Option<Site>) -> Option<&SourceLine> {
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

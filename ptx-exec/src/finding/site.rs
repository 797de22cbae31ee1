//! Places in a kernel, and threads.

use core::fmt;

use crate::Target;

/// A line of the kernel's source, or of an included file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file name, as the compiler wrote it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
}

/// Folders of headers that come with CUDA, and with CUTLASS.
const LIBRARIES: [&str; 9] = ["cute", "cutlass", "cuda", "cub", "thrust", "nv", "cooperative_groups", "crt", "cccl"];

impl SourceLine {
    /// Whether its name is that of a header of CUDA or CUTLASS.
    pub fn is_library(&self) -> bool {
        SourceLine::is_library_file(&self.file)
    }

    pub(crate) fn is_library_file(name: &str) -> bool {
        let parts: Vec<&str> = name.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
        let Some((file, folders)) = parts.split_last() else { return false };
        if file.ends_with(".cu") || file.ends_with(".py") {
            return false;
        }
        // Relative to a folder of headers, as this crate's own texts have them.
        let is_relative = !name.starts_with(['/', '\\']) && folders.first().is_some_and(|f| LIBRARIES.contains(f));
        let is_included = folders.windows(2).any(|w| w[0] == "include" && LIBRARIES.contains(&w[1]));
        // A toolkit, or its wheels.
        let is_toolkit = |f: &str| {
            let version = f.strip_prefix("cuda-").or(f.strip_prefix("cuda"));
            let is_version = version.is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.'));
            f == "targets" || f == "nvidia" || is_version
        };
        let include = folders.iter().position(|f| *f == "include");
        let in_toolkit = include.is_some_and(|at| folders[..at].iter().any(|f| is_toolkit(f)));
        is_relative || is_included || in_toolkit || folders.is_empty() && is_toolkit_header(file)
    }
}

/// Whether a name without a folder is that of a header of the toolkit.
fn is_toolkit_header(file: &str) -> bool {
    let is_header = file.ends_with(".h") || file.ends_with(".hpp");
    let known = [
        "cuda_",
        "sm_",
        "device_functions",
        "device_atomic",
        "device_double",
        "math_functions",
        "mma.h",
        "cooperative_groups",
        "vector_functions",
    ];
    is_header && known.iter().any(|name| file.starts_with(name))
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A place in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The line of the PTX, counted from 1.
    pub ptx_line: u32,
    /// The opcode, such as `ld.global.f32`.
    pub opcode: String,
    /// The source line, then the lines that its function was inlined at.
    pub source: Vec<SourceLine>,
}

/// The user's line of a place that may be unknown.
pub(super) fn line(site: &Option<Site>) -> Option<&SourceLine> {
    site.as_ref()?.user_line()
}

impl Site {
    /// The innermost source line that is in no header of CUDA or CUTLASS; the outermost line where all are.
    pub fn user_line(&self) -> Option<&SourceLine> {
        self.source.iter().find(|line| !line.is_library()).or(self.source.last())
    }

    /// The lines of the chain to show: the innermost, and the user's innermost and outermost.
    fn shown(&self) -> Vec<usize> {
        let is_user = |i: &usize| !self.source[*i].is_library();
        let of_user = (0..self.source.len()).find(is_user);
        let outermost = (0..self.source.len()).rev().find(is_user).or(self.source.len().checked_sub(1));
        let mut shown: Vec<usize> = [Some(0), of_user, outermost].into_iter().flatten().collect();
        shown.dedup();
        shown.retain(|i| *i < self.source.len());
        shown
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ptx_line > 0 {
            write!(f, "PTX line {} ({})", self.ptx_line, self.opcode)?;
        }
        let mut before = None;
        for i in self.shown() {
            match before {
                None if self.ptx_line == 0 => {}
                None => f.write_str(", ")?,
                Some(_) => f.write_str(", inlined at ")?,
            }
            write!(f, "{}", self.source[i])?;
            match before.map_or(0, |last| i - last - 1) {
                0 => {}
                n => write!(f, " ({} between)", super::many(n as u64, "level"))?,
            }
            before = Some(i);
        }
        Ok(())
    }
}

/// A happens-before path between two conflicting accesses of one place. For an asynchronous copy, the second is the instruction that
/// puts it in a group, or that waits for it.
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
    /// The thread.
    pub who: Who,
    /// Whether it is a write.
    pub write: bool,
    /// Whether it is a copy, a store or a product in flight, before any wait.
    pub in_flight: bool,
    /// The instruction.
    pub site: Option<Site>,
}

/// Where an uninitialised value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The thread that read it.
    pub who: Who,
    /// The load, copy or product that read it.
    pub site: Site,
    /// The first byte of it that is uninitialised.
    pub target: Target,
}

impl Other {
    /// A description of an access in flight.
    pub(super) fn in_words(&self) -> &'static str {
        let opcode = self.site.as_ref().map_or("", |site| site.opcode.as_str());
        let is = |what: &str| opcode.starts_with(what);
        match self.write {
            false if is("wgmma") => "has a product in flight that reads it",
            false => "has a copy in flight that reads it",
            true if is("st.async") || is("red.async") => "has a store in flight to it",
            true => "has a copy in flight to it",
        }
    }

    /// The line of the source, where it is known.
    pub fn line(&self) -> Option<&SourceLine> {
        line(&self.site)
    }
}

//! Checks that any recipe with a thread-value layout runs. Each pushes a diagnostic and goes on, so that one planning
//! reports everything that is wrong.

use crate::arch::{Arch, Targets};
use crate::diagnostic::{Code, Defect, Diagnostic, Diagnostics, PlanError, Severity};
use crate::dtype::DType;
use crate::expr::{Checked, Compute, Function};
use crate::layout::{IntTuple, Layout, LayoutError, composition, make_layout, make_layout_tv};
use crate::tiling::{Flaw, Law, Tiling};
use crate::units::Bytes;

mod name;

pub use name::kernel_name;

/// Collects the diagnostics of one recipe.
pub struct Checks {
    recipe: String,
    found: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    defect: Option<Defect>,
}

impl Checks {
    /// For the recipe in its `Debug` form, on all of its targets.
    pub fn new(recipe: &str, targets: &Targets) -> Self {
        Self::of(format!("{recipe} for {targets}"))
    }

    fn of(recipe: String) -> Self {
        Self { recipe, found: Vec::new(), warnings: Vec::new(), defect: None }
    }

    /// A result that cannot fail once the checks before have passed. If it fails, that is a defect, which
    /// [`Checks::finish`] reports unless the user's own mistakes explain it.
    pub fn sound<T, E: core::fmt::Display>(&mut self, what: &str, result: Result<T, E>) -> Option<T> {
        let failed = |e: E| Defect::new(format!("{what}: {e}"), self.recipe.clone());
        result.map_err(failed).map_err(|defect| self.defect.get_or_insert(defect)).ok()
    }

    /// Adds a diagnostic.
    pub fn push(&mut self, code: Code, found: String, required: String, because: &str, help: String) {
        let (severity, recipe) = (Severity::Error, self.recipe.clone());
        self.found.push(Diagnostic {
            severity,
            code,
            kernel: None,
            recipe,
            found,
            required,
            because: because.into(),
            help,
        });
    }

    /// Whether something holds; adds a diagnostic where it does not.
    pub fn require(
        &mut self,
        holds: bool,
        code: Code,
        found: String,
        required: &str,
        because: &str,
        help: &str,
    ) -> bool {
        if !holds {
            self.push(code, found, required.to_owned(), because, help.to_owned());
        }
        holds
    }

    /// Adds a warning: there is a kernel all the same.
    pub fn warn(&mut self, code: Code, found: String, required: String, because: &str, help: String) {
        let (severity, recipe) = (Severity::Warning, self.recipe.clone());
        self.warnings.push(Diagnostic {
            severity,
            code,
            kernel: None,
            recipe,
            found,
            required,
            because: because.into(),
            help,
        });
    }

    /// The warnings so far, for the plan to keep.
    pub fn take_warnings(&mut self) -> Vec<Diagnostic> {
        core::mem::take(&mut self.warnings)
    }

    /// The result of `make` if it finds no mistake, with its warnings; otherwise its findings are forgotten.
    pub fn attempt<T>(&mut self, make: impl FnOnce(&mut Checks) -> Option<T>) -> Option<T> {
        let mut trial = Self::of(self.recipe.clone());
        let made = make(&mut trial);
        if trial.found.is_empty() {
            self.defect = self.defect.take().or(trial.defect);
            self.warnings.append(&mut trial.warnings);
            return made;
        }
        None
    }

    /// The value, if nothing was found; without one and without a reason, a defect.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, PlanError> {
        Diagnostics::refuse(self.found)?;
        match (value, self.defect) {
            (Some(value), None) => Ok(value),
            (_, Some(defect)) => Err(defect.into()),
            (None, None) => {
                Err(Defect::new("planning ended with neither a decision nor a reason against it", self.recipe).into())
            }
        }
    }
}

/// Elements in the largest tile that is proved by looking at each of them.
const MAX_TILE: i64 = 1 << 22;

/// A rank-2 layout that numbers its coordinates 0, 1, ..., size-1 once each; pushes `code` where it does not.
pub fn numbers_once(checks: &mut Checks, code: Code, what: &str, layout: &Layout, help: &str) -> Option<i64> {
    let because = "each index must name one coordinate and each coordinate one index, or an element is computed \
                   twice, or never";
    let size = layout.size();
    if layout.rank() != 2 || !(1..=MAX_TILE).contains(&size) {
        let found = format!("{what} = {layout}, rank {}, size {size}", layout.rank());
        checks.push(code, found, format!("rank 2 and a size of 1 to {MAX_TILE}"), because, help.into());
        return None;
    }
    if let Some((earlier, i, value)) = not_numbered(layout, size) {
        let indices = earlier.map_or_else(|| i.to_string(), |earlier| format!("both {earlier} and {i}"));
        let found = format!("{what} = {layout} maps {indices} to {value}");
        checks.push(code, found, format!("the indices 0 to {} once each", size - 1), because, help.into());
        return None;
    }
    Some(size)
}

/// The first index whose value is outside of 0 .. size, or repeats the value of an earlier index. Gives the earlier
/// index, the index and the value.
fn not_numbered(layout: &Layout, size: i64) -> Option<(Option<i64>, i64, i64)> {
    let mut first = vec![None; usize::try_from(size).unwrap_or(0)];
    (0..size).find_map(|i| {
        let value = layout.at(i).unwrap_or(-1);
        let slot = usize::try_from(value).ok().and_then(|at| first.get_mut(at));
        match slot.map(|slot| slot.replace(i)) {
            Some(None) => None,
            earlier => Some((earlier.flatten(), i, value)),
        }
    })
}

/// Threads of a block: 1 to 1024. `help` sets a usual number.
pub fn thread_count(checks: &mut Checks, threads: i64, help: &str) -> Option<u32> {
    match u32::try_from(threads).ok().filter(|t| (1..=Arch::MAX_THREADS).contains(&u64::from(*t))) {
        Some(threads) => Some(threads),
        None => {
            checks.push(
                Code::ThreadCount,
                format!("{threads} threads"),
                format!("1 to {}", Arch::MAX_THREADS),
                "a block has at most 1024 threads (CUDA C++ Programming Guide, \"Compute Capabilities\")",
                help.into(),
            );
            None
        }
    }
}

/// Elements of one vector: a power of two of bytes, at least one element, at most 16 bytes.
pub fn vector_width(checks: &mut Checks, vector: Bytes, dtype: DType) -> Option<i64> {
    let element = dtype.bytes();
    if vector.0.is_power_of_two() && vector >= element && vector <= Arch::MAX_VECTOR {
        return i64::try_from(vector.0 / element.0).ok();
    }
    let legal: Vec<String> = (0..5).map(|e| 1_u64 << e).filter(|b| *b >= element.0).map(|b| b.to_string()).collect();
    checks.push(
        Code::VectorWidth,
        format!("vector = {vector}, {dtype} = {element}"),
        format!("{} bytes", legal.join(", ")),
        "one thread loads or stores 1, 2, 4, 8 or 16 bytes at once (PTX ISA, `ld`), and whole elements",
        "vector=16 moves the most bytes with each instruction".into(),
    );
    None
}

/// Registers that a thread needs with `in_flight` bytes of values in flight, and the most that it can have in a block
/// of `threads` threads.
pub fn register_need(in_flight: Bytes, threads: u32) -> (u64, u64) {
    // Addresses, coordinates and predicates of such a kernel took up to 30 registers in what ptxas reported.
    const OVERHEAD: u64 = 32;
    let per_block = Arch::REGISTERS_PER_BLOCK / u64::from(threads.max(1));
    (in_flight.0.div_ceil(4) + OVERHEAD, Arch::MAX_REGISTERS_PER_THREAD.min(per_block))
}

/// Whether a type is that of factors of 16 bits.
pub fn halves(checks: &mut Checks, dtype: DType, because: &str) -> bool {
    let is = matches!(dtype, DType::F16 | DType::Bf16);
    checks.require(is, Code::TileType, format!("dtype={dtype}"), "f16 or bf16", because, "dtype=bf16")
}

/// Whether K and V have the type of what is beside them, or 8 bits.
pub fn kept(checks: &mut Checks, [dtype, dtype_kv]: [DType; 2], because: &str) -> bool {
    let is = [dtype, DType::E4m3].contains(&dtype_kv);
    let (found, required) = (format!("dtype_kv={dtype_kv}"), format!("{dtype}, or e4m3"));
    checks.require(is, Code::TileType, found, &required, because, "dtype_kv=e4m3")
}

/// Whether rows of a setting's elements are whole vectors, up to the longest.
pub fn row(checks: &mut Checks, key: &str, elements: u32, [vector, most]: [u32; 2], because: &str) -> bool {
    let whole = elements.is_multiple_of(vector) && (8..=most).contains(&elements);
    let required = format!("a multiple of {vector}, up to {most}");
    checks.require(whole, Code::TileSize, format!("{key}={elements}"), &required, because, &format!("{key}=64"))
}

/// The function in a compute type that has its operations, or each operation that it has not.
pub fn traced(checks: &mut Checks, function: &Function, compute: Compute) -> Option<Checked> {
    let errors = match function.check(compute) {
        Ok(checked) => return Some(checked),
        Err(errors) => errors,
    };
    for e in errors {
        checks.push(Code::Expression, e.found, e.required, &e.because, e.help);
    }
    None
}

/// Registers of a thread that hold the values in flight, within the limit that the block's threads and the resident
/// blocks leave.
pub fn registers(checks: &mut Checks, in_flight: Bytes, threads: u32, min_blocks: u32, help: &str) -> Option<u64> {
    let (need, limit) = register_need(in_flight, threads.saturating_mul(min_blocks.max(1)));
    let at_a_time = if min_blocks > 1 { format!(", {min_blocks} blocks at a time") } else { String::new() };
    let holds = checks.require(
        need <= limit,
        Code::Registers,
        format!("{in_flight} of values in flight, about {need} registers, {threads} threads{at_a_time}"),
        &format!("at most {limit} registers a thread"),
        "values that do not fit in registers are spilled to local memory, which is as slow as DRAM",
        help,
    );
    holds.then_some(need)
}

/// Shared memory of one block, with the tiles of all stages, against the smallest limit of the targets, or the limit of
/// a declaration. `help` says what fits into the limit with one stage.
pub fn shared_memory(
    checks: &mut Checks,
    smem: Bytes,
    stages: Option<u64>,
    targets: &Targets,
    help: impl FnOnce(Bytes) -> String,
) {
    let Some(arch) = targets.archs().iter().copied().min_by_key(|a| a.smem_per_block()) else { return };
    let (limit, declared) = match stages {
        Some(_) => (arch.smem_per_block(), ""),
        None => (Arch::STATIC_SMEM, ", declared in the text"),
    };
    let each = Bytes(smem.0.div_ceil(stages.unwrap_or(1).max(1)));
    let of_stages = stages.map_or_else(String::new, |stages| format!(", {each} for each of {stages} stages"));
    checks.require(
        smem <= limit,
        Code::SharedMemory,
        format!("{smem} of shared memory{of_stages}"),
        &format!("at most {limit} on {arch}{declared}"),
        "a block that asks for more cannot be launched (CUDA C++ Programming Guide, \"Compute Capabilities\")",
        &match (stages, limit.0 / each.0.max(1)) {
            (None, _) => help(limit),
            (_, fitting @ 2..) => format!("stages={fitting}, or a smaller tile"),
            _ => format!("a smaller BK: stages=2 with {} of shared memory each would fit", Bytes(limit.0 / 2)),
        },
    );
}

/// What a recipe is told that breaks a law.
pub(crate) fn code_of(law: Law) -> Code {
    match law {
        Law::CoversOnce | Law::Order => Code::CoversOnce,
        Law::Aligned => Code::VectorAlignment,
        Law::Contiguous => Code::VectorContiguity,
        Law::Swizzle => Code::BadSwizzle,
        Law::Guarded | Law::Injective | Law::Lifetime => Code::InBounds,
        Law::Roles | Law::Pipeline | Law::Reduces => Code::ThreadCount,
        Law::Registers => Code::Registers,
        Law::Box | Law::Algebra => Code::TileSize,
    }
}

/// Whether every proof of a tiling holds: each element once, in bounds or guarded, aligned, with the roles and reductions that it has.
/// Pushes the first flaw of each law.
pub fn proofs(checks: &mut Checks, tiling: &Tiling, help: &str) -> bool {
    let flaws = tiling.flaws();
    let is_first = |(index, flaw): &(usize, &Flaw)| flaws[..*index].iter().all(|known| known.law != flaw.law);
    for (_, flaw) in flaws.iter().enumerate().filter(is_first) {
        let code = code_of(flaw.law);
        checks.push(code, flaw.found.clone(), flaw.required.clone(), flaw.because, help.to_owned());
    }
    flaws.is_empty()
}

/// Each target has the instructions of a tiling.
pub fn instructions(checks: &mut Checks, tiling: &Tiling, targets: &Targets, help: &str) {
    let Some(arch) = targets.archs().first() else { return };
    let (major, minor) = arch.capability();
    let newest = tiling.newest_instruction().filter(|(since, _)| *since > 10 * major + minor);
    let Some((since, name)) = newest else { return };
    checks.push(
        Code::Instruction,
        format!("{name}, for {arch}"),
        format!("sm_{since} or later"),
        "an architecture has the instructions of those before it, and no later ones (PTX ISA, \"Target ISA Notes\")",
        help.to_owned(),
    );
}

/// A thread-value layout with its tile, split into vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TvTile {
    /// `(tid,vid) -> (TileM,TileN)`.
    pub tv: Layout,
    /// `(tid,VEC,UNROLL,STEP) -> (TileM,TileN)`.
    pub frag: Layout,
    /// Extents of the last three modes of `frag`.
    pub values: [i64; 3],
}

/// The tile of a thread-value layout, (TileM,TileN), and the layout, whose threads have whole vectors. What they cover is proved of the
/// tiling that has them: `tiling::flaws`.
pub fn tv_layout(checks: &mut Checks, thr: &Layout, val: &Layout, vec: i64) -> Option<([i64; 2], Layout)> {
    let (threads, values) = (thr.size(), val.size());
    if threads.checked_mul(values).is_none_or(|size| size > MAX_TILE) {
        checks.push(
            Code::TileSize,
            format!("{threads} threads x {values} values"),
            format!("at most {MAX_TILE} elements in a tile"),
            "a block with this many elements leaves most of the GPU idle, and the proof checks each element",
            "fewer values a thread".into(),
        );
        return None;
    }
    let (tiler, tv) =
        checks.sound("threads and values that are numbered once make a tile", make_layout_tv(thr, val))?;
    let extent = |mode: usize| tiler.mode(mode).and_then(|e| e.as_int()).ok_or_else(|| tiler.to_string());
    let [tile_m, tile_n] = [0, 1].map(|mode| checks.sound("a tiler has extents along M and N", extent(mode)));
    let whole = checks.require(
        values % vec == 0,
        Code::VectorContiguity,
        format!("{values} values a thread, vectors of {vec}, remainder {}", values % vec),
        &format!("{values} % {vec} == 0"),
        "the last vector would hold elements of another thread",
        "values contiguous along N, such as val=(16,16):(16,1), or a smaller vector",
    );
    let tile = [tile_m?, tile_n?];
    whole.then_some((tile, tv))
}

/// Splits the values of a thread-value layout into vectors. `unroll` = 0 takes all vectors of a thread at once.
pub fn tv_tile(checks: &mut Checks, tv: &Layout, val: &Layout, vec: i64, unroll: u32) -> Option<TvTile> {
    let vectors = val.size() / vec;
    let unroll = if unroll == 0 { vectors } else { i64::from(unroll) };
    if unroll > vectors || vectors % unroll != 0 {
        checks.push(
            Code::Unroll,
            format!("unroll = {unroll}, {vectors} vectors a thread, remainder {}", vectors % unroll),
            format!("{vectors} % unroll == 0"),
            "the last step would load vectors that no thread owns",
            format!("unroll = 0 for all {vectors} at once, or a divisor of {vectors}"),
        );
        return None;
    }
    let [threads, values] = modes(checks, tv)?;
    let frag = match split_values(&threads, &values, [vec, unroll, vectors / unroll]) {
        Ok(frag) => frag,
        Err(error) => {
            checks.push(
                Code::Unroll,
                format!(
                    "unroll = {unroll}, {vectors} vectors of {vec} a thread, val = {val}; {}",
                    error.what_was_found()
                ),
                format!("(VEC,UNROLL,STEP) = ({vec},{unroll},{}) ends where modes of val do", vectors / unroll),
                error.why(),
                "unroll = 1, or a number of vectors that divides a mode of val".into(),
            );
            return None;
        }
    };
    Some(TvTile { tv: tv.clone(), frag, values: [vec, unroll, vectors / unroll] })
}

/// `(tid,vid)` to `(tid,VEC,UNROLL,STEP)`, by composition of the value mode with `(VEC,UNROLL,STEP):(1,VEC,VEC*UNROLL)`.
fn split_values(threads: &Layout, values: &Layout, extents: [i64; 3]) -> Result<Layout, LayoutError> {
    let shape = IntTuple::tuple(extents.map(IntTuple::int))?;
    let values = composition(values, &make_layout(&shape)?)?;
    Layout::from_modes(core::iter::once(threads.clone()).chain(values.modes()))
}

/// Whether the values of such a tile can be split into vectors, `unroll` of them at once.
pub fn can_unroll(thr: &Layout, val: &Layout, vec: i64, unroll: i64) -> bool {
    let modes = make_layout_tv(thr, val).ok().and_then(|(_, tv)| tv.mode(0).zip(tv.mode(1)));
    let extents = [vec, unroll, val.size() / (vec * unroll).max(1)];
    modes.is_some_and(|(threads, values)| split_values(&threads, &values, extents).is_ok())
}

/// The threads and the values of a TV layout.
fn modes(checks: &mut Checks, tv: &Layout) -> Option<[Layout; 2]> {
    let both = tv.mode(0).zip(tv.mode(1)).map(|(threads, values)| [threads, values]);
    checks.sound("a TV layout has threads and values", both.ok_or_else(|| tv.to_string()))
}

#[cfg(test)]
mod tests;

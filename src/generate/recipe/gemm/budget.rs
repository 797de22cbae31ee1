//! What an epilogue may take of a consumer's registers: tensors that are kept, and elements that are loaded ahead. How many registers a
//! consumer has is decided in `tilings`, and what products need is counted by `Tiling::registers`.

use super::tilings::parts_of_tile;
use super::{Factors, Gemm, kept, prefetch};
use crate::plan::{Fact, Operand};
use crate::recipe::Isa;
use crate::tiling::{SmemTensor, Task, Tiling};

/// Operations of an epilogue that computes in few registers, at most.
const SHORT: usize = 10;

/// Elements that are computed together where registers are no concern: a whole slice.
const ALL: u64 = 128;

/// What a budget is made for.
#[derive(Clone, Copy)]
pub(super) struct Needs<'a> {
    pub(super) recipe: &'a Gemm,
    pub(super) tiling: &'a Tiling,
    /// The epilogue inputs.
    pub(super) reads: &'a [Operand],
}

impl Needs<'_> {
    /// Tensors that go with D: inputs of the epilogue, and E.
    pub(super) fn tensors(&self) -> u64 {
        (self.reads.len() + self.recipe.epilogue.outputs() - 1) as u64
    }

    /// Accumulators of a thread.
    pub(super) fn accumulators(&self) -> u64 {
        let [m, n, _] = self.tiling.tile.map(i64::unsigned_abs);
        m * n / u64::from(self.tiling.threads_of_tile()).max(1)
    }

    /// The same during a mainloop: more where sums move to f32.
    pub(super) fn held(&self) -> u64 {
        self.tiling.accumulators()
    }
}

/// The registers of a text's threads.
#[derive(Clone, Debug)]
pub(super) enum Budget {
    Sm80(Warps),
    Sm90a(Box<Warpgroups>),
}

/// `mma.sync`: each warp copies, multiplies and stores.
#[derive(Clone, Debug)]
pub(super) struct Warps {
    /// Accumulators of a thread.
    pub(super) accumulators: u64,
    /// Atoms of the MMA along N whose epilogue inputs are read together.
    pub(super) at_once: u64,
    /// Whether fragments are fetched one k-block ahead.
    pub(super) fetches_ahead: bool,
}

/// WGMMA: the threads of the producer's warpgroup, and those of the consumers' warpgroups.
#[derive(Clone, Debug)]
pub(super) struct Warpgroups {
    /// Registers that a producer's thread asks for; `None`: those of the launch.
    pub(super) producer: Option<u32>,
    /// Registers that a consumer's thread asks for.
    pub(super) consumer: Option<u32>,
    /// Accumulators of a consumer's thread.
    pub(super) accumulators: u64,
    /// Where a tile of D stays in registers until the next tile is computed on: D's buffers, and A's stages behind them.
    pub(super) kept: Option<SmemTensor>,
    /// Where the words of each epilogue input begin that is prefetched, and how many it has of a slice; empty without prefetch.
    pub(super) ahead: Vec<[u64; 2]>,
    /// Words of a slice that wait during a mainloop.
    pub(super) words: u64,
    /// How the epilogue computes a tile that TMA stores.
    pub(super) tma: Pace,
    /// How it computes a D of any alignment.
    pub(super) direct: Pace,
    /// Whether the addresses of epilogue inputs are recomputed for each slice. In clusters that share both operands nvcc 13.0
    /// computes all of them before the mainloop otherwise, and spills 120 to 380 bytes; elsewhere C takes 1 to 5 % less
    /// time if they are not. For a D of any alignment they always are.
    pub(super) reads_anew: bool,
}

/// How many elements of D an epilogue works on at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Elements that are computed together.
    pub(super) few: u64,
    /// Whether a branch that ptxas cannot remove keeps reads and elements apart.
    pub(super) apart: bool,
    /// Elements that are stored together, one by one.
    pub(super) stores: u64,
}

impl Warpgroups {
    pub(super) fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether the mainloop overlaps with stores or prefetch.
    pub(super) fn has_meanwhile(&self) -> bool {
        self.keeps() || !self.ahead.is_empty()
    }

    /// Words of a slice of all prefetched inputs.
    pub(super) fn words_ahead(&self) -> u64 {
        self.ahead.iter().map(|[_, count]| count).sum()
    }
}

impl Budget {
    /// The budget of a text whose tiling is decided.
    pub(super) fn of(isa: Isa, needs: &Needs<'_>) -> Self {
        match isa {
            Isa::Sm80 => Budget::Sm80(Warps {
                accumulators: needs.accumulators(),
                at_once: at_once(needs),
                fetches_ahead: fetches_ahead(needs),
            }),
            Isa::Sm90a => Budget::Sm90a(Box::new(warpgroups(needs))),
        }
    }

    /// How a thread's registers are shared.
    pub(super) fn fact(&self) -> Fact {
        let value = match self {
            Budget::Sm80(Warps { accumulators, at_once, fetches_ahead }) => {
                let ahead = if *fetches_ahead { ", fragments one k-block ahead" } else { "" };
                format!("{accumulators} accumulators{ahead}; the epilogue reads for {at_once} atoms at a time")
            }
            Budget::Sm90a(of) => {
                let kept = if of.keeps() { ", a kept tile of D" } else { "" };
                let ahead = if of.ahead.is_empty() {
                    String::new()
                } else {
                    format!(", {} words of prefetched inputs a slice", of.words_ahead())
                };
                let pace = |pace: Pace| match pace.few {
                    1 => "one element".to_owned(),
                    ALL.. => "a slice".to_owned(),
                    few => format!("{few} elements"),
                };
                format!(
                    "{} accumulators{kept}{ahead}; the epilogue computes {} at a time, {} where D lies anywhere",
                    of.accumulators,
                    pace(of.tma),
                    pace(of.direct)
                )
            }
        };
        Fact::new("registers", value, "how a thread that computes shares them")
    }
}

fn warpgroups(needs: &Needs<'_>) -> Warpgroups {
    let registers = |task| needs.tiling.roles.iter().find(|role| role.task == task)?.registers;
    let consumer = registers(Task::Consume);
    let (accumulators, outputs) = (needs.accumulators(), needs.recipe.epilogue.outputs() as u64);
    let kept = kept::lent(needs, consumer);
    let words = prefetch::registers(needs, consumer, kept.is_some());
    let begins = words.iter().scan(0, |next, count| Some(core::mem::replace(next, *next + count)));
    let ahead: Vec<[u64; 2]> = begins.zip(&words).map(|(first, count)| [first, *count]).collect();
    let slices = needs.tiling.smem("D").map_or(1, |staged| parts_of_tile(needs.tiling, staged)).max(1);
    let all_ahead = words.iter().sum();
    let is_tight = accumulators > roomy(needs, consumer, all_ahead, kept.is_some());
    // Of a kept tile one copy's elements.
    let few = if !is_tight {
        ALL
    } else if kept.is_some() {
        8
    } else {
        2
    };
    let [along_m, along_n, _] = needs.tiling.cluster;
    let (has_reads, has_ahead) = (!needs.reads.is_empty(), !ahead.is_empty());
    Warpgroups {
        producer: registers(Task::Produce),
        consumer,
        accumulators,
        words: if kept.is_some() { kept::registers(needs) / u64::from(slices) } else { all_ahead },
        tma: Pace { few, apart: has_reads && !has_ahead && is_tight, stores: 1 },
        // The accumulators of later slices are live.
        direct: Pace { few: outputs, apart: has_reads || is_tight, stores: 8 / outputs.max(1) },
        reads_anew: along_m > 1 && along_n > 1,
        kept,
        ahead,
    }
}

/// The most accumulators of a thread that leave enough registers for a slice of D and prefetched inputs. Also for 32
/// elements of each tensor that is read meanwhile, and for the addresses of many tensors, or of the elements of one
/// along a stride. The prefetched inputs of a kept tile are taken back one copy at a time.
fn roomy(needs: &Needs<'_>, given: Option<u32>, ahead: u64, keeps: bool) -> u64 {
    if keeps && ahead > 0 {
        return 0;
    }
    // E is none that is read.
    let others = if ahead > 0 { needs.recipe.epilogue.outputs() as u64 - 1 } else { needs.tensors() };
    let parts = needs.tiling.smem("D").map_or(1, |staged| parts_of_tile(needs.tiling, staged));
    let addresses = match needs.reads.iter().any(prefetch::is_strided) {
        true => 2 * 32,
        false if others > 2 => 16,
        false => 0,
    };
    let waiting = if keeps { kept::registers(needs) } else { u64::from(parts) * ahead };
    kept::most(given).saturating_sub(32 * (1 + others) + addresses + waiting)
}

/// Atoms of an MMA along N whose epilogue inputs the text for sm_80 reads at once: 32 registers of inputs and
/// addresses. One atom with tf32, a long epilogue and accumulators in half of a thread's registers: nvcc 13.0
/// spilled with gelu of C and an auxiliary. Without inputs, all atoms.
fn at_once(needs: &Needs<'_>) -> u64 {
    let accumulators = needs.accumulators();
    if needs.reads.is_empty() {
        return accumulators.max(1);
    }
    if needs.recipe.dtype == Factors::Tf32 && accumulators >= 128 && !needs.recipe.epilogue.is_short(SHORT) {
        return 1;
    }
    let address = |operand| if prefetch::is_strided(operand) { 2 } else { 0 };
    let words: u64 = needs.reads.iter().map(|operand| operand.dtype.bytes().0.div_ceil(4) + address(operand)).sum();
    (8 / words.max(1)).max(1)
}

/// Whether fragments are fetched one k-block ahead: if a k-tile has several, and a thread has registers for two.
/// With more registers than these nvcc 13.0 spills with tf32 and E; with as many, it spills with three epilogue
/// inputs.
fn fetches_ahead(needs: &Needs<'_>) -> bool {
    let (tiling, accumulators) = (needs.tiling, needs.accumulators());
    let operands = tiling.registers().map_or(u64::MAX, |all| all.saturating_sub(accumulators));
    let of_k = tiling.mmas.iter().find_map(|mma| Some(mma.tiled().ok()?.tile_mnk().ok()?[2]));
    let most = if needs.tensors() > 2 { 176 } else { 192 };
    of_k.is_some_and(|k| k < tiling.tile[2]) && accumulators.saturating_add(operands.saturating_mul(2)) <= most
}

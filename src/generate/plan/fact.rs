//! The facts that a plan prints of its decisions.

use std::borrow::Cow;

use crate::tiling::{CopyCount, CopyOp, Counts, Engine, TileCopy, Tiling};

/// One decision or count, with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The subject.
    pub name: Cow<'static, str>,
    /// The decided or counted quantity, with its unit.
    pub value: String,
    /// The reason, or the source.
    pub why: String,
}

impl Fact {
    /// A decision under its name, with its unit and its reason.
    pub fn new(name: impl Into<Cow<'static, str>>, value: impl ToString, why: &str) -> Self {
        Self { name: name.into(), value: value.to_string(), why: why.to_owned() }
    }

    /// The facts of a tiling: tile, MMAs, warps, shared memory, and the instructions of a k-tile.
    pub fn of_tiling(tiling: &Tiling) -> Vec<Self> {
        let Tiling { tile: [m, n, k], smem, mmas, roles, .. } = tiling;
        let mut facts = vec![Self::new("tile", format!("({m},{n},{k})"), "(BM,BN,BK)")];
        for mma in mmas {
            let at_a_time = mma.tiled().and_then(|tiled| tiled.tile_mnk());
            let why = at_a_time.map_or(String::new(), |[m, n, k]| {
                format!("TiledMma: atom and thread layout; ({m},{n},{k}) at a time")
            });
            facts.push(Self::new("mma", format!("{} x {}", mma.atom, mma.atoms), &why));
        }
        for role in roles {
            let registers = role.registers.map_or_else(String::new, |each| format!(", {each} registers a thread"));
            let value = format!("{} {}{registers}", role.threads.div_ceil(32), role.task);
            facts.push(Self::new("warps", value, "roles, from warp 0 on"));
        }
        for tensor in smem {
            let swizzle = tensor.swizzle.map_or_else(String::new, |s| format!("{s} o "));
            facts.push(Self::new(format!("s{}", tensor.name), format!("{swizzle}{}", tensor.layout), tensor.modes));
        }
        if let Ok(counts) = tiling.counts() {
            facts.extend(Self::counted(tiling, &counts));
            facts.push(Self::mix(tiling, &counts));
            let why = "in flight while one stage is multiplied";
            facts.push(Self::new("in flight", counts.in_flight, why));
            facts.extend(Self::fragments(tiling, &counts));
        }
        facts
    }

    /// What each copy of a tile asks for.
    pub(crate) fn copies(tiling: &Tiling) -> Vec<Self> {
        tiling.counts().map_or_else(|_| Vec::new(), |counts| Self::counted(tiling, &counts))
    }

    fn counted(tiling: &Tiling, counts: &Counts) -> Vec<Self> {
        let copy = |(copy, count): (&TileCopy, &CopyCount)| {
            let sectors = if count.sectors > 0 { format!(", {} sectors", count.sectors) } else { String::new() };
            let value = format!("{} of {}{sectors}", count.instructions, count.width);
            Self::new("copies", value, &format!("{}: {}; {}", copy.name, copy.what, engine(copy)))
        };
        tiling.copies.iter().zip(&counts.copies).map(copy).collect()
    }

    /// The instructions of a k-tile for warps and TMA.
    fn mix(tiling: &Tiling, counts: &Counts) -> Self {
        let mut mix: Vec<(&str, u64)> = tiling.mmas.iter().map(|mma| (mma.atom.as_str(), counts.mmas)).collect();
        for (copy, count) in tiling.copies.iter().zip(&counts.copies).filter(|(copy, _)| copy.is_of_k_tile()) {
            // A copy through registers loads and stores.
            let (name, times) = match copy.op() {
                Some(CopyOp::Through { .. }) => ("loads and stores", 2),
                Some(op) => (op.name(), 1),
                None => ("boxes of TMA", 1),
            };
            match mix.iter_mut().find(|(known, _)| *known == name) {
                Some((_, number)) => *number += times * count.instructions,
                None => mix.push((name, times * count.instructions)),
            }
        }
        let all: u64 = mix.iter().map(|(_, number)| number).sum();
        let products = 100.0 * counts.mmas as f64 / all.max(1) as f64;
        let text: Vec<String> = mix.iter().map(|(name, number)| format!("{number} {name}")).collect();
        let why = format!("instructions of all warps for a k-tile: {}", text.join(", "));
        Self::new("mix", format!("{products:.1}% products"), &why)
    }

    /// Registers for operands and accumulators.
    fn fragments(tiling: &Tiling, counts: &Counts) -> Option<Self> {
        let factors = tiling.registers().ok()? - counts.accumulators;
        let factors = if factors > 0 { format!(", {factors} of A and B for one k") } else { String::new() };
        let value = format!("{} accumulators{factors}", counts.accumulators);
        (counts.mmas > 0).then(|| Self::new("fragments", value, "registers of a thread that computes"))
    }
}

/// Who copies, in CuTe notation: the layouts of `make_tiled_copy`, the MMA whose fragments they are, or the box.
fn engine(copy: &TileCopy) -> String {
    match &copy.engine {
        Engine::Threads { op, threads, values } => format!("TiledCopy of {}, thr {threads}, val {values}", op.name()),
        Engine::Fragments(op) => format!("{} over the fragments of the MMA", op.name()),
        Engine::Tma { extents: [rows, columns], sharers, rounds } => {
            let rounds = if *rounds { ", rounded to tf32" } else { "" };
            let sharers = if *sharers > 1 { format!(", {sharers} share it") } else { String::new() };
            format!("TMA, boxes of ({rows},{columns}){rounds}{sharers}")
        }
    }
}

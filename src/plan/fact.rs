//! What a plan tells of its decisions.

use crate::tiling::Tiling;

/// One decision or count, with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub name: &'static str,
    /// What was decided or counted, with its unit.
    pub value: String,
    /// Why, or from what it follows.
    pub why: String,
}

impl Fact {
    pub(crate) fn new(name: &'static str, value: impl ToString, why: &str) -> Self {
        Self { name, value: value.to_string(), why: why.to_owned() }
    }

    /// What a tiling says of itself: tile, MMAs, warps, shared memory, and what a k-tile asks for.
    pub(crate) fn of_tiling(tiling: &Tiling) -> Vec<Self> {
        let Tiling { tile: [m, n, k], smem, mmas, roles, .. } = tiling;
        let mut facts = vec![Self::new("tile", format!("({m},{n},{k})"), "(BM,BN,BK)")];
        for mma in mmas {
            facts.push(Self::new("mma", format!("{} x {}", mma.atom, mma.atoms), "atom, and where they are"));
        }
        for role in roles {
            let value = format!("{} {}", role.threads.div_ceil(32), role.task);
            facts.push(Self::new("warps", value, "what they are for, from warp 0 on"));
        }
        for tensor in smem {
            let swizzle = tensor.swizzle.map_or_else(String::new, |s| format!("{s} o "));
            let name = match tensor.name {
                "A" => "sA",
                "B" => "sB",
                _ => "sD",
            };
            facts.push(Self::new(name, format!("{swizzle}{}", tensor.layout), tensor.modes));
        }
        if let Ok(counts) = tiling.counts() {
            for (copy, count) in tiling.copies.iter().zip(&counts.copies) {
                let sectors = if count.sectors > 0 { format!(", {} sectors", count.sectors) } else { String::new() };
                let value = format!("{} of {}{sectors}", count.instructions, count.width);
                facts.push(Self::new("copies", value, &format!("{}: {}", copy.name, copy.what)));
            }
            facts.push(Self::new("mmas", counts.mmas, "instructions of a k-tile"));
            let why = "on their way while one stage is computed on";
            facts.push(Self::new("in flight", counts.in_flight, why));
        }
        facts
    }
}

//! The proofs of what an MMA multiplies: a thread has its factors, and scales come with them.

use super::cover::{Flaws, Law, ONCE, others_in, tile_layout};
use super::moves::Moves;
use super::{Factor, TileMma, Tiling};
use crate::atom::Operand;

impl Tiling {
    /// A thread has what it multiplies, where A or B come from the accumulators of another MMA; scales come with the factors.
    pub(super) fn factor_flaws(&self, flaws: &mut Flaws) {
        for mma in &self.mmas {
            for (operand, factor) in mma.factors() {
                match factor {
                    Factor::Accumulators(name) => self.multiplies_what_it_has(mma, operand, name, flaws),
                    // A tiling without pipelines is the epilogue of another one.
                    Factor::Shared(name)
                        if !self.pipelines.is_empty()
                            && self.smem(name).is_none_or(|t| t.extents()[..2] != mma.tile_of(operand)) =>
                    {
                        let [rows, columns] = mma.tile_of(operand);
                        let required = format!("a tensor of ({rows},{columns},STAGES)");
                        flaws.push(Law::CoversOnce, format!("{}: s{name} for {operand}", mma.name), required, ONCE);
                    }
                    _ => {}
                }
            }
            let Some(promotion) = mma.promotion.as_ref().filter(|_| !self.pipelines.is_empty()) else { continue };
            let of = |tensor: &&str| self.pipelines.iter().position(|pipeline| pipeline.tensors.contains(tensor));
            let factors = mma.factors().into_iter().filter_map(|(_, factor)| match factor {
                Factor::Shared(name) => Some(name),
                _ => None,
            });
            let all: Vec<Option<usize>> = factors.chain(promotion.scales.iter().copied()).map(|t| of(&t)).collect();
            if promotion.every == 0 || all.iter().any(|pipeline| pipeline.is_none() || *pipeline != all[0]) {
                let found = format!("{}: every {} k-tiles, pipelines {all:?}", mma.name, promotion.every);
                let required = "a k-tile or more, factors and scales of one pipeline";
                flaws.push(Law::Pipeline, found, required, "a sum is scaled by the scales of its own k-tiles");
            }
        }
    }

    /// Whether each thread has accumulated the elements that it multiplies next.
    fn multiplies_what_it_has(&self, mma: &TileMma, operand: Operand, from: &str, flaws: &mut Flaws) {
        let tile = mma.tile_of(operand);
        let Some(first) = self.mma(from).filter(|first| first.tile_of(Operand::C) == tile) else {
            let found = format!("{}: {operand} from the accumulators of {from}", mma.name);
            flaws.push(Law::CoversOnce, found, format!("an MMA that computes {tile:?}"), ONCE);
            return;
        };
        let values = |of: &TileMma, operand| {
            let own = of.tiled().and_then(|of| of.thread_values(operand, &tile_layout(tile)?));
            own.and_then(|own| Moves::new(&own, 1))
        };
        let [has, takes] = [(first, Operand::C), (mma, operand)].map(|(of, operand)| values(of, operand));
        let (Some(has), Some(takes)) = (flaws.take(first.name, has), flaws.take(mma.name, takes)) else { return };
        if let Some(thread) = others_in(&takes, &has) {
            let found = format!("{}: thread {thread} multiplies others than it has accumulated", mma.name);
            let because = "a thread multiplies its own registers: nothing moves them between threads";
            flaws.push(Law::CoversOnce, found, format!("the accumulators of {from}, of the same thread"), because);
        }
    }
}

//! Pipelines: tensors that are filled together, stage by stage, and handed from producers to consumers.

use super::cover::{Flaws, Law};
use super::{Completion, Engine, Factor, Lives, Place, SmemTensor, Task, TileCopy, Tiling};
use crate::units::Bytes;

/// Tensors in shared memory that are filled together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Its name in messages.
    pub name: &'static str,
    /// Its tensors, each with a place for every stage.
    pub tensors: Vec<&'static str>,
    /// Stages.
    pub stages: i64,
    /// How the consumers learn that a stage is filled.
    pub completes: Completion,
}

/// What the mbarriers of a pipeline wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// `full`: the thread that asks TMA says that a stage is being filled, and each thread of a warp that copies into it.
    pub full: u32,
    /// Bytes that TMA brings to a stage.
    pub bytes: Bytes,
    /// `empty`: the warps that read a stage, of all CTAs that receive what this one asks for.
    pub empty: u32,
    /// `turn`: the warps of the team that was there before, where teams take turns.
    pub turn: u32,
    /// `sent` and `received`: the warps of the other CTAs that compute the tile, where each computes a part of K.
    pub parts: u32,
}

/// Bytes that an mbarrier counts at most (PTX ISA, "Tracking asynchronous operations by the mbarrier object").
const MOST_BYTES: u64 = (1 << 20) - 1;

impl Tiling {
    /// The copies that fill a pipeline.
    pub(super) fn copies_of<'a>(&'a self, pipeline: &'a Pipeline) -> impl Iterator<Item = &'a TileCopy> {
        let into = |copy: &&TileCopy| matches!((copy.from, copy.to), (Place::Global(_), Place::Shared(name)) if pipeline.tensors.contains(&name));
        self.copies.iter().filter(into)
    }

    /// What the mbarriers of a pipeline wait for.
    pub fn arrivals(&self, pipeline: &Pipeline) -> Arrivals {
        let (mut bytes, mut receivers, mut full) = (0, 1, 0);
        for copy in self.copies_of(pipeline) {
            match &copy.engine {
                Engine::Tma { sharers, .. } => {
                    // Itself, and of a row or column of the cluster the others.
                    receivers += sharers.saturating_sub(1);
                    bytes += copy.tile.iter().product::<i64>() as u64 * copy.dtype.bytes().0;
                }
                Engine::Threads { threads, .. } if copy.completes == Completion::Mbarrier => {
                    full += (threads.size() as u32).next_multiple_of(32);
                }
                Engine::Threads { .. } | Engine::Fragments(_) => {}
            }
        }
        let warps = self.threads_of_tile().div_ceil(32);
        Arrivals {
            full: full + u32::from(bytes > 0),
            bytes: Bytes(bytes),
            empty: warps * receivers,
            turn: if self.teams() > 1 { warps } else { 0 },
            parts: warps * (self.splits() - 1),
        }
    }

    pub(super) fn pipeline_flaws(&self, flaws: &mut Flaws) {
        for pipeline in &self.pipelines {
            self.stage_flaws(pipeline, flaws);
            self.handover_flaws(pipeline, flaws);
        }
        for copy in &self.copies {
            let (Place::Global(_), Place::Shared(tensor)) = (copy.from, copy.to) else { continue };
            let of = self.pipelines.iter().filter(|pipeline| pipeline.tensors.contains(&tensor)).count();
            let asynchronous = matches!(copy.completes, Completion::CpAsyncGroup | Completion::Mbarrier);
            if of > 1 || (of == 0 && asynchronous) {
                let found = format!("{}: s{tensor} is in {of} pipelines", copy.what);
                flaws.push(Law::Pipeline, found, "one", "consumers wait for a pipeline, and free its stages");
            }
        }
    }

    /// Each tensor is there, has the stages, and is filled once for each.
    fn stage_flaws(&self, pipeline: &Pipeline, flaws: &mut Flaws) {
        let Pipeline { name, stages, completes, .. } = pipeline;
        for tensor in &pipeline.tensors {
            let staged = self.smem(tensor).map(|tensor| tensor.extents()[2]);
            if staged != Some(*stages) {
                let found = format!("{name}: s{tensor} with {staged:?} stages");
                flaws.push(Law::Pipeline, found, format!("{stages} stages"), "a stage has a place in each tensor");
            }
            let fills: Vec<&TileCopy> =
                self.copies_of(pipeline).filter(|copy| copy.to == Place::Shared(tensor)).collect();
            if fills.len() != 1 || fills[0].completes != *completes {
                let how: Vec<String> = fills.iter().map(|copy| format!("{:?}", copy.completes)).collect();
                let found = format!("{name}: s{tensor} is filled by [{}]", how.join(", "));
                let required = format!("one copy that completes by {completes:?}");
                flaws.push(Law::Pipeline, found, required, "consumers wait for a stage once, in one way");
            }
        }
    }

    /// Somebody fills the stages, somebody else waits for them, and the mbarriers can count what they wait for.
    fn handover_flaws(&self, pipeline: &Pipeline, flaws: &mut Flaws) {
        if pipeline.completes != Completion::Mbarrier {
            return;
        }
        let name = pipeline.name;
        for (task, does) in [(Task::Produce, "fill it"), (Task::Consume, "read it")] {
            if self.threads_of(task) == 0 {
                let found = format!("{name}: no threads that {does}");
                flaws.push(Law::Pipeline, found, "a producer and a consumer", "its other side waits for ever");
            }
        }
        let Arrivals { bytes, .. } = self.arrivals(pipeline);
        if bytes.0 == 0 || bytes.0 > MOST_BYTES {
            let (found, required) = (format!("{name}: {bytes} a stage"), format!("1 to {MOST_BYTES} bytes"));
            flaws.push(Law::Pipeline, found, required, "an mbarrier counts no more");
        }
    }

    /// A tensor is used while it lives.
    pub(super) fn lifetime_flaws(&self, tensor: &SmemTensor, flaws: &mut Flaws) {
        let mut wrong = |what: &str, when: &str| {
            let found = format!("{what}: s{} lives in the {:?}", tensor.name, tensor.lives);
            flaws.push(Law::Lifetime, found, format!("a tensor that is there {when}"), "others lie in its memory then");
        };
        for copy in self.copies.iter().filter(|copy| copy.is_of(tensor.name)) {
            match (tensor.lives, copy.is_of_k_tile()) {
                (Lives::Epilogue, true) => wrong(copy.what, "for each k-tile"),
                (Lives::Mainloop, false) => wrong(copy.what, "behind the last k-tile"),
                _ => {}
            }
        }
        let is_read = |mma: &super::TileMma| {
            mma.factors().iter().any(|(_, factor)| *factor == Factor::Shared(tensor.name))
                || mma.promotion.as_ref().is_some_and(|promotion| promotion.scales.contains(&tensor.name))
        };
        if tensor.lives == Lives::Epilogue && self.mmas.iter().any(is_read) {
            wrong("MMA", "for each k-tile");
        }
    }
}

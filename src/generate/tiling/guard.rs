//! The proof that what lies outside of a matrix is neither read nor written.

use super::cover::{Flaws, Law};
use super::{Engine, Guard, Place, TileCopy};

impl TileCopy {
    /// What guards the elements outside of a matrix.
    pub(super) fn guard_flaws(&self, flaws: &mut Flaws) {
        let Some(global) = self.global() else {
            if self.guard != Guard::None {
                let found = format!("{}: {:?}", self.what, self.guard);
                flaws.push(Law::Guarded, found, "no guard", "a tile in shared memory has no outside");
            }
            return;
        };
        let writes = matches!(self.to, Place::Global(_));
        let fits = match (&self.guard, &self.engine) {
            (Guard::None, Engine::Threads { .. } | Engine::Fragments(_)) => global.whole,
            (Guard::TensorMap, Engine::Tma { .. }) => true,
            (Guard::ZeroFill, Engine::Threads { op, .. }) => !writes && op.zero_filling().is_some(),
            // What is not loaded into a thread's registers is of no use to it: the text leaves it out.
            (Guard::Predicate, Engine::Threads { .. } | Engine::Fragments(_)) => writes || self.to == Place::Threads,
            (Guard::Elements, Engine::Threads { .. } | Engine::Fragments(_)) => true,
            _ => false,
        };
        if !fits {
            flaws.push(
                Law::Guarded,
                format!("{}: guard {:?}", self.what, self.guard),
                "a predicate for each instruction, or a tensor map",
                "the last tiles of a matrix reach past its end",
            );
        }
        // One predicate decides over a whole vector.
        if let (Guard::ZeroFill | Guard::Predicate, Engine::Threads { op, .. }) = (&self.guard, &self.engine) {
            let (width, element) = (op.width(), self.dtype.bytes());
            let vector = (width.0 / element.0) as i64;
            if vector == 0 || !width.0.is_multiple_of(element.0) {
                flaws.push(
                    Law::Aligned,
                    format!("{}: {width} at once, of {}", self.what, self.dtype),
                    format!("a multiple of {element}"),
                    "a copy moves whole elements",
                );
            } else if global.multiple % vector != 0 {
                flaws.push(
                    Law::Guarded,
                    format!("{}: one predicate for {vector} elements", self.what),
                    format!("extents that are a multiple of {vector}, found multiples of {}", global.multiple),
                    "a vector would lie across the end of a row",
                );
            }
        }
    }
}

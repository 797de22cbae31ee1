//! How the shapes of a kernel's tensors belong together.

use serde::{Deserialize, Serialize};

use crate::plan::{ModeStride, Operand};
use crate::view::Access;

/// How the shapes of a kernel's tensors follow from a problem, and the problem from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Shapes {
    /// One shape for all.
    Elementwise,
    /// A `(M,K)`, B `(K,N)`, all others `(M,N)`, perhaps each with a last mode L.
    Product {
        /// Whether there is a mode L.
        batched: bool,
    },
    /// Inputs `(M,N)`, outputs `(M)`.
    RowSum,
}

impl Shapes {
    /// The extents that a problem is given by: `MxNxK` for a product, with L behind them where there are batches; the shape
    /// of the tensors for an elementwise kernel.
    pub fn problem_modes(self, operands: &[Operand]) -> usize {
        match self {
            Shapes::Elementwise => operands.last().map_or(0, |o| o.strides.len()),
            Shapes::RowSum => 2,
            Shapes::Product { batched } => 3 + usize::from(batched),
        }
    }

    /// How many extents a problem has, and which: `3: MxNxK`.
    pub fn extents(self, operands: &[Operand]) -> String {
        match (self, self.problem_modes(operands)) {
            (Shapes::Product { batched: false }, _) => "3: MxNxK".to_owned(),
            (Shapes::Product { batched: true }, _) => "4: MxNxKxL".to_owned(),
            (Shapes::Elementwise, rank) => format!("{rank}, the rank of the tensors"),
            (Shapes::RowSum, _) => "2: MxN".to_owned(),
        }
    }

    /// A small problem that leaves something over in every mode.
    pub fn example(self, operands: &[Operand]) -> Vec<i64> {
        let extents: &[i64] = match (self, self.problem_modes(operands)) {
            (Shapes::Product { batched: false }, _) => &[255, 130, 67],
            (Shapes::Product { batched: true }, _) => &[131, 67, 45, 3],
            (_, 1) => &[100_003],
            (_, 2) => &[1023, 511],
            (_, 3) => &[7, 65, 129],
            (_, 4) => &[3, 5, 33, 65],
            _ => &[2, 3, 5, 17, 33],
        };
        extents.to_vec()
    }

    /// The problem that tensors of these shapes belong to, in the order of the operands: the first tensor's shape, and for a
    /// product what A and B say. `None` where there are too few.
    pub fn problem_of(self, shapes: &[&[i64]]) -> Option<Vec<i64>> {
        match (self, shapes) {
            (Shapes::Elementwise | Shapes::RowSum, [first, ..]) => Some(first.to_vec()),
            (Shapes::Product { .. }, [[m, k, batches @ ..], [_, n, ..], ..]) => {
                Some([*m, *n, *k].into_iter().chain(batches.iter().copied()).collect())
            }
            _ => None,
        }
    }

    /// The problem that arrays of these shapes belong to, one for each operand that the kernel reads: axes in the order of the
    /// modes. An array may lack the axis of a mode of stride 0, or have extent 1 there; so it may for the batches of a product.
    /// Any other lacks modes in front. An extent that no array tells is 1. `None` where an array has too many axes.
    pub fn problem_of_arrays(self, operands: &[Operand], arrays: &[&[i64]]) -> Option<Vec<i64>> {
        let rank = self.problem_modes(operands);
        let numbers: Vec<i64> = (0..rank as i64).collect();
        let modes = self.shapes(operands, &numbers)?;
        let (mut told, mut broadcast) = (vec![None; rank], vec![None; rank]);
        let read = operands.iter().zip(&modes).filter(|(operand, _)| operand.access == Access::Read);
        for ((operand, modes), array) in read.zip(arrays) {
            let Some(extents) = self.placed(&operand.strides, array)? else { continue };
            for ((mode, stride), extent) in modes.iter().zip(&operand.strides).zip(extents) {
                let one_for_all = *stride == ModeStride::Broadcast || Some(*mode) == self.batches();
                let facts = if one_for_all { &mut broadcast } else { &mut told };
                if !one_for_all || extent != 1 {
                    facts.get_mut(*mode as usize)?.get_or_insert(extent);
                }
            }
        }
        Some(told.into_iter().zip(broadcast).map(|(told, broadcast)| told.or(broadcast).unwrap_or(1)).collect())
    }

    /// Which extent of a problem counts batches, where it has any: the last mode of each tensor.
    fn batches(self) -> Option<i64> {
        matches!(self, Shapes::Product { batched: true }).then_some(3)
    }

    /// The extent of an array along each mode, 1 where it lacks the axis. `Some(None)` where several ways to place the axes
    /// would do.
    fn placed(self, strides: &[ModeStride], axes: &[i64]) -> Option<Option<Vec<i64>>> {
        let rank = strides.len();
        let ones = axes.iter().take(axes.len().saturating_sub(rank)).take_while(|axis| **axis == 1).count();
        let axes = &axes[ones..];
        let lacks = rank.checked_sub(axes.len())?;
        let last = self.batches().map(|_| rank - 1);
        let without = |mode: &usize| strides[*mode] == ModeStride::Broadcast || Some(*mode) == last;
        let free: Vec<usize> = (0..rank).filter(without).collect();
        let dropped: Vec<usize> = match free.len() {
            n if n == lacks => free,
            n if n > lacks && lacks > 0 => return Some(None),
            _ => (0..lacks).collect(),
        };
        let mut axes = axes.iter();
        (0..rank)
            .map(|mode| if dropped.contains(&mode) { Some(1) } else { axes.next().copied() })
            .collect::<Option<_>>()
            .map(Some)
    }

    /// How many operands, from the first on, determine the problem; why all others have to fit, and the help.
    pub(crate) fn agreement(self) -> (usize, &'static str, &'static str) {
        match self {
            Shapes::Product { .. } => (
                2,
                "D(m,n) is the sum over k of A(m,k) * B(k,n), with C(m,n) and auxiliary elements of the same m and n",
                "A is (M,K), B is (K,N), and the others are (M,N); a broadcast mode has stride 0, not extent 1",
            ),
            Shapes::Elementwise => (
                1,
                "an elementwise kernel reads each input at each coordinate of the outputs",
                "pass views of one shape; a broadcast mode has stride 0, not extent 1",
            ),
            Shapes::RowSum => (
                1,
                "each row has one sum, over the elements of all inputs",
                "pass views that fit together; a broadcast mode has stride 0, not extent 1",
            ),
        }
    }

    /// The shape of each operand for the extents of a problem; `None` where there is another number of them.
    pub fn shapes(self, operands: &[Operand], problem: &[i64]) -> Option<Vec<Vec<i64>>> {
        (problem.len() == self.problem_modes(operands)).then_some(())?;
        operands.iter().map(|operand| self.shape(operand, problem)).collect()
    }

    fn shape(self, operand: &Operand, problem: &[i64]) -> Option<Vec<i64>> {
        match (self, problem) {
            (Shapes::RowSum, _) if operand.access == Access::Write => Some(problem.iter().take(1).copied().collect()),
            (Shapes::Elementwise | Shapes::RowSum, _) => Some(problem.to_vec()),
            (Shapes::Product { .. }, [m, n, k, batches @ ..]) => {
                let [rows, cols] = match operand.name {
                    "A" => [m, k],
                    "B" => [k, n],
                    _ => [m, n],
                };
                Some([rows, cols].into_iter().chain(batches).copied().collect())
            }
            (Shapes::Product { .. }, _) => None,
        }
    }
}

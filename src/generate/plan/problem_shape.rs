//! How the shapes of a kernel's tensors belong together.

use serde::{Deserialize, Serialize};

use crate::plan::{ModeStride, Numbers, Operand};
use crate::view::Access;

/// Extents of a small problem that leave something over in every mode, for each number of extents.
const EXAMPLES: [&[i64]; 5] = [&[100_003], &[1023, 511], &[7, 65, 129], &[3, 5, 33, 65], &[2, 3, 5, 17, 33]];

/// The extents that a problem is given by, each with a name, and which of them are the modes of each operand.
///
/// ```
/// use cutemplate::plan::ProblemShape;
///
/// // A (M,K), B (K,N), D (M,N).
/// let product = ProblemShape::new(["M", "N", "K"], [vec![0, 2], vec![2, 1], vec![0, 1]]);
/// assert_eq!(product.to_string(), "3: MxNxK");
/// assert_eq!(product.shapes(&[4, 5, 6]), Some(vec![vec![4, 6], vec![6, 5], vec![4, 5]]));
/// assert_eq!(product.problem_of(&[&[4, 6], &[6, 5]]), Some(vec![4, 5, 6]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProblemShape {
    extents: Vec<String>,
    /// The extent of each mode of each operand.
    modes: Vec<Vec<ModeExtent>>,
    /// The extent that counts batches: an array may lack its axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batches: Option<usize>,
    /// Operands whose elements are numbers of an extent: the operand, what they say, and the extent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<(usize, Numbers, usize)>,
    example: Vec<i64>,
    because: String,
    help: String,
}

/// The extent of a mode: one of the problem's, by number, one for each group of so many coordinates, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum ModeExtent {
    Whole(usize),
    Grouped { extent: usize, group: i64 },
    Constant { constant: i64 },
}

impl ModeExtent {
    /// The extent that it is, where it is a whole one.
    fn whole(self) -> Option<usize> {
        match self {
            ModeExtent::Whole(extent) => Some(extent),
            ModeExtent::Grouped { .. } | ModeExtent::Constant { .. } => None,
        }
    }

    fn of(self, problem: &[i64]) -> Option<i64> {
        match self {
            ModeExtent::Whole(extent) => problem.get(extent).copied(),
            ModeExtent::Constant { constant } => Some(constant),
            ModeExtent::Grouped { extent, group } => {
                let coordinates = *problem.get(extent)?;
                Some(coordinates.checked_div(group)? + i64::from(coordinates.checked_rem(group)? > 0))
            }
        }
    }
}

impl core::fmt::Display for ProblemShape {
    /// How many extents a problem has, and which: `3: MxNxK`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.extents.len(), self.extents.join("x"))
    }
}

impl ProblemShape {
    /// Named extents, and for each operand, in the order of the arguments, the number of the extent of each mode.
    pub fn new<N: Into<String>>(
        extents: impl IntoIterator<Item = N>,
        modes: impl IntoIterator<Item = Vec<usize>>,
    ) -> Self {
        let extents: Vec<String> = extents.into_iter().map(Into::into).collect();
        let example = EXAMPLES.iter().find(|example| example.len() == extents.len());
        let example = example.map_or_else(|| vec![3; extents.len()], |example| example.to_vec());
        Self {
            modes: modes.into_iter().map(|modes| modes.into_iter().map(ModeExtent::Whole).collect()).collect(),
            batches: None,
            numbers: Vec::new(),
            example,
            because: "each mode of a tensor has an extent of the problem".to_owned(),
            help: "pass views of these shapes; a broadcast mode has stride 0, not extent 1".to_owned(),
            extents,
        }
    }

    /// One shape of that rank for as many operands: `(N)`, `(M,N)`, `(M0,M1,N)`.
    pub fn of_one_shape(rank: usize, operands: usize) -> Self {
        let rows = rank.saturating_sub(1);
        let name = |mode| match mode {
            mode if mode + 1 == rank => "N".to_owned(),
            _ if rows == 1 => "M".to_owned(),
            mode => format!("M{mode}"),
        };
        Self::new((0..rank).map(name), (0..operands).map(|_| (0..rank).collect())).agreeing(
            "an elementwise kernel reads each input at each coordinate of the outputs",
            "pass views of one shape; a broadcast mode has stride 0, not extent 1",
        )
    }

    /// The same; that extent counts batches. An array without its axis has one matrix for all of them.
    #[must_use]
    pub fn with_batches(self, extent: usize) -> Self {
        Self { batches: Some(extent), ..self }
    }

    /// The same; one mode of an operand has a coordinate for each group of the extent's coordinates: a scale for 128 columns.
    ///
    /// ```
    /// use cutemplate::plan::ProblemShape;
    ///
    /// // Q (M,N), and S with a scale for 128 of its columns.
    /// let quantised = ProblemShape::new(["M", "N"], [vec![0, 1], vec![0, 1]]).with_groups(1, 1, 128);
    /// assert_eq!(quantised.shapes(&[5, 300]), Some(vec![vec![5, 300], vec![5, 3]]));
    /// ```
    #[must_use]
    pub fn with_groups(mut self, operand: usize, mode: usize, group: i64) -> Self {
        let of = self.modes.get_mut(operand).and_then(|modes| modes.get_mut(mode));
        if let Some((slot, extent)) = of.and_then(|slot| slot.whole().map(|extent| (slot, extent))) {
            *slot = ModeExtent::Grouped { extent, group };
        }
        self
    }

    /// The same; one mode of an operand has always so many coordinates, whatever the problem.
    ///
    /// ```
    /// use cutemplate::plan::ProblemShape;
    ///
    /// // M points in space.
    /// let points = ProblemShape::new(["M"], [vec![0, 0]]).with_constant(0, 1, 3);
    /// assert_eq!(points.shapes(&[5]), Some(vec![vec![5, 3]]));
    /// ```
    #[must_use]
    pub fn with_constant(mut self, operand: usize, mode: usize, constant: i64) -> Self {
        if let Some(slot) = self.modes.get_mut(operand).and_then(|modes| modes.get_mut(mode)) {
            *slot = ModeExtent::Constant { constant };
        }
        self
    }

    /// The same; the elements of an operand are numbers of that extent: an index names rows of a table, offsets end groups.
    /// Tools fill such operands with these.
    ///
    /// ```
    /// use cutemplate::plan::{Numbers, ProblemShape};
    ///
    /// // X (ROWS,N), Index (M), Y (M,N).
    /// let gather = ProblemShape::new(["M", "N", "ROWS"], [vec![2, 1], vec![0], vec![0, 1]]);
    /// let gather = gather.with_numbers(1, Numbers::Coordinates, 2);
    /// assert_eq!(gather.numbers(1, &[5, 8, 300]), Some((Numbers::Coordinates, 300)));
    /// ```
    #[must_use]
    pub fn with_numbers(mut self, operand: usize, numbers: Numbers, extent: usize) -> Self {
        self.numbers.push((operand, numbers, extent));
        self
    }

    /// What the elements of an operand say of an extent of that problem, and the extent; `None` where any value does.
    pub fn numbers(&self, operand: usize, problem: &[i64]) -> Option<(Numbers, i64)> {
        let (_, numbers, extent) = self.numbers.iter().find(|(of, ..)| *of == operand)?;
        Some((*numbers, *problem.get(*extent)?))
    }

    /// The same with another small problem, which leaves something over in every mode.
    #[must_use]
    pub fn with_example(self, example: &[i64]) -> Self {
        Self { example: example.to_vec(), ..self }
    }

    /// The same; why the operands have to agree, and what helps where they do not.
    #[must_use]
    pub fn agreeing(self, because: &str, help: &str) -> Self {
        Self { because: because.to_owned(), help: help.to_owned(), ..self }
    }

    /// The names of the extents.
    pub fn extents(&self) -> &[String] {
        &self.extents
    }

    /// Whether some extent counts batches.
    pub fn is_batched(&self) -> bool {
        self.batches.is_some()
    }

    /// A small problem that leaves something over in every mode.
    pub fn example(&self) -> &[i64] {
        &self.example
    }

    /// Why the operands have to agree, and what helps where they do not.
    pub(crate) fn agreement(&self) -> (&str, &str) {
        (&self.because, &self.help)
    }

    /// The first operand that has an extent of this number as a whole, and its mode.
    pub fn first_with(&self, extent: usize) -> Option<(usize, usize)> {
        let mode = |modes: &Vec<ModeExtent>| modes.iter().position(|mode| mode.whole() == Some(extent));
        self.modes.iter().enumerate().find_map(|(tensor, modes)| Some((tensor, mode(modes)?)))
    }

    /// How many operands, from the first on, tell all extents.
    pub(crate) fn tellers(&self) -> usize {
        let mut told = vec![false; self.extents.len()];
        for (number, modes) in self.modes.iter().enumerate() {
            for extent in modes.iter().filter_map(|mode| mode.whole()) {
                if let Some(told) = told.get_mut(extent) {
                    *told = true;
                }
            }
            if told.iter().all(|told| *told) {
                return number + 1;
            }
        }
        self.modes.len()
    }

    /// The problem that tensors of these shapes belong to, in the order of the operands: of each extent the first tensor that has
    /// it. `None` where an extent is not told, or a shape has another rank than its operand.
    pub fn problem_of(&self, shapes: &[&[i64]]) -> Option<Vec<i64>> {
        self.told(self.modes.iter().zip(shapes))
    }

    /// The same of the tensors that the kernel reads. An extent that none of them has is not told.
    pub fn problem_of_inputs(&self, operands: &[Operand], shapes: &[&[i64]]) -> Option<Vec<i64>> {
        let read = operands.iter().zip(&self.modes).filter(|(operand, _)| operand.access == Access::Read);
        self.told(read.map(|(_, modes)| modes).zip(shapes))
    }

    /// The same, where operands that are written tell extents, too: all shapes in the order of the operands.
    pub(crate) fn problem_of_all(&self, shapes: &[&[i64]]) -> Option<Vec<i64>> {
        (shapes.len() == self.modes.len()).then_some(())?;
        self.told(self.modes.iter().zip(shapes))
    }

    /// Of each extent the first shape that has it.
    fn told<'a>(&self, shapes: impl Iterator<Item = (&'a Vec<ModeExtent>, &'a &'a [i64])>) -> Option<Vec<i64>> {
        let mut told = vec![None; self.extents.len()];
        for (modes, shape) in shapes {
            (modes.len() == shape.len()).then_some(())?;
            for (mode, found) in modes.iter().zip(*shape) {
                if let Some(extent) = mode.whole() {
                    told.get_mut(extent)?.get_or_insert(*found);
                }
            }
        }
        told.into_iter().collect()
    }

    /// The problem that arrays of these shapes belong to, one for each operand that the kernel reads: axes in the order of the
    /// modes. An array may lack the axis of a mode of stride 0, or have extent 1 there; so it may for the batches of a product.
    /// Any other lacks modes in front. An extent that no array tells is 1. `None` where an array has too many axes.
    pub fn problem_of_arrays(&self, operands: &[Operand], arrays: &[&[i64]]) -> Option<Vec<i64>> {
        let rank = self.extents.len();
        let (mut told, mut broadcast) = (vec![None; rank], vec![None; rank]);
        let read = operands.iter().zip(&self.modes).filter(|(operand, _)| operand.access == Access::Read);
        for ((operand, modes), array) in read.zip(arrays) {
            let Some(extents) = self.placed(modes, &operand.strides, array)? else { continue };
            for ((mode, stride), extent) in modes.iter().zip(&operand.strides).zip(extents) {
                let Some(mode) = mode.whole() else { continue };
                let one_for_all = *stride == ModeStride::Broadcast || Some(mode) == self.batches;
                let facts = if one_for_all { &mut broadcast } else { &mut told };
                if !one_for_all || extent != 1 {
                    facts.get_mut(mode)?.get_or_insert(extent);
                }
            }
        }
        Some(told.into_iter().zip(broadcast).map(|(told, broadcast)| told.or(broadcast).unwrap_or(1)).collect())
    }

    /// The extent of an array along each mode, 1 where it lacks the axis. `Some(None)` where several ways to place the axes
    /// would do.
    fn placed(&self, modes: &[ModeExtent], strides: &[ModeStride], axes: &[i64]) -> Option<Option<Vec<i64>>> {
        let rank = strides.len();
        let ones = axes.iter().take(axes.len().saturating_sub(rank)).take_while(|axis| **axis == 1).count();
        let axes = &axes[ones..];
        let lacks = rank.checked_sub(axes.len())?;
        let batches = modes.iter().position(|mode| self.batches.is_some() && mode.whole() == self.batches);
        let without = |mode: &usize| strides[*mode] == ModeStride::Broadcast || Some(*mode) == batches;
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

    /// The shape of each operand for the extents of a problem; `None` where there is another number of them.
    pub fn shapes(&self, problem: &[i64]) -> Option<Vec<Vec<i64>>> {
        (problem.len() == self.extents.len()).then_some(())?;
        let shape = |modes: &Vec<ModeExtent>| modes.iter().map(|mode| mode.of(problem)).collect();
        self.modes.iter().map(shape).collect()
    }
}

//! Reductions in traced closures.

use super::{Along, Reduction};
use crate::expr::op::Node;
use crate::expr::{Cond, Expr, Tape};

/// A value or a condition of each element, about to be reduced along its row or groups of it: [`Expr::row`],
/// [`Expr::group`].
///
/// ```
/// use cutemplate::expr::Function;
///
/// let softmax = Function::unary(|x| {
///     let e = (x - x.row().max()).exp();
///     e / e.row().sum()
/// });
/// assert_eq!(softmax.to_string(), "let t0 = exp(a - max(a)); t0 / sum(t0)");
/// let scale = Function::unary(|x| x.abs().group(128).max() / 448);
/// assert_eq!(scale.to_string(), "max_group128(abs(a)) / 448");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Elements<T> {
    of: T,
    along: Along,
}

impl<'t> Expr<'t> {
    /// The elements of the row.
    pub fn row(self) -> Elements<Self> {
        Elements { of: self, along: Along::Row }
    }

    /// The elements of each group of `size` side by side, a power of two from 2 to 1024; the last group of a row may have fewer.
    pub fn group(self, size: u32) -> Elements<Self> {
        Elements { of: self, along: Along::Group(size) }
    }

    /// The elements of the column. The result is an output: nothing of the program reads it.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let both = Function::nary(2, |_, x| [x[0] * x[1], (x[0] * x[1]).column().sum()])?;
    /// assert_eq!(both.to_string(), "let t0 = a * b; t0, sum_column(t0)");
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn column(self) -> Elements<Self> {
        Elements { of: self, along: Along::Column }
    }

    /// The tape that it is written to.
    pub fn tape(self) -> Tape<'t> {
        self.tape
    }
}

impl Cond<'_> {
    /// The elements of the row.
    pub fn row(self) -> Elements<Self> {
        Elements { of: self, along: Along::Row }
    }

    /// As [`Expr::group`].
    pub fn group(self, size: u32) -> Elements<Self> {
        Elements { of: self, along: Along::Group(size) }
    }
}

impl<'t> Elements<Expr<'t>> {
    fn reduced(self, reduction: Reduction) -> Expr<'t> {
        self.of.tape.add(Node::Reduce(reduction, self.along, [self.of.id]))
    }

    /// The sum from 0 on.
    pub fn sum(self) -> Expr<'t> {
        self.reduced(Reduction::Sum)
    }

    /// The sum divided by how many there are: NaN where there is none.
    pub fn mean(self) -> Expr<'t> {
        self.sum() / self.of.tape.add(Node::Width(self.along))
    }

    /// The product from 1 on.
    pub fn prod(self) -> Expr<'t> {
        self.reduced(Reduction::Prod)
    }

    /// The largest: NaN where one is NaN, unlike [`Expr::max`], and -inf where there is none.
    #[allow(clippy::should_implement_trait, reason = "a reduction, not an order")]
    pub fn max(self) -> Expr<'t> {
        self.reduced(Reduction::Max)
    }

    /// The smallest: NaN where one is NaN, unlike [`Expr::min`], and inf where there is none.
    #[allow(clippy::should_implement_trait, reason = "a reduction, not an order")]
    pub fn min(self) -> Expr<'t> {
        self.reduced(Reduction::Min)
    }

    /// The column of the largest: the first of equal ones. NaN counts as larger than all.
    pub fn argmax(self) -> Expr<'t> {
        self.reduced(Reduction::ArgMax)
    }

    /// The column of the smallest: the first of equal ones. NaN counts as smaller than all.
    pub fn argmin(self) -> Expr<'t> {
        self.reduced(Reduction::ArgMin)
    }
}

impl<'t> Elements<Cond<'t>> {
    fn reduced(self, reduction: Reduction) -> Cond<'t> {
        self.of.tape.condition(Node::Reduce(reduction, self.along, [self.of.id]))
    }

    /// Whether it holds for some.
    pub fn any(self) -> Cond<'t> {
        self.reduced(Reduction::Any)
    }

    /// Whether it holds for all.
    pub fn all(self) -> Cond<'t> {
        self.reduced(Reduction::All)
    }
}

impl<'t> Tape<'t> {
    /// The element's index in its row, from 0 on.
    ///
    /// ```
    /// use cutemplate::expr::Function;
    ///
    /// let causal = Function::nary(1, |t, x| [t.col().lt(t.width() / 2).select(x[0], 0)])?;
    /// assert_eq!(causal.to_string(), "select(col() < width() / 2, a, 0)");
    /// # Ok::<(), cutemplate::expr::ExprError>(())
    /// ```
    pub fn col(self) -> Expr<'t> {
        self.add(Node::Column)
    }

    /// How many elements a row has.
    pub fn width(self) -> Expr<'t> {
        self.add(Node::Width(Along::Row))
    }

    /// How many elements the element's group has: `size`, or fewer at the end of a row.
    pub fn width_of_group(self, size: u32) -> Expr<'t> {
        self.add(Node::Width(Along::Group(size)))
    }
}

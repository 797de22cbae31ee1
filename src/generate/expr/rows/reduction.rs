//! Reductions, what they run along, and the levels of values.

use core::cmp::Reverse;
use core::fmt;

/// Elements of a row, or of a group of it, as one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reduction {
    /// The sum from 0 on, in the type that is computed in.
    Sum,
    /// The product from 1 on.
    Prod,
    /// The largest; NaN where there is one.
    Max,
    /// The smallest; NaN where there is one.
    Min,
    /// Whether a condition holds for some element: 1 or 0.
    Any,
    /// Whether a condition holds for all elements: 1 or 0.
    All,
    /// The column of the largest: the first of equal ones, and NaN counts as larger than all.
    ArgMax,
    /// The column of the smallest: the first of equal ones, and NaN counts as smaller than all.
    ArgMin,
}

impl Reduction {
    /// Every reduction.
    pub const ALL: &'static [Self] =
        &[Self::Sum, Self::Prod, Self::Max, Self::Min, Self::Any, Self::All, Self::ArgMax, Self::ArgMin];

    /// The word of the text: `argmax`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Prod => "prod",
            Self::Max => "max",
            Self::Min => "min",
            Self::Any => "any",
            Self::All => "all",
            Self::ArgMax => "argmax",
            Self::ArgMin => "argmin",
        }
    }

    /// The result for a row without elements.
    ///
    /// ```
    /// use cutemplate::expr::rows::Reduction;
    ///
    /// assert_eq!((Reduction::Sum.of_nothing(), Reduction::Max.of_nothing()), (0.0, f64::NEG_INFINITY));
    /// ```
    pub fn of_nothing(self) -> f64 {
        match self {
            Self::Sum | Self::Any | Self::ArgMax | Self::ArgMin => 0.0,
            Self::Prod | Self::All => 1.0,
            Self::Max => f64::NEG_INFINITY,
            Self::Min => f64::INFINITY,
        }
    }

    /// Whether its elements are conditions, which are 1 or 0, and it gives one.
    pub fn of_conditions(self) -> bool {
        matches!(self, Self::Any | Self::All)
    }

    /// Whether columns are reduced by it.
    pub fn is_of_columns(self) -> bool {
        matches!(self, Self::Sum | Self::Max | Self::Min)
    }

    /// Whether it gives a column.
    pub fn is_index(self) -> bool {
        matches!(self, Self::ArgMax | Self::ArgMin)
    }
}

/// What a reduction runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Along {
    /// The row.
    Row,
    /// So many elements side by side, a power of two from 2 to 1024; the last group of a row may have fewer.
    Group(u32),
    /// The column: the elements of all rows. The result is an output of the program.
    Column,
}

impl Along {
    /// Whether the group has a size that exists.
    pub fn exists(self) -> bool {
        match self {
            Self::Row | Self::Column => true,
            Self::Group(size) => size.is_power_of_two() && (2..=1024).contains(&size),
        }
    }

    /// The level of the result.
    pub fn level(self) -> Level {
        match self {
            Self::Row => Level::Row,
            Self::Group(size) => Level::Group(size),
            Self::Column => Level::Column,
        }
    }
}

/// As it follows a function's name: nothing, `_group128`, or `_column`.
impl fmt::Display for Along {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row => Ok(()),
            Self::Group(size) => write!(f, "_group{size}"),
            Self::Column => f.write_str("_column"),
        }
    }
}

/// A launch, a row, a group or an element: the owner of one value, coarse levels first. A value can be read at every finer level. Groups of two sizes nest, because sizes are powers
/// of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The launch: one value.
    Scalar,
    /// The row.
    Row,
    /// So many elements side by side.
    Group(u32),
    /// The column: an output that is reduced over rows.
    Column,
    /// The element.
    Element,
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        let key = |level: &Self| match *level {
            Self::Scalar => (0, Reverse(0)),
            Self::Row => (1, Reverse(0)),
            Self::Group(size) => (2, Reverse(size)),
            Self::Column => (3, Reverse(0)),
            Self::Element => (4, Reverse(0)),
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar => f.write_str("the launch"),
            Self::Row => f.write_str("a row"),
            Self::Group(size) => write!(f, "a group of {size}"),
            Self::Column => f.write_str("a column"),
            Self::Element => f.write_str("an element"),
        }
    }
}

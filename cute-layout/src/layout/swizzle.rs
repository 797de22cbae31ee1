//! [`Swizzle`]: exclusive-or of some bits of an index into others.

use std::fmt;
use std::str::FromStr;

use super::error::{Class, LayoutError};
use super::reader::Reader;
use super::recast::recast_ratio;

/// The highest bit that a swizzle may touch.
const TOP: i64 = 62;

/// CuTe's `Swizzle<B,M,S>`: the `B` bits at `M + max(S,0)` are exclusive-ored into the `B` bits at `M - min(S,0)`.
///
/// It is its own inverse on indices, and linear over exclusive or. `Display` prints `Sw<3,0,3>`, as CuTe does.
///
/// ```
/// use cute_layout::layout::Swizzle;
/// let swizzle: Swizzle = "Sw<2,0,3>".parse()?;
/// assert_eq!(swizzle.apply(8), 9);
/// assert_eq!(swizzle.apply(swizzle.apply(29)), 29);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Swizzle {
    bits: u8,
    base: u8,
    shift: i8,
}

impl Swizzle {
    /// A swizzle of `bits` bits above `base` constant ones, at a distance of `shift`.
    ///
    /// # Errors
    /// A negative number of bits, `|shift| < bits`, or a bit above 62.
    pub fn new(bits: i64, base: i64, shift: i64) -> Result<Swizzle, LayoutError> {
        let valid = (0..=TOP).contains(&bits)
            && (0..=TOP).contains(&base)
            && (-TOP..=TOP).contains(&shift)
            && shift.abs() >= bits
            && base + bits + shift.abs() <= TOP;
        if !valid {
            return Err(LayoutError::new("Swizzle", Class::Swizzle)
                .found(format!("Sw<{bits},{base},{shift}>"))
                .required("B >= 0, M >= 0, |S| >= B, and M + B + |S| <= 62")
                .because("the bits that are read and the bits that are changed must not be the same"));
        }
        Ok(Swizzle { bits: bits as u8, base: base as u8, shift: shift as i8 })
    }

    /// The swizzle that reads the bits of mask `y` and changes the bits of mask `z` (CuTe's `make_swizzle<Y,Z>`).
    ///
    /// *Law.* `y_mask() == y` and `z_mask() == z`.
    ///
    /// *Source.* `cute/swizzle.hpp`, `make_swizzle`.
    ///
    /// # Errors
    /// The masks are not two runs of the same number of bits, or they overlap.
    ///
    /// ```
    /// use cute_layout::layout::Swizzle;
    /// assert_eq!(Swizzle::from_masks(0b1100_0000, 0b0000_0110)?.to_string(), "Sw<2,1,5>");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn from_masks(y: i64, z: i64) -> Result<Swizzle, LayoutError> {
        if y == 0 && z == 0 {
            return Swizzle::new(0, 0, 0);
        }
        let refuse = |why: &str| {
            LayoutError::new("make_swizzle", Class::Swizzle)
                .found(format!("masks {y:#b} and {z:#b}"))
                .required("two runs of the same number of bits that do not overlap")
                .because(why)
        };
        if y < 0 || z < 0 || y.count_ones() != z.count_ones() {
            return Err(refuse("the numbers of bits differ"));
        }
        let (low_y, low_z) = (i64::from(y.trailing_zeros()), i64::from(z.trailing_zeros()));
        let swizzle = Swizzle::new(i64::from(y.count_ones()), low_y.min(low_z), low_y - low_z)
            .map_err(|_| refuse("no swizzle has these masks"))?;
        if swizzle.y_mask() != y || swizzle.z_mask() != z {
            return Err(refuse("the bits of a mask are not side by side"));
        }
        Ok(swizzle)
    }

    /// The number of bits that are changed.
    #[must_use]
    pub fn bits(self) -> i64 {
        i64::from(self.bits)
    }

    /// The number of low bits that stay.
    #[must_use]
    pub fn base(self) -> i64 {
        i64::from(self.base)
    }

    /// The distance from the bits that are changed up to the bits that are read; negative for down.
    #[must_use]
    pub fn shift(self) -> i64 {
        i64::from(self.shift)
    }

    /// The mask of the bits that are read.
    #[must_use]
    pub fn y_mask(self) -> i64 {
        ((1i64 << self.bits) - 1) << (self.base() + self.shift().max(0))
    }

    /// The mask of the bits that are changed.
    #[must_use]
    pub fn z_mask(self) -> i64 {
        ((1i64 << self.bits) - 1) << (self.base() - self.shift().min(0))
    }

    /// The swizzled index (CuTe's `swizzle(i)`).
    ///
    /// *Law.* `apply(i) == i ^ shift(i & y_mask)`; `apply(apply(i)) == i`.
    ///
    /// *Source.* `cute/swizzle.hpp`, `Swizzle::apply`.
    ///
    /// ```
    /// use cute_layout::layout::Swizzle;
    /// let swizzle: Swizzle = "Sw<3,0,3>".parse()?;
    /// assert_eq!((swizzle.apply(8), swizzle.apply(63)), (9, 56));
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    #[must_use]
    pub fn apply(self, index: i64) -> i64 {
        let read = index & self.y_mask();
        index ^ if self.shift >= 0 { read >> self.shift } else { read << -i32::from(self.shift) }
    }

    /// The size of the block of indices that the swizzle permutes: 2 to the power of the highest bit it reads or changes.
    #[must_use]
    pub fn block(self) -> i64 {
        if self.bits == 0 { 1 } else { 1i64 << (self.base() + self.bits() + self.shift().abs()) }
    }

    /// One swizzle after another as one swizzle (CuTe's `composition(Swizzle, Swizzle)`).
    ///
    /// *Law.* `result.apply(x) == self.apply(inner.apply(x))`.
    ///
    /// *Source.* `cute/swizzle.hpp`, `composition(Swizzle, Swizzle)`.
    ///
    /// # Errors
    /// The shifts differ; or this swizzle reads bits that the inner one changes, where CuTe merges all the same and is
    /// wrong; or no single swizzle has the masks.
    ///
    /// ```
    /// use cute_layout::layout::Swizzle;
    /// let result = "Sw<2,0,3>".parse::<Swizzle>()?.after("Sw<1,2,3>".parse()?)?;
    /// assert_eq!(result.to_string(), "Sw<3,0,3>");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn after(self, inner: Swizzle) -> Result<Swizzle, LayoutError> {
        let refuse = |found: String| {
            LayoutError::on("composition", Class::Swizzle, &[("outer", &self), ("inner", &inner)]).found(found)
        };
        if self.shift != inner.shift {
            return Err(refuse(format!("shifts {} and {}", self.shift, inner.shift))
                .required("two swizzles of the same shift")
                .cute("refuses: Can only merge swizzles of the same shift."));
        }
        let again = self.y_mask() & inner.z_mask();
        if again != 0 {
            return Err(refuse(format!("bits {again:#b} that the inner changes and the outer reads"))
                .required("an outer swizzle that reads none of the bits that the inner one changes")
                .because("the changed bits are read again, and no single swizzle does that")
                .cute("accepts, and is wrong"));
        }
        Swizzle::from_masks(self.y_mask() ^ inner.y_mask(), self.z_mask() ^ inner.z_mask())
            .map_err(|e| e.within("composition", &[("outer", &self), ("inner", &inner)]))
    }

    /// The swizzle of elements `factor` times as large (CuTe's `upcast`).
    ///
    /// *Law.* `upcast(n).apply(i)` covers the same bytes as element `i` before: `apply(n * i + j) / n` for every `j < n`.
    /// Bits that are changed below an element are dropped.
    ///
    /// *Source.* `cute/swizzle_layout.hpp`, `upcast`.
    ///
    /// # Errors
    /// The factor is not a power of two; or a bit that is read lies below an element, so that its parts move apart.
    ///
    /// ```
    /// use cute_layout::layout::Swizzle;
    /// assert_eq!("Sw<3,4,3>".parse::<Swizzle>()?.upcast(2)?.to_string(), "Sw<3,3,3>");
    /// assert_eq!("Sw<3,1,3>".parse::<Swizzle>()?.upcast(4)?.to_string(), "Sw<2,0,3>");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn upcast(self, factor: i64) -> Result<Swizzle, LayoutError> {
        let base = self.base() - power_of_two("upcast", factor)?;
        if base < 0 && self.shift() < 0 && self.bits() > 0 {
            return Err(LayoutError::on("upcast", Class::Swizzle, &[("swizzle", &self)])
                .found(format!("factor {factor}, and a read bit at {}", self.base()))
                .required(format!("a factor of at most {}", 1i64 << self.base()))
                .because("parts of one element would move to different places"));
        }
        Swizzle::new((self.bits() + base.min(0)).max(0), base.max(0), self.shift())
    }

    /// The swizzle of elements a `factor`-th as large (CuTe's `downcast`).
    ///
    /// *Law.* `downcast(n).apply(n * i + j) == n * apply(i) + j` for `j < n`.
    ///
    /// *Source.* `cute/swizzle_layout.hpp`, `downcast`.
    ///
    /// # Errors
    /// The factor is not a power of two, or a bit would be above 62.
    ///
    /// ```
    /// use cute_layout::layout::Swizzle;
    /// assert_eq!("Sw<3,3,3>".parse::<Swizzle>()?.downcast(2)?.to_string(), "Sw<3,4,3>");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn downcast(self, factor: i64) -> Result<Swizzle, LayoutError> {
        Swizzle::new(self.bits(), self.base() + power_of_two("downcast", factor)?, self.shift())
    }

    /// The swizzle seen with elements of another number of bits (CuTe's `recast_layout`).
    ///
    /// *Law.* `upcast(new / old)` or `downcast(old / new)`: the same permutation of bits in memory.
    ///
    /// *Source.* `cute/swizzle_layout.hpp`, `recast_layout`.
    ///
    /// # Errors
    /// The ratio is not a power of two.
    ///
    /// ```
    /// use cute_layout::layout::Swizzle;
    /// // The 128-byte swizzle in bytes, and in elements of 16 bits.
    /// assert_eq!("Sw<3,4,3>".parse::<Swizzle>()?.recast(8, 16)?.to_string(), "Sw<3,3,3>");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn recast(self, old_bits: i64, new_bits: i64) -> Result<Swizzle, LayoutError> {
        let (up, down) = recast_ratio(old_bits, new_bits)?;
        self.upcast(up)?.downcast(down)
    }
}

fn power_of_two(op: &'static str, factor: i64) -> Result<i64, LayoutError> {
    if factor < 1 || factor.count_ones() != 1 {
        return Err(LayoutError::new(op, Class::Swizzle)
            .found(format!("factor {factor}"))
            .required("a power of two")
            .because("a swizzle moves bits, and another factor does not"));
    }
    Ok(i64::from(factor.trailing_zeros()))
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits, self.base, self.shift)
    }
}

impl FromStr for Swizzle {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Swizzle, LayoutError> {
        Reader::whole(text, Swizzle::read)
    }
}

impl Swizzle {
    /// Whether the text goes on with a swizzle.
    pub(crate) fn begins(reader: &mut Reader<'_>) -> bool {
        reader.starts_with("Sw<") || reader.starts_with("S<")
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Swizzle, LayoutError> {
        reader.peek();
        let start = reader.position();
        if !(reader.eat_word("Sw<") || reader.eat_word("S<")) {
            return Err(reader.fail("a swizzle, `Sw<B,M,S>`"));
        }
        let bits = reader.number()?;
        reader.expect(b',')?;
        let base = reader.number()?;
        reader.expect(b',')?;
        let shift = reader.number()?;
        reader.expect(b'>')?;
        Swizzle::new(bits, base, shift).map_err(|error| {
            let found = format!("{} at position {start}", error.what_was_found());
            error.found(found)
        })
    }
}

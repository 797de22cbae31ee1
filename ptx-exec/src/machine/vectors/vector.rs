//! Rows of 32 lanes, and the loops over them.
//!
//! Every loop computes some lanes into a local array and then stores the lanes of the mask. The compiler sees that source and destination
//! do not overlap, and vectorises the loop. Lanes outside the mask may compute garbage; no function here can fail.

/// 32 words, one a lane.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Row(pub(crate) [u32; 32]);

/// The rows of a warp, for the loops.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    at: *mut Row,
    #[cfg(debug_assertions)]
    len: u32,
}

impl Rows {
    pub(crate) fn new(rows: &mut [Row]) -> Rows {
        Rows {
            at: rows.as_mut_ptr(),
            #[cfg(debug_assertions)]
            len: rows.len() as u32,
        }
    }

    /// The lanes of a row; of two rows for 64 bits.
    ///
    /// # Safety
    /// The row is one of these, and so is the next one where the lanes have 64 bits; the rows are still there.
    #[inline(always)]
    pub(crate) unsafe fn lanes<T>(self, row: u32) -> *mut T {
        #[cfg(debug_assertions)]
        debug_assert!(row < self.len, "row {row} of {}", self.len);
        // SAFETY: the caller says that the row is one of them.
        unsafe { self.at.add(row as usize).cast() }
    }
}

/// Stores the lanes of a mask.
///
/// # Safety
/// `d` is a row of 32 lanes of `T`.
#[inline(always)]
pub(crate) unsafe fn store<T: Copy>(d: *mut T, out: &[T; 32], mask: u32) {
    // SAFETY: 32 lanes lie at `d`; `out` is an array of its own.
    unsafe {
        if mask == u32::MAX {
            d.cast::<[T; 32]>().write(*out);
        } else {
            // Lanes outside the mask are written back unchanged, which avoids branches.
            for (l, v) in out.iter().enumerate() {
                let old = *d.add(l);
                *d.add(l) = if mask >> l & 1 != 0 { *v } else { old };
            }
        }
    }
}

/// Lanes that a loop takes at once: a vector of 32-bit words.
pub(crate) const PART: usize = 8;

/// Evaluates an expression for each slice of the lanes, and stores it in the lanes of a mask. Each slice is read before it is stored, so
/// a destination may be a source of the same width. It is a macro because the compiler does not inline every closure into a function
/// with target features.
macro_rules! parts {
    ($d:expr, $mask:expr, $first:ident => $part:expr) => {{
        let (d, mask) = ($d, $mask);
        if mask == u32::MAX {
            for $first in (0..32).step_by($crate::machine::vectors::vector::PART) {
                let out = $part;
                d.add($first).cast::<[_; $crate::machine::vectors::vector::PART]>().write(out);
            }
        } else {
            // Lanes outside the mask are written back unchanged, which avoids branches.
            for $first in (0..32).step_by($crate::machine::vectors::vector::PART) {
                let (out, of) = ($part, mask >> $first);
                let at = d.add($first).cast::<[_; $crate::machine::vectors::vector::PART]>();
                let mut new = at.read();
                for (l, new) in new.iter_mut().enumerate() {
                    *new = if of >> l & 1 != 0 { out[l] } else { *new };
                }
                at.write(new);
            }
        }
    }};
}
pub(crate) use parts;

/// Stores the result of `f` in each lane of the mask.
///
/// # Safety
/// `d` is a row of 32 lanes; `f` reads lanes of its part.
#[inline(always)]
unsafe fn each<D: Copy + Default>(d: *mut D, mask: u32, f: impl Fn(usize) -> D) {
    // SAFETY: the caller says so.
    unsafe {
        parts!(d, mask, first => {
            let mut out = [D::default(); PART];
            for (l, o) in out.iter_mut().enumerate() {
                *o = f(first + l);
            }
            out
        });
    }
}

/// d = f(a)
///
/// # Safety
/// The operands are rows of their types; of two widths, they are two registers.
#[inline(always)]
pub(crate) unsafe fn map1<A: Copy, D: Copy + Default>(d: *mut D, a: *const A, mask: u32, f: impl Fn(A) -> D) {
    // SAFETY: rows have 32 lanes.
    unsafe { each(d, mask, |l| f(*a.add(l))) }
}

/// d = f(a, b)
///
/// # Safety
/// As for [`map1`].
#[inline(always)]
pub(crate) unsafe fn map2<A: Copy, B: Copy, D: Copy + Default>(
    d: *mut D,
    a: *const A,
    b: *const B,
    mask: u32,
    f: impl Fn(A, B) -> D,
) {
    // SAFETY: rows have 32 lanes.
    unsafe { each(d, mask, |l| f(*a.add(l), *b.add(l))) }
}

/// d = f(a, b, c)
///
/// # Safety
/// As for [`map1`].
#[inline(always)]
pub(crate) unsafe fn map3<A: Copy, B: Copy, C: Copy, D: Copy + Default>(
    d: *mut D,
    a: *const A,
    b: *const B,
    c: *const C,
    mask: u32,
    f: impl Fn(A, B, C) -> D,
) {
    // SAFETY: rows have 32 lanes.
    unsafe { each(d, mask, |l| f(*a.add(l), *b.add(l), *c.add(l))) }
}

/// The lanes for which f(a, b) holds.
///
/// # Safety
/// The operands are rows of their types.
#[inline(always)]
pub(crate) unsafe fn test<A: Copy>(a: *const A, b: *const A, f: impl Fn(A, A) -> bool) -> u32 {
    let mut out = 0;
    for l in 0..32 {
        // SAFETY: rows have 32 lanes.
        out |= u32::from(unsafe { f(*a.add(l), *b.add(l)) }) << l;
    }
    out
}

/// Selects lanes of a mask from `a`, the others from `b`.
///
/// # Safety
/// The operands are rows of their types.
#[inline(always)]
pub(crate) unsafe fn select<T: Copy + Default>(d: *mut T, a: *const T, b: *const T, choose: u32, mask: u32) {
    // SAFETY: rows have 32 lanes.
    unsafe {
        each(d, mask, |l| {
            let (a, b) = (*a.add(l), *b.add(l));
            if choose >> l & 1 != 0 { a } else { b }
        });
    }
}

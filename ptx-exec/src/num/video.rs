//! Carry chains: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`. The carry goes in and out as bit 0 of a word.

/// a + b + carry of a width, and the carry out.
pub(in super::super) fn add_carry(a: u64, b: u64, carry: bool, is_64: bool) -> (u64, bool) {
    if is_64 {
        let (s, c1) = a.overflowing_add(b);
        let (s, c2) = s.overflowing_add(u64::from(carry));
        (s, c1 || c2)
    } else {
        let s = (a & 0xffff_ffff) + (b & 0xffff_ffff) + u64::from(carry);
        (s & 0xffff_ffff, s >> 32 != 0)
    }
}

/// a - b - borrow, and the borrow out.
pub(in super::super) fn sub_borrow(a: u64, b: u64, borrow: bool, is_64: bool) -> (u64, bool) {
    if is_64 {
        let (s, c1) = a.overflowing_sub(b);
        let (s, c2) = s.overflowing_sub(u64::from(borrow));
        (s, c1 || c2)
    } else {
        let (a, b) = (a & 0xffff_ffff, b & 0xffff_ffff);
        let s = a.wrapping_sub(b).wrapping_sub(u64::from(borrow));
        (s & 0xffff_ffff, s >> 63 != 0)
    }
}

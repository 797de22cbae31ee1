//! The instruction loop, compiled for the features of the processor.

use super::step::body;
use super::warp::{Block, Group, Warp};
use crate::machine::Grid;

/// The reason why a group leaves the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It has reached another group's instruction, or its lanes have diverged.
    Switch,
    /// Lanes have exited; the rest of the group continues.
    Exit,
    /// The group waits for the event in its `wait`.
    Wait,
    /// Lanes arrived at a barrier without waiting.
    Arrived,
    /// Its budget is used.
    Turn,
    /// It sleeps, and other warps have a turn.
    Sleep,
    /// The block cannot continue.
    Stop,
}

/// Runs a group of a warp; the other groups are in the warp.
pub(crate) fn run(g: &Grid<'_>, b: &mut Block, w: &mut Warp, fuel: &mut u64, limit: u32, group: &mut Group) -> Event {
    let checked = g.checks.init || g.checks.races || g.checks.profile;
    #[cfg(target_arch = "x86_64")]
    if is_x86_64_v3() {
        // SAFETY: the processor has the features, as was just asked.
        return unsafe {
            if checked { v3_checked(g, b, w, fuel, limit, group) } else { v3(g, b, w, fuel, limit, group) }
        };
    }
    // SAFETY: `g.code` is a `Code`: what `body` asks for was proved of it. The group stands at one of its instructions, where it left off.
    unsafe { if checked { plain_checked(g, b, w, fuel, limit, group) } else { plain(g, b, w, fuel, limit, group) } }
}

// Each loop is a function of its own: with the others in its frame, it would take as much of the stack as all of them.

#[inline(never)]
unsafe fn plain(g: &Grid<'_>, b: &mut Block, w: &mut Warp, fuel: &mut u64, limit: u32, group: &mut Group) -> Event {
    // SAFETY: as for `body`.
    unsafe { body::<false, false>(g, b, w, fuel, limit, group) }
}

#[inline(never)]
unsafe fn plain_checked(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    fuel: &mut u64,
    limit: u32,
    group: &mut Group,
) -> Event {
    // SAFETY: as for `body`.
    unsafe { body::<true, false>(g, b, w, fuel, limit, group) }
}

/// Whether the loops may use AVX2 and fused multiply-add.
pub(crate) fn is_x86_64_v3() -> bool {
    #[cfg(not(target_arch = "x86_64"))]
    return false;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt") && has!("f16c")
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn v3(g: &Grid<'_>, b: &mut Block, w: &mut Warp, fuel: &mut u64, limit: u32, group: &mut Group) -> Event {
    // SAFETY: as for `body`.
    unsafe { body::<false, true>(g, b, w, fuel, limit, group) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn v3_checked(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    fuel: &mut u64,
    limit: u32,
    group: &mut Group,
) -> Event {
    // SAFETY: as for `body`.
    unsafe { body::<true, true>(g, b, w, fuel, limit, group) }
}

/// Compiles a function for AVX2, and for any processor. They are separate functions, because a shared frame would take a megabyte of
/// stack in builds without optimisation.
macro_rules! compiled {
    ($name:ident, $v3:ident, $loops:ident, [$($generic:tt)*], [$($of:tt)*], ($($arg:ident: $ty:ty),*)) => {
        /// # Safety
        /// As for the loops; with `V3` the processor has AVX2.
        unsafe fn $name<$($generic)*, const V3: bool>($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            if V3 {
                // SAFETY: the caller says so.
                return unsafe { $v3::<$($of)*>($($arg),*) };
            }
            // SAFETY: the caller says so.
            unsafe { $loops::<$($of)*, false>($($arg),*) }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
        unsafe fn $v3<$($generic)*>($($arg: $ty),*) {
            // SAFETY: the caller says so.
            unsafe { $loops::<$($of)*, true>($($arg),*) }
        }
    };
}
pub(crate) use compiled;

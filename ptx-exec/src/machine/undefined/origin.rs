//! Origins of uninitialised values: the instruction that read one from memory, and the bytes.
//!
//! A value carries the number of its origin from register to register, and through shared and local memory. 0 means a register that no
//! instruction has written.

use rustc_hash::FxHashMap;

use super::shadow::Shadow;
use crate::code::Class;
use crate::machine::Grid;
use crate::machine::accesses::access::Place;
use crate::machine::reports::causes::Broken;
use crate::machine::reports::report;
use crate::machine::threads::warp::{Block, Stray, Warp};
use crate::types::Space;
use crate::{Finding, Origin, Rule};

/// Origins of each lane of a register.
pub(crate) type From = [u32; 32];

/// The first read of an uninitialised value from memory.
#[derive(Clone, Copy, Debug)]
struct Source {
    pc: u32,
    block: [u32; 3],
    warp: u32,
    lane: u32,
    space: Space,
    address: u64,
}

/// The origins of a block's values.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    all: Vec<Source>,
    by: FxHashMap<(u32, [u32; 3], u32, u32), u32>,
    /// By word of shared memory: the last uninitialised value that was written there.
    shared: FxHashMap<u64, u32>,
}

/// The place of the first byte with undefined bits.
fn first(place: Place, undefined: u64) -> Place {
    place.plus(u64::from(undefined.trailing_zeros() / 8 % 8))
}

/// The origin of an uninitialised value that a lane has read from a place.
pub(crate) fn of(b: &mut Block, w: &Warp, pc: u32, lane: u32, place: Place, undefined: u64) -> u32 {
    let place = first(place, undefined);
    let known = match place {
        Place::Shared(at) => b.origins.shared.get(&(at / 4)),
        Place::Local(at) => w.local_origins.get(&(at / 4)),
        Place::Global(_) => None,
    };
    known.copied().unwrap_or_else(|| b.origins.number(pc, (w.ctaid, w.index), lane, place))
}

impl Origins {
    /// The number of an origin; each pair of instruction and lane has one.
    pub(crate) fn number(&mut self, pc: u32, (block, warp): ([u32; 3], u32), lane: u32, place: Place) -> u32 {
        let (space, address) = match place {
            Place::Global(at) => (Space::Global, at),
            Place::Shared(at) => (Space::Shared, at),
            Place::Local(at) => (Space::Local, at),
        };
        let all = &mut self.all;
        *self.by.entry((pc, block, warp, lane)).or_insert_with(|| {
            all.push(Source { pc, block, warp, lane, space, address });
            u32::try_from(all.len()).unwrap_or(0)
        })
    }

    /// An uninitialised value is written to shared memory.
    pub(crate) fn written(&mut self, at: u64, bytes: u32, from: u32) {
        for word in at / 4..(at + u64::from(bytes)).div_ceil(4) {
            if from == 0 {
                self.shared.remove(&word);
            } else {
                self.shared.insert(word, from);
            }
        }
    }

    /// The origin of the value at a place of shared memory, if it was written.
    pub(crate) fn at(&self, at: u64) -> Option<u32> {
        self.shared.get(&(at / 4)).copied()
    }
}

/// An uninitialised value is written.
pub(crate) fn written(b: &mut Block, w: &mut Warp, place: Place, bytes: u32, from: u32) {
    match place {
        Place::Shared(at) => b.origins.written(at, bytes, from),
        Place::Local(at) => {
            for word in at / 4..(at + u64::from(bytes)).div_ceil(4) {
                w.local_origins.insert(word, from);
            }
        }
        Place::Global(_) => {}
    }
}

/// For each lane, the origin of its first uninitialised operand.
pub(crate) fn of_operands(shadow: &Shadow, operands: [(Class, u32, &[u64; 32]); 3]) -> From {
    let mut from = [0; 32];
    for (class, at, undefined) in operands.into_iter().rev() {
        if undefined.iter().any(|bits| *bits != 0) {
            let of = shadow.from(class, at);
            for l in (0..32).filter(|l| undefined[*l] != 0) {
                from[l] = of[l];
            }
        }
    }
    from
}

/// The effect of uninitialised values, such as a branch, and one of the values.
pub(crate) struct Decides<'a> {
    pub(crate) what: &'a str,
    /// The origin of the first lane's value.
    pub(crate) from: u32,
    /// The bytes that are written, for a store.
    pub(crate) written: Option<(Space, u64, u64)>,
}

/// Reports lanes that use uninitialised values.
pub(crate) fn finding(g: &Grid<'_>, b: &mut Block, w: &Warp, pc: u32, lanes: u32, decides: &Decides<'_>) {
    let source = (decides.from as usize).checked_sub(1).and_then(|i| b.origins.all.get(i)).copied();
    let stray = w.stray.filter(|_| source.is_none());
    let other = source.map(|s| s.pc).or(stray.map(|stray| stray.pc));
    let at = Broken { other, ..Broken::by(w, Rule::Initialised, pc, lanes) };
    let what = format!("{}{}", decides.what, stray.map_or_else(String::new, |stray| absent(g, w, stray)));
    b.findings.keep(g, &at, || make(g, &at, source, &Decides { what: &what, ..*decides }));
}

/// A shuffle from an absent lane, in words.
fn absent(g: &Grid<'_>, w: &Warp, Stray { pc, lane, from }: Stray) -> String {
    let why = match () {
        () if w.clock.members >> from & 1 == 0 => "the block does not have",
        () if w.live >> from & 1 == 0 => "has exited",
        () => "does not execute it with that mask",
    };
    format!("\nlane {lane} took the value of lane {from}, which {why}, at {}", report::site(g.code, pc))
}

/// The same for asynchronous work, when its threads may be elsewhere.
pub(crate) fn finding_later(g: &Grid<'_>, b: &mut Block, at: Broken, decides: &Decides<'_>) {
    let source = (decides.from as usize).checked_sub(1).and_then(|i| b.origins.all.get(i)).copied();
    let at = Broken { other: Some(source.map_or(at.pc, |s| s.pc)), ..at };
    b.findings.keep(g, &at, || make(g, &at, source, decides));
}

fn make(g: &Grid<'_>, at: &Broken, source: Option<Source>, decides: &Decides<'_>) -> Finding {
    let target = decides.written.map(|(space, address, _)| report::target(g, space, address));
    let origin = source.map(|s| {
        let place = match s.space {
            Space::Local => report::local_target(g, s.address % g.code.local_bytes.max(1)),
            space => report::target(g, space, s.address),
        };
        Box::new(Origin {
            who: report::who(g, s.block, s.warp, 1 << s.lane),
            site: report::site(g.code, s.pc),
            target: place,
        })
    });
    Finding {
        write: target.is_some(),
        bytes: decides.written.map_or(0, |(.., bytes)| bytes),
        target,
        origin,
        detail: decides.what.to_owned(),
        ..report::broken(g, at)
    }
}

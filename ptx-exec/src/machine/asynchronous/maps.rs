//! Tensor maps in memory: their changes, and their use by copies.

use std::sync::Arc;

use super::flight::finding;
use super::tma::Flight;
use crate::code::Inst;
use crate::code_async::MapOp;
use crate::machine::Grid;
use crate::machine::accesses::access::{Place, addresses, locate, read, write};
use crate::machine::races::map_proxy;
use crate::machine::races::proxy::ProxySpace;
use crate::machine::races::word::Access;
use crate::machine::races::{order, race};
use crate::machine::reports::causes::Broken;
use crate::machine::reports::report;
use crate::machine::threads::cluster;
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::undefined::origin::{self, Decides};
use crate::machine::vectors::vector::Rows;
use crate::map_image::{Field, Image, MAP_ALIGN, MAP_BYTES, Map};
use crate::memory::BASE;
use crate::types::Space;
use crate::{Finding, Other, Rule};

/// A lane at an instruction.
#[derive(Clone, Copy)]
struct At {
    pc: u32,
    lane: u32,
}

/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn step(g: &Grid<'_>, b: &mut Block, w: &mut Warp, r: Rows, inst: &Inst, pc: u32, mask: u32) {
    let info = g.code.asyncs.maps[inst.x as usize];
    if let MapOp::Release(scope) = info.op {
        return map_proxy::release(w, mask, scope, pc);
    }
    // SAFETY: the caller guarantees both; every operation except a release has an address.
    let at = unsafe { addresses(r, inst.a, info.address64, info.offset, mask) };
    let lanes = (0..32_u32).filter(|l| mask >> l & 1 != 0);
    match info.op {
        MapOp::Replace { field, mode, space } => {
            for lane in lanes {
                // SAFETY: as above.
                let value = unsafe {
                    match info.b64 {
                        true => *r.lanes::<u64>(inst.b).add(lane as usize),
                        false => u64::from(*r.lanes::<u32>(inst.b).add(lane as usize)),
                    }
                };
                replace(g, b, w, At { pc, lane }, space, at[lane as usize], (field, mode, value));
            }
        }
        MapOp::Copy(scope) => {
            // SAFETY: as above.
            let from = unsafe { addresses(r, inst.b, info.b64, info.from_offset, mask) };
            let lane = mask.trailing_zeros();
            if at.iter().zip(&from).any(|to_from| to_from != (&at[0], &from[0])) {
                let detail = "the lanes of the warp name different maps".to_owned();
                report::simple(g, b, w, Rule::TensorMap, pc, mask, detail);
            }
            // All lanes are here, and the writes of each are copied.
            order::warp_sync(w, mask, pc);
            copy(g, b, w, At { pc, lane }, mask, at[lane as usize & 31], from[lane as usize & 31]);
            order::warp_sync(w, mask, pc);
            map_proxy::release(w, mask, scope, pc);
        }
        MapOp::Acquire(scope) => {
            for lane in lanes {
                let address = at[lane as usize];
                let allocation = g.memory.find(address).map(|i| &g.memory.allocations[i]);
                if allocation.is_none_or(|a| a.is_param || address + MAP_BYTES > a.end) {
                    let target = report::target(g, Space::Global, address);
                    let detail = format!("{target} is not a map in global memory, and only such maps have this fence");
                    report::simple(g, b, w, Rule::TensorMap, pc, 1 << lane, detail);
                } else {
                    map_proxy::acquire(w, address, scope, pc);
                }
            }
        }
        MapOp::Prefetch => {
            for lane in lanes {
                let who = report::who(g, w.ctaid, w.index, 1 << lane);
                look(g, b, pc, who, at[lane as usize]);
            }
        }
        MapOp::Release(_) => {}
    }
}

/// The place of a map that is accessed as memory.
fn place(g: &Grid<'_>, b: &mut Block, w: &mut Warp, at: At, space: Space, address: u64, write: bool) -> Option<Place> {
    // Two halves, each aligned as a map.
    let second = address.wrapping_add(MAP_BYTES - MAP_ALIGN);
    let mut halves = [address, second].map(|half| locate(g, w, space, half, at.lane, MAP_ALIGN, write));
    if space == Space::Generic && halves.iter().any(|half| matches!(half, Ok(Place::Local(_)))) {
        halves[0] = Err(crate::FindingKind::OutOfBounds);
    }
    match halves {
        [Ok(place), Ok(_)] => Some(place),
        [Err(kind), _] | [_, Err(kind)] => {
            report::access(g, b, w, kind, at.pc, at.lane, space, address, MAP_BYTES, write);
            None
        }
    }
}

/// Notes an access of a map as memory.
fn note_access(g: &Grid<'_>, b: &mut Block, w: &mut Warp, at: At, lanes: u32, place: Place, write: bool) {
    if !g.checks.races {
        return;
    }
    cluster::is_there(g, b, w, at.pc, at.lane, place);
    if let Place::Global(address) = place {
        race::not_early(g, b, w, at.pc, lanes);
        if !is_writable(g, address) {
            return;
        }
    }
    race::note(g, b, w, place, MAP_BYTES as u32, Access { lanes, ..Access::new(w, at.pc, write) }, true);
}

fn is_writable(g: &Grid<'_>, address: u64) -> bool {
    g.memory.find(address).is_some_and(|i| g.memory.allocations[i].writable)
}

fn image(g: &Grid<'_>, b: &Block, w: &Warp, from: Place) -> Image {
    Image(core::array::from_fn(|i| read(g, b, w, from.plus(8 * i as u64), 8)))
}

/// The first uninitialised byte of a map.
fn unwritten(g: &Grid<'_>, b: &Block, place: Place) -> Option<Place> {
    let is_unwritten = |i: &u64| match place {
        Place::Global(at) => g.memory.undefined(at + i, 1) != 0,
        Place::Shared(at) => b.shared_written.get((at + i) as usize).is_some_and(|written| *written == 0),
        Place::Local(_) => false,
    };
    (0..MAP_BYTES).find(is_unwritten).filter(|_| g.checks.init).map(|i| place.plus(i))
}

/// Whether all of a map is initialised; reports it if not.
fn is_initialised(g: &Grid<'_>, b: &mut Block, w: &Warp, at: At, place: Place) -> bool {
    let Some(byte) = unwritten(g, b, place) else { return true };
    let from = b.origins.number(at.pc, (w.ctaid, w.index), at.lane, byte);
    let decides = Decides { what: "bytes of a tensor map are uninitialised", from, written: None };
    origin::finding(g, b, w, at.pc, 1 << at.lane, &decides);
    false
}

fn put(g: &Grid<'_>, b: &mut Block, w: &mut Warp, to: Place, image: &Image) {
    for (i, word) in image.0.iter().enumerate() {
        write(g, b, w, to.plus(8 * i as u64), 8, *word);
    }
    match to {
        Place::Global(at) => (0..MAP_BYTES / 8).for_each(|i| g.memory.define(at + 8 * i, 8, 0)),
        Place::Shared(at) => {
            b.shared_written.iter_mut().skip(at as usize).take(MAP_BYTES as usize).for_each(|written| *written = 1);
        }
        Place::Local(_) => {}
    }
}

/// `tensormap.replace`: a weak read and write of all 128 bytes.
fn replace(
    g: &Grid<'_>,
    b: &mut Block,
    w: &mut Warp,
    at: At,
    space: Space,
    address: u64,
    (field, mode, value): (Field, u32, u64),
) {
    let Some(to) = place(g, b, w, at, space, address, true) else { return };
    note_access(g, b, w, at, 1 << at.lane, to, true);
    // After the finding the map counts as zeros, so that it is reported once.
    let mut image = if is_initialised(g, b, w, at, to) { image(g, b, w, to) } else { Image([0; 16]) };
    if !image.is_sound() {
        let target = report::target(g, space, address);
        let detail = format!("the bytes of {target} are not a tensor map, and not zeros");
        report::simple(g, b, w, Rule::MapBytes, at.pc, 1 << at.lane, detail);
    }
    let wrong = field.wrong(mode, value);
    if let Some((required, _)) = wrong {
        let detail = format!("{} is set to {value}, and takes {required}", field.describe(mode));
        report::simple(g, b, w, Rule::MapField, at.pc, 1 << at.lane, detail);
    }
    image.put(field, mode, wrong.map_or(value, |(_, instead)| instead));
    put(g, b, w, to, &image);
}

/// `tensormap.cp_fenceproxy` without its fence: the warp copies a map.
fn copy(g: &Grid<'_>, b: &mut Block, w: &mut Warp, at: At, lanes: u32, to: u64, from: u64) {
    let Some(source) = place(g, b, w, at, Space::Shared, from, false) else { return };
    let Some(target) = place(g, b, w, at, Space::Global, to, true) else { return };
    note_access(g, b, w, at, lanes, source, false);
    note_access(g, b, w, at, lanes, target, true);
    if is_initialised(g, b, w, at, source) {
        let image = image(g, b, w, source);
        put(g, b, w, target, &image);
    }
}

/// The map at an address that a copy or a prefetch names.
fn look(g: &Grid<'_>, b: &mut Block, pc: u32, who: crate::Who, address: u64) -> Option<Map> {
    let target = || report::target(g, Space::Global, address);
    let allocation = g.memory.find(address).map(|i| &g.memory.allocations[i]);
    let lies = allocation.is_some_and(|a| address.checked_add(MAP_BYTES).is_some_and(|end| end <= a.end));
    if !lies || !address.is_multiple_of(MAP_ALIGN) {
        let detail = format!("no tensor map lies at {}", target());
        finding(g, b, Rule::TensorMap, pc, who, None, detail);
        return None;
    }
    if let Some(byte) = unwritten(g, b, Place::Global(address)) {
        let warp = who.warp.unwrap_or(0);
        let from = b.origins.number(pc, (who.block, warp), who.lanes.trailing_zeros() & 31, byte);
        let decides = Decides { what: "bytes of a tensor map are uninitialised", from, written: None };
        origin::finding_later(g, b, Broken::by_whom(&who, Rule::Initialised, pc), &decides);
        return None;
    }
    // SAFETY: they lie in an allocation, at a multiple of 64.
    let image = Image(core::array::from_fn(|i| unsafe { g.memory.read(address + 8 * i as u64, 8) }));
    if !image.is_sound() {
        let detail =
            format!("the bytes of {} are not a tensor map: another store wrote them, or a part of them", target());
        finding(g, b, Rule::MapBytes, pc, who, None, detail);
        return None;
    }
    if let Some(missing) = image.missing() {
        let detail = format!("{missing} of the map at {} is not set", target());
        finding(g, b, Rule::MapField, pc, who, None, detail);
        return None;
    }
    Some(image.map())
}

/// The map of a tensor copy, from its present bytes.
pub(crate) fn of(g: &Grid<'_>, b: &mut Block, w: &Warp, f: &Flight) -> Option<Arc<Map>> {
    let map = look(g, b, f.pc, f.who, f.far)?;
    if g.checks.races {
        by_proxy(g, b, w, f);
    }
    Some(Arc::new(map))
}

/// Checks that the tensormap proxy sees the present bytes of the map.
fn by_proxy(g: &Grid<'_>, b: &mut Block, w: &Warp, f: &Flight) {
    let address = f.far;
    let Some(a) = g.memory.find(address).map(|i| &g.memory.allocations[i]) else { return };
    // Parameters and constants do not change while the kernel runs.
    if a.is_param || a.is_constant() {
        return;
    }
    let lanes = 1 << f.lane;
    let mut first = None;
    if let Some(races) = g.races.as_ref().filter(|_| a.writable) {
        let mut races = races.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let written = races.of_others(address - BASE, MAP_BYTES, u32::MAX).map(|(_, access)| access);
        let writes = written.filter(|a| a.write && a.actor == 0 && !a.in_flight);
        for a in writes {
            // An unordered write is a race in any proxy, and is reported elsewhere.
            if !w.clock.knows(a.warp, a.lanes, a.epoch, lanes) {
                return;
            }
            let rule = map_proxy::broken(&w.clock, address, &a);
            first = first.or(rule.map(|rule| (rule, Some(a))));
        }
    }
    if first.is_none() && !map_proxy::is_acquired(&w.clock, address) {
        first = Some((Rule::MapAcquire, None));
    }
    let Some((rule, write)) = first else { return };
    let at = Broken { other: write.map(|a| a.pc), ..Broken::by(w, rule, f.pc, lanes) };
    b.findings.keep(g, &at, || {
        let other = write.map(|a| {
            let who = report::who(g, g.index(u64::from(a.warp / 32)), a.warp % 32, a.lanes);
            Box::new(Other { who, write: true, in_flight: false, site: Some(report::site(g.code, a.pc)) })
        });
        let detail = match write {
            Some(_) => String::new(),
            None => "the launch wrote it: each block has to acquire it once, before its first use".to_owned(),
        };
        let target = Some(report::target(g, Space::Global, address));
        Finding { target, bytes: MAP_BYTES, other, detail, ..report::broken(g, &at) }
    });
}

/// A copy may read its map until it is over.
pub(crate) fn note(g: &Grid<'_>, b: &mut Block, w: &Warp, f: &Flight, (actor, epoch): (u32, u32)) {
    if is_writable(g, f.far) {
        let access = Access {
            lanes: 1 << f.lane,
            actor,
            epoch,
            is_generic: true,
            room: ProxySpace::Map,
            ..Access::new(w, f.pc, false)
        };
        race::note(g, b, w, Place::Global(f.far), MAP_BYTES as u32, access, true);
    }
}

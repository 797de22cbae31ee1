//! Bulk and tensor copies move their bytes: boxes of tensors to swizzled rows in shared memory, and back.

use super::flight::finding;
use super::mbarrier;
use super::tma::Flight;
use crate::code_async::BulkWay;
use crate::machine::Grid;
use crate::machine::accesses::access::Place;
use crate::machine::accesses::atomics::combine;
use crate::machine::reports::causes::Broken;
use crate::machine::reports::report;
use crate::machine::threads::warp::Block;
use crate::machine::undefined::origin::{self, Decides};
use crate::map_element::Element;
use crate::map_image::Map;
use crate::tensor_map::MapSwizzle;
use crate::types::{Space, Ty};
use crate::{FindingKind, Rule};

/// A row of a box.
pub(crate) struct BoxRow {
    /// Its offset in the box.
    offset: u64,
    /// Number of its bytes before the tensor.
    skip: u64,
    /// Address and number of its bytes inside the tensor.
    pub(crate) inside: Option<(u64, u32)>,
    /// Bytes after these that a store also writes: whole chunks of 16, up to the end of the box.
    spill: u32,
}

/// Bytes of global memory that a store writes at once.
const CHUNK: u64 = 16;

impl BoxRow {
    /// Address and number of the bytes that a store writes in this row.
    pub(crate) fn stored(&self) -> Option<(u64, u32)> {
        self.inside.map(|(at, bytes)| (at, bytes + self.spill))
    }
}

/// The rows of a box, in the order in which they lie in shared memory.
pub(crate) fn rows<'m>(spec: &'m Map, at: &'m [i32; 5]) -> impl Iterator<Item = BoxRow> + 'm {
    let size = spec.element.bytes();
    let rank = spec.rank as usize;
    let count: u64 = (1..rank).map(|mode| spec.count(mode)).product();
    let first = i64::from(at[0]);
    let (low, high) = (first.max(0), (first + i64::from(spec.extents[0])).min(spec.dims[0] as i64));
    (0..count).map(move |row| {
        let (mut rest, mut address, mut inside) = (row, spec.address, low < high);
        for (mode, at) in at.iter().enumerate().take(rank).skip(1) {
            let coordinate = i64::from(*at) + (rest % spec.count(mode) * u64::from(spec.steps[mode])) as i64;
            rest /= spec.count(mode);
            inside &= (0..spec.dims[mode] as i64).contains(&coordinate);
            address = address.wrapping_add((coordinate as u64).wrapping_mul(spec.strides[mode - 1]));
        }
        let bytes = ((high - low).max(0) as u64 * size) as u32;
        let end = high.max(0) as u64 * size;
        let most = (first + i64::from(spec.extents[0])).max(0) as u64 * size;
        BoxRow {
            offset: row * u64::from(spec.extents[0]) * size,
            skip: (low - first).max(0) as u64 * size,
            inside: inside.then(|| (address.wrapping_add(low.max(0) as u64 * size), bytes)),
            spill: (end.next_multiple_of(CHUNK).min(most) - end) as u32,
        }
    })
}

/// The address of a byte of shared memory after TMA's swizzle.
#[inline]
pub(crate) fn swizzled(at: u64, swizzle: MapSwizzle) -> u64 {
    at ^ (at >> 7 & ((1 << swizzle.bits()) - 1)) << 4
}

fn swizzle(f: &Flight) -> MapSwizzle {
    f.map.as_ref().map_or(MapSwizzle::None, |map| map.swizzle)
}

/// Executes a copy.
pub(crate) fn run(g: &Grid<'_>, b: &mut Block, mut f: Flight) {
    match f.info.way {
        BulkWay::Load => {
            let (data, undefined) = read_far(g, b, &f);
            let from = undefined.map_or(0, |at| number(b, &f, Place::Global(at)));
            write_near(b, &f, &data, from);
        }
        BulkWay::Peer => {
            let (from, n) = (f.far as usize, f.bytes as usize);
            let written = |i: usize| b.shared_written.get(i).is_none_or(|w| *w != 0);
            let data: Vec<(u8, bool)> = (from..from + n).map(|i| (b.shared[i], written(i))).collect();
            let undefined = data.iter().position(|(_, written)| !written).map(|i| (from + i) as u64);
            let origin = undefined.map_or(0, |at| near_origin(b, &f, at));
            let data = reduced_near(&f, b, data);
            write_near(b, &f, &data, origin);
        }
        BulkWay::Store => {
            let data = f.data.take().unwrap_or_else(|| read_near(b, &f));
            write_far(g, b, &f, &data);
        }
        BulkWay::Registers => {
            let data = f.data.take().unwrap_or_default();
            let data = reduced_near(&f, b, data);
            write_near(b, &f, &data, f.from);
        }
        BulkWay::Prefetch => {}
    }
    if let Some(at) = f.mbarrier {
        mbarrier::complete(b, at, f.bytes, f.pc);
    }
}

/// The bytes that a store copies, in the order of the box.
pub(crate) fn read_near(b: &Block, f: &Flight) -> Vec<(u8, bool)> {
    let swizzle = swizzle(f);
    let mut data = Vec::with_capacity(f.bytes as usize);
    for chunk in (0..u64::from(f.bytes)).step_by(16) {
        let at = swizzled(f.near + chunk, swizzle) as usize;
        let n = (u64::from(f.bytes) - chunk).min(16) as usize;
        data.extend((at..at + n).map(|i| (b.shared[i], b.shared_written.get(i).is_none_or(|w| *w != 0))));
    }
    data
}

/// The origin of the value that a copy reads at a place.
fn number(b: &mut Block, f: &Flight, place: Place) -> u32 {
    b.origins.number(f.pc, (f.who.block, f.who.warp.unwrap_or(0)), f.lane, place)
}

/// The origin of a value in shared memory.
fn near_origin(b: &mut Block, f: &Flight, at: u64) -> u32 {
    b.origins.at(at).unwrap_or_else(|| number(b, f, Place::Shared(at)))
}

fn write_near(b: &mut Block, f: &Flight, data: &[(u8, bool)], from: u32) {
    let swizzle = swizzle(f);
    for (i, chunk) in data.chunks(16).enumerate() {
        let at = swizzled(f.near + 16 * i as u64, swizzle) as usize;
        for (to, (byte, _)) in b.shared[at..].iter_mut().zip(chunk) {
            *to = *byte;
        }
        if chunk.iter().any(|(_, written)| !written) {
            b.origins.written(at as u64, chunk.len() as u32, from);
        }
        for (to, (_, written)) in b.shared_written.iter_mut().skip(at).zip(chunk) {
            *to = u8::from(*written);
        }
    }
}

/// Whether bytes of global memory are valid, and writable for a store. The last `spill` bytes are after the tensor's row.
fn is_there(g: &Grid<'_>, b: &mut Block, f: &Flight, at: u64, bytes: u32, spill: u32, write: bool) -> bool {
    let inside = |i: &usize| {
        let end = at.saturating_add(u64::from(bytes));
        end <= g.memory.allocations[*i].end && (!g.checks.bounds || g.memory.inside(*i, at, u64::from(bytes)))
    };
    let allocation = g.memory.find(at).filter(inside).map(|i| &g.memory.allocations[i]);
    let kind = match allocation {
        None => FindingKind::OutOfBounds,
        Some(a) if write && !a.writable => FindingKind::WriteToInput,
        Some(_) => return true,
    };
    let target = Some(report::target(g, Space::Global, at));
    let map = f.map.as_ref().map_or_else(String::new, |map| format!(" of a box at {:?} of {map}", f.coordinates));
    let behind = match spill {
        0 => String::new(),
        n => format!(": {CHUNK} B are written at once, of which {n} lie behind the row's extent"),
    };
    finding(g, b, kind, f.pc, f.who, target, format!("{bytes} B{map}{behind}"));
    false
}

/// Bytes of global memory, each with whether it is initialised.
fn read_global(g: &Grid<'_>, at: u64, bytes: u32, into: &mut [(u8, bool)]) {
    let mut i = 0;
    while i < u64::from(bytes) {
        let n = if (at + i).is_multiple_of(4) && i + 4 <= u64::from(bytes) { 4 } else { 1 };
        // SAFETY: the caller has found them in an allocation.
        let value = unsafe { g.memory.read(at + i, n) };
        let undefined = if g.checks.init { g.memory.undefined(at + i, n) } else { 0 };
        for e in 0..u64::from(n) {
            into[(i + e) as usize] = ((value >> (8 * e)) as u8, undefined >> (8 * e) & 0xff == 0);
        }
        i += u64::from(n);
    }
}

/// The bytes that a copy reads from global memory, and the address of the first uninitialised one.
fn read_far(g: &Grid<'_>, b: &mut Block, f: &Flight) -> (Vec<(u8, bool)>, Option<u64>) {
    let mut data = outside(f);
    let mut undefined = None;
    let mut look = |at: u64, read: &[(u8, bool)]| {
        let first = read.iter().position(|(_, written)| !written);
        undefined = undefined.or(first.map(|i| at + i as u64));
    };
    match &f.map {
        None => {
            read_global(g, f.far, f.bytes, &mut data);
            look(f.far, &data);
        }
        Some(map) => {
            for row in rows(map, &f.coordinates) {
                let Some((at, bytes)) = row.inside else { continue };
                if !is_there(g, b, f, at, bytes, 0, false) {
                    break;
                }
                let of_row = &mut data[(row.offset + row.skip) as usize..];
                read_global(g, at, bytes, of_row);
                look(at, &of_row[..bytes as usize]);
            }
            if matches!(map.element, Element::F32Ftz | Element::Tf32Ftz) {
                flush_subnormals(&mut data);
            }
            if matches!(map.element, Element::Tf32 | Element::Tf32Ftz) {
                round_to_tf32(&mut data);
            }
        }
    }
    (data, undefined)
}

/// The fill of a load outside the tensor: zeros, or NaN if the map says so.
fn outside(f: &Flight) -> Vec<(u8, bool)> {
    let map = f.map.as_ref().filter(|map| map.fills_nan);
    let Some((element, bits)) = map.and_then(|map| Some((map.element, map.element.nan()?))) else {
        return vec![(0, true); f.bytes as usize];
    };
    let bytes = bits.to_le_bytes();
    let element = bytes[..element.bytes() as usize].iter().map(|byte| (*byte, true));
    element.cycle().take(f.bytes as usize).collect()
}

/// Subnormals of f32 become zeros of their sign.
fn flush_subnormals(data: &mut [(u8, bool)]) {
    for element in data.chunks_exact_mut(4) {
        if element[3].0 & 0x7f == 0 && element[2].0 & 0x80 == 0 {
            element[3].0 &= 0x80;
            element[..3].iter_mut().for_each(|byte| byte.0 = 0);
        }
    }
}

/// The nearest tf32, which has 13 bits less than f32; ties to even.
fn tf32(x: f32) -> f32 {
    const CUT: u32 = 13;
    if !x.is_finite() {
        return x;
    }
    let bits = x.to_bits();
    let half = (1 << (CUT - 1)) - 1 + (bits >> CUT & 1);
    f32::from_bits((bits + half) >> CUT << CUT)
}

/// TMA's conversion of f32. NaN has one bit pattern (seen on an H200).
fn round_to_tf32(data: &mut [(u8, bool)]) {
    const NAN: u32 = 0x7fff_e000;
    for element in data.chunks_exact_mut(4) {
        let x = f32::from_le_bytes(core::array::from_fn(|i| element[i].0));
        let rounded = if x.is_nan() { NAN } else { tf32(x).to_bits() };
        // One undefined byte leaves no bit of it defined.
        let defined = element.iter().all(|(_, defined)| *defined);
        for (to, byte) in element.iter_mut().zip(rounded.to_le_bytes()) {
            *to = (byte, defined);
        }
    }
}

fn write_far(g: &Grid<'_>, b: &mut Block, f: &Flight, data: &[(u8, bool)]) {
    let mut undefined = None;
    match &f.map {
        None => write_global(g, f, f.far, data, red_type(f), &mut undefined),
        Some(spec) => {
            for row in rows(spec, &f.coordinates) {
                let Some((at, bytes)) = row.stored() else { continue };
                if !is_there(g, b, f, at, bytes, row.spill, true) {
                    break;
                }
                let from = (row.offset + row.skip) as usize;
                write_global(g, f, at, &data[from..from + bytes as usize], map_type(spec.element), &mut undefined);
            }
        }
    }
    if let Some((byte, bytes)) = undefined {
        let first = data.iter().position(|(_, written)| !written).unwrap_or(0) as u64;
        let at = swizzled(f.near + first / 16 * 16, swizzle(f)) + first % 16;
        let (from, at) = (near_origin(b, f, at), Broken::by_whom(&f.who, Rule::Initialised, f.pc));
        let what = "uninitialised bytes are copied to global memory";
        origin::finding_later(g, b, at, &Decides { what, from, written: Some((Space::Global, byte, bytes)) });
    }
}

/// Writes bytes, or reduces them into memory.
fn write_global(g: &Grid<'_>, f: &Flight, at: u64, data: &[(u8, bool)], ty: Ty, undefined: &mut Option<(u64, u64)>) {
    let width = if f.info.red.is_some() { ty.bytes() as usize } else { word(at, data.len()) };
    for (i, element) in data.chunks(width).enumerate() {
        let at = at + (i * width) as u64;
        let value = element.iter().rev().fold(0_u64, |v, (byte, _)| v << 8 | u64::from(*byte));
        let n = element.len() as u32;
        // SAFETY: the caller has found them in an allocation.
        unsafe {
            let value = match f.info.red {
                Some((op, _)) => combine(op, ty, [g.memory.read(at, n), value, 0], 0),
                None => value,
            };
            g.memory.write(at, n, value);
        }
        if g.checks.init {
            let bits = element.iter().enumerate().fold(0, |m, (i, (_, w))| if *w { m } else { m | 0xff << (8 * i) });
            if bits != 0 {
                *undefined = undefined.or(Some((at, u64::from(n))));
            }
            g.memory.define(at, n, bits);
        }
    }
}

/// The widest piece that bytes can be written in.
fn word(at: u64, bytes: usize) -> usize {
    [4, 2].into_iter().find(|n| at.is_multiple_of(*n as u64) && bytes.is_multiple_of(*n)).unwrap_or(1)
}

/// A reduction into shared memory.
fn reduced_near(f: &Flight, b: &Block, data: Vec<(u8, bool)>) -> Vec<(u8, bool)> {
    let Some((op, ty)) = f.info.red else { return data };
    let width = ty.bytes() as usize;
    let value =
        |of: &mut dyn Iterator<Item = u8>| of.enumerate().fold(0, |v, (i, byte)| v | u64::from(byte) << (8 * i));
    let mut out = data;
    for (i, element) in out.chunks_mut(width).enumerate() {
        let at = f.near as usize + i * width;
        let old = value(&mut b.shared[at..at + element.len()].iter().copied());
        let new = combine(op, ty, [old, value(&mut element.iter().map(|(byte, _)| *byte)), 0], 0);
        // One undefined byte makes the whole result undefined.
        let written = |i: usize| b.shared_written.get(i).is_none_or(|w| *w != 0);
        let is_defined = element.iter().all(|(_, written)| *written) && (at..at + element.len()).all(written);
        for (byte, new) in element.iter_mut().zip(new.to_le_bytes()) {
            *byte = (new, is_defined);
        }
    }
    out
}

fn red_type(f: &Flight) -> Ty {
    f.info.red.map_or(Ty::B32, |(_, ty)| ty)
}

fn map_type(element: Element) -> Ty {
    match element {
        Element::F64 => Ty::F64,
        Element::F32 | Element::F32Ftz | Element::Tf32 | Element::Tf32Ftz => Ty::F32,
        Element::F16 => Ty::F16,
        Element::Bf16 => Ty::Bf16,
        Element::S32 => Ty::S32,
        Element::U32 => Ty::U32,
        Element::S64 => Ty::S64,
        Element::U64 => Ty::U64,
        Element::U16 => Ty::U16,
        Element::U8 => Ty::U8,
    }
}

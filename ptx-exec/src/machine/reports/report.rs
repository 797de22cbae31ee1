//! Reports findings, and prints the kernel's output.

use super::causes::Broken;
use crate::code::{Code, Inst, LocalVariable, Op};
use crate::lower::special::SPECIAL;
use crate::machine::accesses::access::{Place, locate, read};
use crate::machine::threads::warp::{Block, Warp};
use crate::machine::{Grid, LOCAL_WINDOW, SHARED_WINDOW, WINDOW};
use crate::types::Space;
use crate::{Finding, Rule, Site, SourceLine, Target, Who};

/// Functions that are inlined into each other.
const DEEPEST: usize = 4096;
/// Bytes that a block prints at most.
const MOST_PRINTED: usize = 1 << 20;

/// An instruction, in words.
pub(crate) fn site(code: &Code, pc: u32) -> Site {
    let (position, loc) = code.places[pc as usize];
    let mut source = Vec::new();
    let mut at = loc;
    while let Some(loc) = at.and_then(|i| code.locs.get(i as usize)) {
        let file = code.files.iter().find(|(n, _)| *n == loc.file);
        let file = file.map_or_else(|| format!("file {}", loc.file), |(_, name)| name.clone());
        source.push(SourceLine { file, line: loc.line });
        // A chain goes back to earlier places; hostile ones are cut.
        at = loc.inlined_at.filter(|_| source.len() < DEEPEST);
    }
    Site { ptx_line: position.line, opcode: code.names[code.opcodes[pc as usize] as usize].clone(), source }
}

pub(crate) fn who(g: &Grid<'_>, block: [u32; 3], warp: u32, lanes: u32) -> Who {
    let t = warp * 32 + lanes.trailing_zeros().min(31);
    let [x, y, _] = g.block;
    Who { block, thread: Some([t % x, t / x % y, t / x / y]), warp: Some(warp), lanes }
}

/// Lanes break a rule at an instruction.
pub(crate) fn simple(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    rule: impl Into<Rule>,
    pc: u32,
    lanes: u32,
    detail: String,
) {
    let at = Broken::by(w, rule.into(), pc, lanes);
    b.findings.keep(g, &at, || Finding { detail, ..broken(g, &at) });
}

/// A rule is broken at an instruction.
pub(crate) fn broken(g: &Grid<'_>, at: &Broken) -> Finding {
    Finding {
        entry: Some(g.code.name.clone()),
        who: Some(at.who(g)),
        site: Some(site(g.code, at.pc)),
        ..Finding::new(at.rule)
    }
}

/// The kernel executes `trap`; `grid.sync()` does so in a launch that is not cooperative.
pub(crate) fn trap(g: &Grid<'_>, b: &mut Block, w: &Warp, pc: u32, lanes: u32) {
    let asks = |i: &Inst| i.op == Op::Sreg && SPECIAL[i.x as usize].starts_with("%envreg");
    let is_missing = g.workspace == 0 && g.code.insts.iter().any(asks);
    let detail =
        if is_missing { "the entry reads %envreg1 and %envreg2: only a cooperative launch sets them" } else { "" };
    simple(g, b, w, if is_missing { Rule::Cooperative } else { Rule::NoTrap }, pc, lanes, detail.to_owned());
}

/// The target of an address.
pub(crate) fn target(g: &Grid<'_>, space: Space, address: u64) -> Target {
    let shared = match space {
        Space::Shared => Some(address),
        Space::Generic if address.wrapping_sub(SHARED_WINDOW) < WINDOW => Some(address - SHARED_WINDOW),
        _ => None,
    };
    if let Some(at) = shared {
        let nearest = g
            .shared
            .iter()
            .min_by_key(|v| if at < v.start { v.start - at } else { (at + 1).saturating_sub(v.start + v.bytes) });
        return match nearest {
            Some(v) => {
                let offset = at.wrapping_sub(v.start).cast_signed();
                Target::Shared { name: v.name.clone(), offset, size: v.bytes }
            }
            None => Target::Address(at),
        };
    }
    let local = match space {
        Space::Local => Some(address),
        Space::Generic if address.wrapping_sub(LOCAL_WINDOW) < WINDOW => Some(address - LOCAL_WINDOW),
        _ => None,
    };
    if let Some(at) = local {
        return local_target(g, at);
    }
    g.memory.describe(address)
}

/// The variable of local memory that is nearest to a byte.
pub(crate) fn local_target(g: &Grid<'_>, at: u64) -> Target {
    let away = |v: &&LocalVariable| if at < v.start { v.start - at } else { (at - v.start).saturating_sub(v.bytes) };
    match g.code.locals.iter().min_by_key(away) {
        Some(v) => {
            Target::Local { name: v.name.clone(), offset: at.wrapping_sub(v.start).cast_signed(), size: v.bytes }
        }
        None => Target::Address(at),
    }
}

#[allow(clippy::too_many_arguments, reason = "what the finding says")]
pub(crate) fn access(
    g: &Grid<'_>,
    b: &mut Block,
    w: &Warp,
    rule: impl Into<Rule>,
    pc: u32,
    lane: u32,
    space: Space,
    address: u64,
    bytes: u64,
    write: bool,
) {
    let at = Broken::by(w, rule.into(), pc, 1 << lane);
    b.findings.keep(g, &at, || {
        let target = Some(target(g, space, address));
        Finding { target, write, bytes, ..broken(g, &at) }
    });
}

/// A string of the guest's, up to its zero.
fn text(g: &Grid<'_>, b: &Block, w: &mut Warp, address: u64, lane: u32) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let place = locate(g, w, Space::Generic, address.wrapping_add(text.len() as u64), lane, 1, false).ok()?;
        match read(g, b, w, place, 1) as u8 {
            0 => return Some(text),
            byte if text.len() < 4096 => text.push(byte),
            _ => return Some(text),
        }
    }
}

/// The text of a failed assertion.
///
/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn assertion(g: &Grid<'_>, b: &Block, w: &mut Warp, inst: &Inst, mask: u32) -> String {
    let r = w.rows();
    let l = mask.trailing_zeros();
    let row = |i: u32| g.code.list[(inst.list + i) as usize];
    // SAFETY: the caller says so.
    let (message, file, line, function) = unsafe {
        (
            *r.lanes::<u64>(row(0)).add(l as usize),
            *r.lanes::<u64>(row(1)).add(l as usize),
            *r.lanes::<u32>(row(2)).add(l as usize),
            *r.lanes::<u64>(row(3)).add(l as usize),
        )
    };
    let mut words = |address: u64| {
        text(g, b, w, address, l).map_or_else(|| "?".to_owned(), |t| String::from_utf8_lossy(&t).into_owned())
    };
    format!("{}:{line}: {}: assertion `{}` failed", words(file), words(function), words(message))
}

/// `vprintf`: a format and a buffer of arguments, as C lays them out.
///
/// # Safety
/// The operands are those of the warp.
pub(crate) unsafe fn print(g: &Grid<'_>, b: &mut Block, w: &mut Warp, inst: &Inst, mask: u32) {
    let r = w.rows();
    for l in (0..32_u32).filter(|l| mask >> l & 1 != 0) {
        // SAFETY: the caller says so.
        let (format, args) = unsafe {
            let row = |i: u32| g.code.list[(inst.list + i) as usize];
            (*r.lanes::<u64>(row(0)).add(l as usize), *r.lanes::<u64>(row(1)).add(l as usize))
        };
        let Some(format) = text(g, b, w, format, l) else { continue };
        let mut at = 0_u64;
        let mut argument = |w: &mut Warp, b: &Block, bytes: u64| {
            at = at.next_multiple_of(bytes);
            let place = locate(g, w, Space::Generic, args.wrapping_add(at), l, bytes, false);
            at += bytes;
            place.map_or(0, |p: Place| read(g, b, w, p, bytes as u32))
        };
        let mut out = String::new();
        let mut rest = &format[..];
        while let Some(percent) = rest.iter().position(|c| *c == b'%') {
            out.push_str(&String::from_utf8_lossy(&rest[..percent]));
            let spec = &rest[percent + 1..];
            let end = spec.iter().position(|c| b"%diuxXofFeEgGaAcsp".contains(c));
            let Some(end) = end else {
                rest = &rest[percent..];
                break;
            };
            let flags = String::from_utf8_lossy(&spec[..end]).into_owned();
            let long = flags.contains('l') || flags.contains('j') || flags.contains('z') || flags.contains('t');
            match spec[end] {
                b'%' => out.push('%'),
                b's' => {
                    let address = argument(w, b, 8);
                    let words = text(g, b, w, address, l).unwrap_or_else(|| b"(null)".to_vec());
                    pad(&mut out, &flags, String::from_utf8_lossy(&words).into_owned());
                }
                b'c' => {
                    let c = argument(w, b, 4) as u8;
                    pad(&mut out, &flags, char::from(c).to_string());
                }
                b'p' => {
                    let v = argument(w, b, 8);
                    pad(&mut out, &flags, format!("{v:#x}"));
                }
                kind @ (b'd' | b'i' | b'u' | b'x' | b'X' | b'o') => {
                    let v = argument(w, b, if long { 8 } else { 4 });
                    let signed = if long { v as i64 } else { i64::from(v as i32) };
                    let digits = match kind {
                        b'd' | b'i' => signed.to_string(),
                        b'x' => format!("{v:x}"),
                        b'X' => format!("{v:X}"),
                        b'o' => format!("{v:o}"),
                        _ => v.to_string(),
                    };
                    pad(&mut out, &flags, digits);
                }
                kind => {
                    let v = f64::from_bits(argument(w, b, 8));
                    let precision = flags.split_once('.').and_then(|(_, p)| p.parse().ok()).unwrap_or(6_usize).min(64);
                    let digits = match kind {
                        b'e' | b'E' => scientific(v, precision),
                        b'g' | b'G' => format!("{v}"),
                        _ => format!("{v:.precision$}"),
                    };
                    pad(&mut out, &flags, digits);
                }
            }
            rest = &spec[end + 1..];
        }
        out.push_str(&String::from_utf8_lossy(rest));
        if b.printed.len() + out.len() <= MOST_PRINTED {
            b.printed.push_str(&out);
        }
    }
}

/// C's exponents have a sign and two digits.
fn scientific(v: f64, precision: usize) -> String {
    let text = format!("{v:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |d| ('-', d));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

/// Pads to the width of a conversion's flags.
fn pad(out: &mut String, flags: &str, digits: String) {
    let whole = flags.split('.').next().unwrap_or_default();
    let left = whole.contains('-');
    let zero = whole.trim_start_matches(['-', '+', ' ', '#']).starts_with('0') && !left;
    let width: usize = whole.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0).min(1024);
    let missing = width.saturating_sub(digits.chars().count());
    match (left, zero) {
        (true, _) => {
            out.push_str(&digits);
            out.extend(core::iter::repeat_n(' ', missing));
        }
        (_, true) => {
            let (sign, rest) = digits.strip_prefix('-').map_or(("", digits.as_str()), |d| ("-", d));
            out.push_str(sign);
            out.extend(core::iter::repeat_n('0', missing));
            out.push_str(rest);
        }
        _ => {
            out.extend(core::iter::repeat_n(' ', missing));
            out.push_str(&digits);
        }
    }
}

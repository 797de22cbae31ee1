//! One access of a warp on the banks of shared memory.

use std::collections::BTreeMap;

use super::grid::{Axis, Cell, Grid, arrange};
use super::palette::{WHITE, pastel};
use super::sheet::{GAP, Sheet};
use super::{DrawError, Options, allow};
use crate::model::banks::{BANKS, WORD, part};
use crate::model::lane_ranges;
use crate::model::{Request, SharedOp};

/// One request of a warp: a column for each of the 32 banks, a row for each line of 128 bytes that is touched, one grid for
/// each part in which the warp is served. A cell is a word of 4 bytes: the lanes that want it and, below, the pass that serves
/// it. Words that wait for an earlier pass over their bank are coloured.
///
/// # Errors
/// No lane takes part; more cells than the options allow; a copy of 16 bytes, whose passes do not follow from banks.
///
/// ```
/// use cutemplate::draw::{self, Options};
/// use cutemplate::model::{Request, SharedOp};
/// use cutemplate::units::Bytes;
/// // Lanes down the columns of 16 x 32 floats, row-major: 16 words of bank 0 and 16 of bank 1.
/// let addresses = (0..32).map(|lane| Some(128 * (lane % 16) + 4 * (lane / 16))).collect();
/// let svg = draw::request(&Request::new(SharedOp::Load, Bytes(4), addresses), &Options::default())?;
/// assert!(svg.contains("16 passes over the banks, where 1 is the least"));
/// # Ok::<(), cutemplate::draw::DrawError>(())
/// ```
pub fn request(request: &Request, options: &Options) -> Result<String, DrawError> {
    let refuse = |found: String, required: &str, because: &str, help: &str| DrawError::Refused {
        picture: "request",
        found,
        required: required.into(),
        because: because.into(),
        help: help.into(),
    };
    let width = request.bytes.0 as i64;
    if request.op == SharedOp::Copy && width == 16 {
        return Err(refuse(
            "a copy of 16 bytes for each lane".into(),
            "a load, a store, or a copy of 4 or 8 bytes",
            "a copy of 16 bytes takes a pass for each line and each exclusive or of places in lines, whatever the banks",
            "Request::wavefronts counts them",
        ));
    }
    if ![1, 2, 4, 8, 16].contains(&width) || request.addresses.iter().all(Option::is_none) {
        return Err(refuse(
            format!("{} lanes that move {} each", request.addresses.iter().flatten().count(), request.bytes),
            "at least one lane, and 1, 2, 4, 8 or 16 bytes",
            "those are the widths of loads and stores of one thread (PTX ISA, ld.shared)",
            "name the address of each lane that takes part",
        ));
    }
    let lanes = part(request.op, width, &request.addresses);
    let parts: Vec<(usize, Words)> = (request.addresses.chunks(lanes).enumerate())
        .map(|(number, group)| (number * lanes, words(number * lanes, group, width)))
        .filter(|(_, words)| !words.is_empty())
        .collect();
    let sizes: Vec<(i64, i64)> = parts.iter().map(|(_, words)| (lines(words).len() as i64, BANKS)).collect();
    let title = format!("{} of {} for each lane", request.op, request.bytes);
    allow("request", &title, &sizes, options)?;
    let grids: Vec<Grid> =
        parts.iter().map(|(first, words)| grid(words, request.op, *first, (first + lanes).min(32))).collect();
    let mut sheet = Sheet::new();
    arrange(&mut sheet, &grids, GAP);
    let caption = [
        format!(
            "{} passes over the banks, where {} is the least for these lanes.",
            request.wavefronts(),
            request.least()
        ),
        "A column is a bank, a row 128 bytes. A cell names the lanes that want this word of 4 bytes and the pass that serves \
         it; words that wait for an earlier pass are coloured."
            .into(),
    ];
    Ok(sheet.finish(&title, &caption))
}

/// The words that lanes want, with those lanes.
type Words = BTreeMap<i64, Vec<usize>>;

fn words(first: usize, group: &[Option<i64>], width: i64) -> Words {
    let mut words = Words::new();
    for (lane, address) in group.iter().enumerate() {
        let Some(address) = address else { continue };
        for word in address.div_euclid(WORD)..=address.saturating_add(width - 1).div_euclid(WORD) {
            words.entry(word).or_default().push(first + lane);
        }
    }
    words
}

/// The lines of 128 bytes that have words, in order.
fn lines(words: &Words) -> Vec<i64> {
    let mut lines: Vec<i64> = words.keys().map(|word| word.div_euclid(BANKS)).collect();
    lines.dedup();
    lines
}

fn grid(words: &Words, op: SharedOp, first: usize, end: usize) -> Grid {
    let lines = lines(words);
    let mut used = vec![0_usize; BANKS as usize];
    let mut cells = vec![Cell::blank(); lines.len() * BANKS as usize];
    for (word, lanes) in words {
        let bank = word.rem_euclid(BANKS) as usize;
        let row = lines.binary_search(&word.div_euclid(BANKS)).unwrap_or(0);
        let pass = used[bank];
        // Copies to one word are not merged.
        used[bank] += if op == SharedOp::Copy { lanes.len() } else { 1 };
        let waits = pass > 0 || used[bank] > 1 && op == SharedOp::Copy;
        let fill = if waits { pastel(pass as i64) } else { WHITE };
        cells[row * BANKS as usize + bank] = Cell { label: lane_ranges(lanes), second: format!("pass {pass}"), fill };
    }
    let passes = used.into_iter().max().unwrap_or(0);
    let plural = if passes == 1 { "" } else { "es" };
    Grid {
        heading: format!("lanes {first} to {}: {passes} pass{plural}", end - 1),
        rows: axis(lines.iter().map(|line| format!("byte {}", line * BANKS * WORD)).collect()),
        columns: axis((0..BANKS).map(|bank| format!("b{bank}")).collect()),
        cells,
    }
}

fn axis(names: Vec<String>) -> Axis {
    Axis { borders: vec![0; names.len()], names }
}

//! Lanes of a warp that wait for one another.

use core::fmt;
use std::collections::BTreeMap;

use crate::model::banks::{BANKS, Request, SharedOp, WORD, line, part};

/// Words or lines that a text names one by one.
const NAMED: usize = 4;

/// The first request of an access that takes more passes than it has to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its warp in the block.
    pub warp: u32,
    /// Its step in the access.
    pub step: i64,
    /// Its request.
    pub request: Request,
    /// The bank with the most different words; `None` where not the banks are the reason, but the lines of a copy.
    pub bank: Option<u32>,
    /// The places in that bank, with the lanes that want them: words of 4 bytes, or lines of 128 for a copy, numbered
    /// from the start of the tensor.
    pub places: Vec<(i64, Vec<usize>)>,
}

impl Conflict {
    pub(crate) fn of(warp: u32, step: i64, request: Request) -> Self {
        let (bank, places) = match request.op {
            SharedOp::Copy if request.bytes.0 == 16 => (None, lines(&request)),
            _ => {
                let (bank, places) = crowded(&request);
                (Some(bank), places)
            }
        };
        Self { warp, step, request, bank, places }
    }

    /// The lanes that wait for one another.
    pub fn lanes(&self) -> Vec<usize> {
        let mut lanes: Vec<usize> = self.places.iter().flat_map(|(_, lanes)| lanes.iter().copied()).collect();
        lanes.sort_unstable();
        lanes
    }
}

/// The words that lanes which are served together want of one bank, of the bank that has the most of them.
fn crowded(request: &Request) -> (u32, Vec<(i64, Vec<usize>)>) {
    let width = (request.bytes.0 as i64).max(1);
    let lanes = part(request.op, width, &request.addresses);
    let mut worst = (0, 0, Vec::new());
    for (number, group) in request.addresses.chunks(lanes).enumerate() {
        let mut banks = vec![BTreeMap::<i64, Vec<usize>>::new(); BANKS as usize];
        for (place, address) in group.iter().enumerate() {
            let Some(address) = address else { continue };
            for word in address.div_euclid(WORD)..=(address + width - 1).div_euclid(WORD) {
                let wanted = banks[word.rem_euclid(BANKS) as usize].entry(word).or_default();
                wanted.push(number * lanes + place);
            }
        }
        for (bank, words) in banks.into_iter().enumerate() {
            // Copies to one word are not merged.
            let waiting = if request.op == SharedOp::Copy { words.values().map(Vec::len).sum() } else { words.len() };
            if waiting > worst.0 {
                worst = (waiting, bank as u32, words.into_iter().collect());
            }
        }
    }
    (worst.1, worst.2)
}

/// The lines of 128 bytes that a copy of chunks goes to, one pass each: a line comes again where its chunks come from other
/// places in lines of global memory.
fn lines(request: &Request) -> Vec<(i64, Vec<usize>)> {
    let mut passes: BTreeMap<(i64, i64), Vec<usize>> = BTreeMap::new();
    for (lane, address) in request.addresses.iter().enumerate() {
        if let Some(address) = address {
            passes.entry(line(*address, request.sources.get(lane).copied())).or_default().push(lane);
        }
    }
    passes.into_iter().map(|((line, _), lanes)| (line, lanes)).collect()
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warp {}, step {}: ", self.warp, self.step)?;
        match self.bank {
            Some(bank) => write!(f, "{} words of bank {bank} at once: ", self.places.len())?,
            None => write!(f, "{} passes over lines of 128 B: ", self.places.len())?,
        }
        let what = if self.bank.is_some() { "word" } else { "line" };
        for (number, (place, lanes)) in self.places.iter().take(NAMED).enumerate() {
            let (plural, comma) = (if lanes.len() == 1 { "" } else { "s" }, if number == 0 { "" } else { "; " });
            write!(f, "{comma}{what} {place} for lane{plural} {}", lane_ranges(lanes))?;
        }
        match self.places.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// `0-7,12`: the lanes in ascending order.
pub(crate) fn lane_ranges(lanes: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for lane in lanes {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *lane => *last = *lane,
            _ => parts.push((*lane, *lane)),
        }
    }
    let text =
        |(first, last): (usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.into_iter().map(text).collect::<Vec<_>>().join(",")
}

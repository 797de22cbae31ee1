//! The layouts that would do better: every swizzle, and every padding.

use core::cmp::Reverse;
use core::fmt;
use std::borrow::Cow;

use super::access::Touch;
use super::{Offsets, SharedError, SharedTensor};
use crate::layout::{IntTuple, Layout, Swizzle};
use crate::model::banks::{PASS, WARP, count};
use crate::units::{Bytes, Elements};

/// A layout for a tensor in shared memory, with its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The layout, before the swizzle.
    pub layout: Layout,
    /// The swizzle of its elements, if any.
    pub swizzle: Option<Swizzle>,
    /// The stride that is padded, as it was, and how many elements are added to it; larger strides grow with it.
    pub padding: Option<(Elements, Elements)>,
    /// Passes that a better layout would save, over all accesses of a block.
    pub extra: u64,
    /// The memory that it takes.
    pub memory: Bytes,
}

impl fmt::Display for Proposal {
    /// `Sw<5,0,5>`, `a stride of 33`, or `as it is`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.swizzle, self.padding) {
            (None, None) => f.write_str("as it is"),
            (Some(swizzle), None) => write!(f, "{swizzle}"),
            (None, Some((stride, pad))) => write!(f, "a stride of {}", stride.0 + pad.0),
            (Some(swizzle), Some((stride, pad))) => write!(f, "{swizzle} and a stride of {}", stride.0 + pad.0),
        }
    }
}

/// The requests of an access.
type Touched<'a> = Cow<'a, [Touch]>;

/// One layout of the search, with the offsets of all that its accesses touch.
struct Padded {
    layout: Layout,
    padding: Option<(Elements, Elements)>,
    elements: i64,
    /// For each access, for each of its requests: the offset in elements of each lane.
    offsets: Vec<Vec<Vec<Option<i64>>>>,
}

/// The best so far, and how many are wanted.
struct Best {
    keep: usize,
    found: Vec<Proposal>,
}

impl Best {
    /// The bound that a later proposal must stay below.
    fn limit(&self) -> u64 {
        if self.found.len() < self.keep { u64::MAX } else { self.found.last().map_or(0, |worst| worst.extra) }
    }

    fn add(&mut self, proposal: Proposal) {
        let place = self.found.partition_point(|other| other.extra <= proposal.extra);
        self.found.insert(place, proposal);
        self.found.truncate(self.keep);
    }
}

impl SharedTensor {
    /// The best `keep` layouts of all legal swizzles, alone and with every padding of a leading stride by up to 32
    /// words. The best layout saves the most passes over all accesses. Ties go to the layout that takes the least
    /// memory. Further ties go to the simplest: without a swizzle, with the fewest bits, with the fewest constant bits,
    /// with the smallest shift.
    ///
    /// A swizzle is legal where it permutes the elements of the tensor and keeps every vector whole; a padding where it keeps
    /// every vector whole and aligned.
    ///
    /// # Errors
    /// As [`SharedTensor::analyze`], for the layout as it is without its swizzle.
    pub fn proposals(&self, keep: usize) -> Result<Vec<Proposal>, SharedError> {
        self.search(keep, true)
    }

    /// The best `keep` swizzles, without padding.
    ///
    /// # Errors
    /// As [`SharedTensor::proposals`].
    pub fn swizzles(&self, keep: usize) -> Result<Vec<Proposal>, SharedError> {
        self.search(keep, false)
    }

    fn search(&self, keep: usize, paddings: bool) -> Result<Vec<Proposal>, SharedError> {
        let plain = Self { swizzle: None, ..self.clone() };
        plain.analyze()?;
        // Behind a padding other requests are of a kind: there each is asked for.
        let largest = 1 << self.elements().0.max(1).trailing_zeros();
        let kinds = self
            .accesses
            .iter()
            .map(|access| if paddings { access.touches() } else { plain.requests(access, None, largest) });
        let touched: Vec<Touched<'_>> = kinds.collect();
        let mut layouts: Vec<Padded> = plain.padded(self.layout.clone(), None, &touched).into_iter().collect();
        if paddings {
            layouts.extend(plain.paddings(&touched));
        }
        // Stable: the layout without padding is the first of its size.
        layouts.sort_by_key(|padded| padded.elements);
        let mut best = Best { keep, found: Vec::new() };
        let mut order = self.order(&touched);
        for padded in &layouts {
            for swizzle in plain.legal(padded.elements) {
                if best.limit() == 0 {
                    return Ok(best.found);
                }
                if let Some(extra) = plain.extra_below(padded, &touched, swizzle, best.limit(), &mut order) {
                    best.add(Proposal {
                        layout: padded.layout.clone(),
                        swizzle: Some(swizzle).filter(|swizzle| swizzle.bits() > 0),
                        padding: padded.padding,
                        extra,
                        memory: Bytes(padded.elements as u64 * self.element.0),
                    });
                }
            }
        }
        Ok(best.found)
    }

    /// Every swizzle that permutes this many elements and leaves vectors whole, the simplest first.
    fn legal(&self, elements: i64) -> impl Iterator<Item = Swizzle> + use<> {
        let base = i64::from(self.vector().ilog2());
        let most = i64::from(elements.max(1).trailing_zeros());
        let one = move |bits: i64| {
            let bases = base..=(most - 2 * bits).max(base - 1);
            bases.flat_map(move |base| {
                (bits..=most - base - bits).flat_map(move |shift| {
                    [shift, -shift].into_iter().filter_map(move |shift| Swizzle::new(bits, base, shift).ok())
                })
            })
        };
        Swizzle::new(0, 0, 0).into_iter().chain((1..=most / 2).flat_map(one))
    }

    /// Every padding of a stride that other elements lie below, larger strides in proportion.
    fn paddings(&self, touched: &[Touched<'_>]) -> Vec<Padded> {
        let mut strides = self.layout.stride().ints().unwrap_or_default().to_vec();
        strides.sort_unstable();
        strides.dedup();
        let vector = self.vector();
        let most = PASS / self.element.0 as i64;
        let mut all = Vec::new();
        for stride in strides.into_iter().filter(|stride| *stride > 1) {
            for pad in (vector..=most).step_by(vector as usize) {
                let padding = (Elements(stride as u64), Elements(pad as u64));
                let scaled = scale(self.layout.stride(), stride, stride + pad);
                let layout = scaled.and_then(|strides| Layout::new(self.layout.shape().clone(), strides).ok());
                all.extend(layout.and_then(|layout| self.padded(layout, Some(padding), touched)));
            }
        }
        all
    }

    /// The offsets of all accesses; `None` where a vector would be torn or not be aligned.
    fn padded(&self, layout: Layout, padding: Option<(Elements, Elements)>, touched: &[Touched<'_>]) -> Option<Padded> {
        let elements = layout.cosize().ok()?;
        let stride = padding.map_or(i64::MAX, |(stride, _)| stride.0 as i64);
        let mut offsets = Vec::with_capacity(self.accesses.len());
        let asked = touched.iter().map(|touches| touches.len() * WARP).sum();
        let (before, after) = (Offsets::of(&self.layout, asked), Offsets::of(&layout, asked));
        for (access, touches) in self.accesses.iter().zip(touched) {
            let vector = (access.bytes().0 / self.element.0) as i64;
            let place = |index: i64| {
                // Where in a block of the padded stride a vector begins, and that it ends there too.
                let whole = before.at(index)? % stride + vector <= stride;
                after.at(index).filter(|offset| whole && offset % vector == 0)
            };
            let mut requests = Vec::with_capacity(touches.len());
            for touch in touches.iter() {
                let mut lanes = Vec::with_capacity(touch.lanes.len());
                for index in &touch.lanes {
                    lanes.push(match index {
                        Some(index) => Some(place(*index)?),
                        None => None,
                    });
                }
                requests.push(lanes);
            }
            offsets.push(requests);
        }
        Some(Padded { layout, padding, elements, offsets })
    }

    /// Accesses and their requests, those that move the most bytes at once first: there most candidates fail.
    fn order(&self, touched: &[Touched<'_>]) -> Vec<(usize, usize)> {
        let requests = |place: usize| (0..touched[place].len()).map(move |touch| (place, touch));
        let mut order: Vec<(usize, usize)> = (0..self.accesses.len()).flat_map(requests).collect();
        order.sort_by_key(|(place, _)| Reverse(self.accesses[*place].bytes()));
        order
    }

    /// The passes that could be saved, if they are fewer than `limit`. The request at which it is no longer so is the first to be asked of
    /// the next candidate, which mostly fails there too.
    fn extra_below(
        &self,
        padded: &Padded,
        touched: &[Touched<'_>],
        swizzle: Swizzle,
        limit: u64,
        order: &mut [(usize, usize)],
    ) -> Option<u64> {
        let mut extra = 0;
        for at in 0..order.len() {
            let (place, request) = order[at];
            let (access, offsets) = (&self.accesses[place], &padded.offsets[place][request]);
            let touch = &touched[place][request];
            let mut addresses = [None; WARP];
            for (address, offset) in addresses.iter_mut().zip(offsets) {
                *address = offset.map(|offset| swizzle.apply(offset) * self.element.0 as i64);
            }
            let counted = count(access.op(), access.bytes(), &addresses, &touch.sources);
            extra += u64::from(counted.wavefronts.saturating_sub(counted.least)) * touch.times;
            if extra >= limit {
                order[..=at].rotate_right(1);
                return None;
            }
        }
        Some(extra)
    }
}

/// The strides, those of at least `from` in proportion to `to`; `None` if one is not a multiple of it.
fn scale(strides: &IntTuple, from: i64, to: i64) -> Option<IntTuple> {
    match strides.as_int() {
        Some(stride) if stride < from => Some(IntTuple::int(stride)),
        Some(stride) if stride % from == 0 => Some(IntTuple::int(stride / from * to)),
        Some(_) => None,
        None => {
            let modes: Option<Vec<IntTuple>> = strides.modes().map(|mode| scale(&mode, from, to)).collect();
            IntTuple::tuple(modes?).ok()
        }
    }
}

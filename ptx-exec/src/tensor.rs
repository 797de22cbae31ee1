//! Tensors in a buffer, and the bytes of their elements.

use core::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use crate::Target;
use crate::error::Error;

/// A strided tensor in a [`Buffer`](crate::Buffer). Findings name its coordinates, and mode `bounds` reports accesses between its
/// elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// Its name in findings.
    pub name: String,
    /// Bytes of the buffer before the element at coordinate 0.
    pub offset: u64,
    /// Bytes of an element.
    pub item: u64,
    /// Extents.
    pub shape: Vec<u64>,
    /// Strides, in elements.
    pub stride: Vec<i64>,
}

/// The elements of a mode: how many, and the bytes from one to the next.
type Mode = (i128, i128);

impl Tensor {
    fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The offset of its lowest byte, and its modes with extent and stride other than 1 and 0, the largest stride first.
    fn modes(&self) -> (i128, Vec<Mode>) {
        let (mut start, mut modes) = (i128::from(self.offset), Vec::new());
        for (n, d) in self.shape.iter().zip(&self.stride) {
            let (n, d) = (i128::from(*n), i128::from(*d) * i128::from(self.item));
            if n > 1 && d != 0 {
                start = start.saturating_add(if d < 0 { (n - 1).saturating_mul(d) } else { 0 });
                modes.push((n, d.abs()));
            }
        }
        modes.sort_by_key(|(_, stride)| Reverse(*stride));
        (start, modes)
    }

    /// Checks that the tensor is complete and lies in a buffer of `bytes`.
    fn check(&self, buffer: &str, bytes: u64) -> Result<(), Error> {
        let refuse = |what: &str, found: String, required: String| {
            Err(Error::launch(what)
                .found(format!("{found}, tensor {} of buffer {buffer}", self.name))
                .required(required))
        };
        if self.shape.len() != self.stride.len() || self.item == 0 {
            let found =
                format!("{} extents, {} strides, items of {} B", self.shape.len(), self.stride.len(), self.item);
            return refuse(
                "a tensor is incomplete",
                found,
                "a stride for each extent, items of a byte or more".to_owned(),
            );
        }
        if self.is_empty() {
            return Ok(());
        }
        let (start, modes) = self.modes();
        let end = modes.iter().fold(start, |end, (n, d)| end.saturating_add((n - 1).saturating_mul(*d)));
        let end = end.saturating_add(i128::from(self.item));
        if start < 0 || end > i128::from(bytes) {
            let found = format!("bytes {start} to {end} of {bytes}");
            return refuse(
                "a tensor leaves its buffer",
                found,
                "a tensor whose elements all lie in its buffer".to_owned(),
            );
        }
        Ok(())
    }

    /// The coordinate of a byte offset from the first element, and its distance outside each mode, the largest stride first. Inside the
    /// tensor all distances are 0.
    fn locate(&self, bytes: i64) -> (Vec<i64>, Vec<i64>) {
        let mut coordinate = vec![0; self.shape.len()];
        let mut distance = Vec::new();
        let mut rest = bytes.div_euclid(self.item as i64);
        // Modes of one element too: past the end of a single row lies the next row.
        let mut modes: Vec<usize> = (0..self.shape.len()).filter(|i| self.stride[*i] > 0).collect();
        modes.sort_by_key(|i| (Reverse(self.stride[*i]), *i));
        for i in modes {
            let (extent, stride) = (self.shape[i] as i64, self.stride[i]);
            let c = rest.div_euclid(stride);
            rest -= c * stride;
            coordinate[i] = c;
            distance.push((c - (extent - 1)).max(-c).max(0));
        }
        // The rest is 0 inside the tensor. It is not 0 between elements, or away from a tensor of one element.
        distance.push(rest.abs());
        (distance, coordinate)
    }
}

/// Bytes of a page; the bits of a page are computed together, on first use.
const PAGE: u64 = 4096;
const WORDS: usize = PAGE as usize / 64;

/// The tensors of a buffer. The bits that mark elements are computed page by page, on first use.
#[derive(Clone, Debug)]
pub(super) struct Elements {
    tensors: Arc<[Tensor]>,
    /// One bit for each byte; empty where all bytes are elements.
    pages: Arc<[OnceLock<Box<[u64; WORDS]>>]>,
}

impl Elements {
    /// The elements of these tensors in a buffer of `bytes`; `None` without tensors, when every byte counts.
    pub(super) fn new(tensors: &[Tensor], buffer: &str, bytes: u64) -> Result<Option<Elements>, Error> {
        tensors.iter().try_for_each(|tensor| tensor.check(buffer, bytes))?;
        if tensors.is_empty() {
            return Ok(None);
        }
        // A tensor without elements has any strides, and no address belongs to it.
        let tensors: Vec<Tensor> = tensors.iter().filter(|tensor| !tensor.is_empty()).cloned().collect();
        let pages = if tensors.iter().any(|tensor| fills(tensor, bytes)) { 0 } else { bytes.div_ceil(PAGE) };
        let pages = (0..pages).map(|_| OnceLock::new()).collect();
        Ok(Some(Elements { tensors: tensors.into(), pages }))
    }

    /// Whether some byte of the buffer is outside all elements.
    pub(super) fn has_gaps(&self) -> bool {
        !self.pages.is_empty()
    }

    /// Whether all bytes from an offset on are bytes of elements.
    #[inline]
    pub(super) fn inside(&self, offset: u64, bytes: u64) -> bool {
        let (mut at, end) = (offset, offset.saturating_add(bytes));
        while self.has_gaps() && at < end {
            let (word, bit) = (at / 64, at % 64);
            let n = (end - at).min(64 - bit);
            let all = u64::MAX >> (64 - n);
            if self.word(word) >> bit & all != all {
                return false;
            }
            at += n;
        }
        true
    }

    /// The bits of 64 bytes.
    fn word(&self, word: u64) -> u64 {
        let Some(page) = self.pages.get((word / WORDS as u64) as usize) else { return 0 };
        page.get_or_init(|| self.page(word / WORDS as u64))[word as usize % WORDS]
    }

    fn page(&self, number: u64) -> Box<[u64; WORDS]> {
        let mut bits = Box::new([0; WORDS]);
        for tensor in self.tensors.iter() {
            let (start, mut modes) = tensor.modes();
            // Modes whose elements follow upon each other are one run.
            let mut run = i128::from(tensor.item);
            while let Some((n, _)) = modes.pop_if(|(_, stride)| *stride == run) {
                run *= n;
            }
            mark(&mut bits, start - i128::from(number * PAGE), &modes, run);
        }
        bits
    }

    /// The tensor with an element at an offset, or the nearest tensor.
    pub(super) fn name(&self, offset: i64) -> Option<Target> {
        let at = |tensor: &Tensor| tensor.locate(offset.wrapping_sub(tensor.offset as i64));
        let nearest = self.tensors.iter().enumerate().map(|(i, tensor)| {
            let (distance, coordinate) = at(tensor);
            (distance, i, coordinate)
        });
        let (_, i, coordinate) = nearest.min()?;
        let Tensor { name, shape, stride, .. } = self.tensors[i].clone();
        Some(Target::Tensor { name, coordinate, shape, stride })
    }
}

/// Whether a tensor has every byte of its buffer.
fn fills(tensor: &Tensor, bytes: u64) -> bool {
    let (start, modes) = tensor.modes();
    let dense = modes.iter().rev().try_fold(i128::from(tensor.item), |run, (n, d)| (*d == run).then_some(run * n));
    start == 0 && dense == Some(i128::from(bytes))
}

/// Marks the runs of a tensor that lie in a page, which begins at byte 0.
fn mark(bits: &mut [u64; WORDS], start: i128, modes: &[Mode], run: i128) {
    let Some(((n, stride), rest)) = modes.split_first() else {
        for byte in start.max(0)..(start + run).min(i128::from(PAGE)) {
            bits[byte as usize / 64] |= 1 << (byte % 64);
        }
        return;
    };
    let behind = rest.iter().fold(run, |end, (n, d)| end + (n - 1) * d);
    let first = (-(start + behind) / stride).max(0);
    let last = ((i128::from(PAGE) - start) / stride).min(n - 1);
    for i in first..=last {
        mark(bits, start + i * stride, rest, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tensor(offset: u64, item: u64, shape: &[u64], stride: &[i64]) -> Tensor {
        Tensor { name: "x".to_owned(), offset, item, shape: shape.to_vec(), stride: stride.to_vec() }
    }

    /// The bytes of a tensor's elements, one coordinate after the other.
    fn by_definition(tensor: &Tensor) -> Vec<u64> {
        let mut starts = vec![tensor.offset as i64];
        for (n, d) in tensor.shape.iter().zip(&tensor.stride) {
            let step = d * tensor.item as i64;
            starts = starts.iter().flat_map(|s| (0..*n as i64).map(move |i| s + i * step)).collect();
        }
        starts.iter().flat_map(|s| (0..tensor.item).map(move |b| *s as u64 + b)).collect()
    }

    fn strided() -> impl Strategy<Value = Tensor> {
        let mode = (0_u64..40, -70_i64..700);
        (prop::sample::select(vec![1_u64, 2, 4, 8, 16]), prop::collection::vec(mode, 0..4)).prop_map(|(item, modes)| {
            let (shape, stride): (Vec<u64>, Vec<i64>) = modes.into_iter().unzip();
            let below: i64 = shape.iter().zip(&stride).map(|(n, d)| (*n as i64 - 1).max(0) * (-d).max(0)).sum();
            tensor(below as u64 * item, item, &shape, &stride)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 200, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(52),
            ..ProptestConfig::default()
        })]

        #[test]
        fn exactly_the_bytes_of_elements_are_inside(tensors in prop::collection::vec(strided(), 1..3)) {
            let mut owned: Vec<u64> = tensors.iter().flat_map(by_definition).collect();
            owned.sort_unstable();
            let bytes = owned.last().map_or(64, |last| last + 1);
            let elements = Elements::new(&tensors, "b", bytes).expect("in the buffer").expect("tensors");
            let has = |byte: u64| owned.binary_search(&byte).is_ok();
            for at in (0..bytes).step_by(bytes as usize / 500 + 1) {
                for width in [1, 4, 16, 64, 200] {
                    let all = (at..at + width).all(&has);
                    prop_assert_eq!(elements.inside(at, width), all || !elements.has_gaps(), "{} {}", at, width);
                }
            }
            if !elements.has_gaps() {
                prop_assert!((0..bytes).all(has));
            }
        }
    }

    #[test]
    fn a_tensor_that_leaves_its_buffer_is_refused() {
        for (tensor, bytes) in [
            (tensor(0, 4, &[4], &[1]), 15),
            (tensor(8, 4, &[4], &[-1]), 64),
            (tensor(0, 4, &[2, 1 << 60], &[1 << 60, 1 << 60]), 1 << 40),
            (tensor(0, 0, &[4], &[1]), 16),
            (tensor(0, 4, &[4, 2], &[1]), 16),
            (tensor(u64::MAX, u64::MAX, &[u64::MAX; 4], &[i64::MIN; 4]), u64::MAX),
            (tensor(0, u64::MAX, &[u64::MAX; 4], &[i64::MAX, i64::MIN, i64::MAX, i64::MIN]), 1),
        ] {
            assert!(Elements::new(std::slice::from_ref(&tensor), "b", bytes).is_err(), "{tensor:?}");
        }
        // Without elements, any extents and strides fit, and no byte belongs to them.
        for (shape, stride) in [([0, 9], [1, 99]), ([0, u64::MAX], [i64::MIN, i64::MAX]), ([1 << 63, 0], [1, 1 << 62])]
        {
            let elements =
                Elements::new(&[tensor(0, 4, &shape, &stride)], "b", 64).expect("it fits").expect("a tensor");
            assert!(elements.has_gaps() && !elements.inside(0, 1) && elements.name(0).is_none());
        }
    }

    #[test]
    fn an_address_has_the_coordinate_of_its_tensor() {
        let rows = tensor(0, 4, &[2, 3], &[5, 1]);
        let elements = Elements::new(&[rows, tensor(64, 4, &[4], &[1])], "b", 80).expect("fits").expect("tensors");
        let name = |offset| match elements.name(offset) {
            Some(Target::Tensor { coordinate, shape, .. }) => (shape.len(), coordinate),
            other => panic!("{other:?}"),
        };
        assert_eq!(name(24), (2, vec![1, 1]));
        // The gap of a padded row, and the byte before the first.
        assert_eq!(name(16), (2, vec![0, 4]));
        assert_eq!(name(-4), (2, vec![-1, 4]));
        assert_eq!(name(72), (1, vec![2]));
    }
}

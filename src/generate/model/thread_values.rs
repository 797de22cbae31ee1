//! The cost of a thread-value layout as an access: banks of shared memory, sectors of global memory.

use core::fmt;
use std::collections::BTreeSet;

use super::banks::{Request, SharedOp, WARP};
use super::shared::Conflict;
use super::traffic::{Counter, SECTOR};
use crate::layout::{AnyLayout, Class, LayoutError, MOST_SCANNED};
use crate::units::{Bytes, Elements};

/// The widest access of a thread, in bytes.
const WIDEST: i64 = 16;

/// The most threads of a block.
const MOST_THREADS: i64 = 1024;

/// A thread-value layout `(thread,value) -> offset in elements`, each thread with vectors of neighbouring values: one
/// load or store of a warp for each. Memory begins at a multiple of 128 bytes.
///
/// ```
/// use cutemplate::model::{SharedOp, ThreadValues};
/// use cutemplate::units::Bytes;
/// // 32 threads read a column of 32 x 32 floats, plain and swizzled.
/// for (layout, wavefronts) in [("(32,1):(32,0)", 32), ("Sw<5,0,5> o 0 o (32,1):(32,0)", 1)] {
///     let access = ThreadValues::new(&layout.parse()?, Bytes(4), None)?;
///     assert_eq!(access.shared(SharedOp::Load).wavefronts, wavefronts);
///     assert_eq!(access.global().sectors, 32);
/// }
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadValues {
    threads: usize,
    values: usize,
    element: Bytes,
    vector: Elements,
    /// The offset where each vector begins: thread by thread, then vector by vector.
    begins: Vec<i64>,
}

/// Passes over the banks of shared memory, of all warps and vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedVerdict {
    /// A load or a store.
    pub op: SharedOp,
    /// Requests: one for each warp and vector.
    pub requests: u64,
    /// Passes of all requests together.
    pub wavefronts: u64,
    /// Passes that they take at least, wherever the elements lie.
    pub least: u64,
    /// The first request that takes more than it has to.
    pub conflict: Option<Conflict>,
}

/// Sectors of global memory, of all warps and vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalVerdict {
    /// Requests: one for each warp and vector.
    pub requests: u64,
    /// Sectors that the requests ask for.
    pub sectors: u64,
    /// Different bytes that the requests ask for, each request by itself.
    pub bytes: Bytes,
}

impl ThreadValues {
    /// The accesses of a layout of rank 2, `vector` elements at once; by default as many as lie side by side in every
    /// thread.
    ///
    /// # Errors
    /// Another rank; strides that are not integers; offsets below 0; more than 1024 threads; elements of other sizes
    /// than 1, 2, 4, 8 and 16 bytes; values that are not vectors of that length.
    pub fn new(layout: &AnyLayout, element: Bytes, vector: Option<Elements>) -> Result<Self, LayoutError> {
        let refuse = |class: Class| LayoutError::on("access", class, &[("layout", layout)]);
        let size = element.0 as i64;
        if !element.0.is_power_of_two() || size > WIDEST {
            return Err(refuse(Class::Argument)
                .found(format!("elements of {element}"))
                .required("elements of 1, 2, 4, 8 or 16 bytes"));
        }
        let domain = layout.domain()?;
        let (threads, values) = match [domain.mode(0), domain.mode(1), domain.mode(2)] {
            [Some(threads), Some(values), None] => (threads.shape().size()?, values.shape().size()?),
            _ => {
                return Err(refuse(Class::MismatchedRanks)
                    .found(format!("a layout of rank {}", domain.shape().rank()))
                    .required("two modes, (thread,value)")
                    .help("compose the tensor's layout with what gives the index of each thread and value in it"));
            }
        };
        if threads > MOST_THREADS || threads.saturating_mul(values) > MOST_SCANNED {
            return Err(refuse(Class::Limit)
                .found(format!("{threads} threads with {values} values each"))
                .required(format!("at most {MOST_THREADS} threads and {MOST_SCANNED} values in all")));
        }
        let offsets = (0..threads * values).map(|i| layout.at(i)).collect::<Result<Vec<_>, _>>()?;
        if let Some(below) = offsets.iter().find(|offset| **offset < 0) {
            return Err(refuse(Class::StrideKind).found(format!("offset {below}")).required("offsets of at least 0"));
        }
        // The value of a thread that is not beside the one before it, or begins a vector where none may begin.
        let apart = |vector: i64| {
            let at = |t: i64, v: i64| offsets[(t + threads * v) as usize];
            let begin = |v: i64| v - v % vector;
            (0..threads).flat_map(|t| (0..values).map(move |v| (t, v))).find(|&(t, v)| {
                let first = at(t, begin(v));
                first % vector != 0 || at(t, v) != first + v % vector
            })
        };
        let fits = |vector: i64| vector * size <= WIDEST && values % vector == 0;
        let vector = match vector {
            None => [16, 8, 4, 2].into_iter().find(|v| fits(*v) && apart(*v).is_none()).unwrap_or(1),
            Some(Elements(asked)) => {
                let asked = i64::try_from(asked).ok().filter(|v| v.count_ones() == 1 && *v > 0 && fits(*v));
                let vector = asked.ok_or_else(|| {
                    refuse(Class::Argument)
                        .found(format!("{values} values of {element} a thread"))
                        .required("vectors of 1, 2, 4, 8 or 16 elements, 16 bytes at most, that divide the values")
                })?;
                if let Some((t, v)) = apart(vector) {
                    let value =
                        |v: i64| format!("value {v} of thread {t} at offset {}", offsets[(t + threads * v) as usize]);
                    let found = match v % vector {
                        0 => value(v),
                        past => format!("{}, {}", value(v - past), value(v)),
                    };
                    return Err(refuse(Class::Argument)
                        .found(found)
                        .required(format!("vectors of {vector} neighbours that begin at multiples of {vector}"))
                        .because("one instruction moves what lies side by side and is aligned"));
                }
                vector
            }
        };
        let begins =
            (0..threads).flat_map(|t| (0..values).step_by(vector as usize).map(move |v| (t + threads * v) as usize));
        let begins = begins.map(|i| offsets[i]).collect();
        Ok(Self {
            threads: threads as usize,
            values: values as usize,
            element,
            vector: Elements(vector as u64),
            begins,
        })
    }

    /// Bytes that a thread moves with one instruction.
    fn width(&self) -> Bytes {
        Bytes(self.vector.0 * self.element.0)
    }

    /// Vectors of a thread.
    fn steps(&self) -> usize {
        self.values / self.vector.0 as usize
    }

    /// The addresses of the lanes in bytes, for each warp and vector.
    fn requests(&self) -> impl Iterator<Item = (u32, i64, Vec<i64>)> + '_ {
        let steps = self.steps();
        (0..self.threads).step_by(WARP).flat_map(move |first| {
            (0..steps).map(move |step| {
                let lanes = first..(first + WARP).min(self.threads);
                let addresses = lanes.map(|t| self.begins[t * steps + step] * self.element.0 as i64).collect();
                ((first / WARP) as u32, step as i64, addresses)
            })
        })
    }

    /// Loads from shared memory, or stores to it.
    pub fn shared(&self, op: SharedOp) -> SharedVerdict {
        let mut verdict = SharedVerdict { op, requests: 0, wavefronts: 0, least: 0, conflict: None };
        for (warp, step, addresses) in self.requests() {
            let request = Request::new(op, self.width(), addresses.into_iter().map(Some).collect());
            let (wavefronts, least) = (u64::from(request.wavefronts()), u64::from(request.least()));
            verdict.requests += 1;
            verdict.wavefronts += wavefronts;
            verdict.least += least;
            if verdict.conflict.is_none() && wavefronts > least {
                verdict.conflict = Some(Conflict::of(warp, step, request));
            }
        }
        verdict
    }

    /// Loads from global memory, or stores to it.
    pub fn global(&self) -> GlobalVerdict {
        let mut counter = Counter::new("", false, 0);
        let mut bytes = 0;
        for (_, _, addresses) in self.requests() {
            bytes += addresses.iter().collect::<BTreeSet<_>>().len() as u64 * self.width().0;
            counter.request(addresses.into_iter().map(|address| address as u64), self.width().0);
        }
        let counted = counter.traffic();
        GlobalVerdict { requests: counted.requests, sectors: counted.sectors, bytes: Bytes(bytes) }
    }
}

/// `1 request`, `2 requests`.
struct Requests(u64);

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} request{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

impl fmt::Display for ThreadValues {
    /// `32 threads with 8 values of 2 B: 1 vector of 16 B each`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (steps, width) = (self.steps(), self.width());
        let accesses = if steps == 1 { "access" } else { "accesses" };
        write!(
            f,
            "{} threads, {} values of {} each: {steps} {accesses} of {width}",
            self.threads, self.values, self.element
        )
    }
}

impl fmt::Display for SharedVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, requests, wavefronts, least, .. } = self;
        let requests = Requests(*requests);
        write!(f, "shared {op}: {requests}, {wavefronts} wavefronts, {least} at least: ")?;
        match &self.conflict {
            None => f.write_str("no bank conflicts"),
            Some(conflict) => {
                let more = *wavefronts as f64 / (*least).max(1) as f64;
                write!(f, "{more:.2} times what is needed\n  {conflict}")
            }
        }
    }
}

impl GlobalVerdict {
    /// The part of the bytes in the sectors that is asked for.
    pub fn used(&self) -> f64 {
        self.bytes.0 as f64 / (self.sectors * SECTOR).max(1) as f64
    }
}

impl fmt::Display for GlobalVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, sectors, bytes } = self;
        let (requests, used) = (Requests(*requests), 100.0 * self.used());
        write!(f, "global: {requests}, {sectors} sectors of {SECTOR} B for {bytes}: {used:.0} % of them used")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(layout: &str, bytes: u64, vector: Option<u64>) -> Result<ThreadValues, LayoutError> {
        ThreadValues::new(&layout.parse()?, Bytes(bytes), vector.map(Elements))
    }

    #[test]
    fn rows_of_halves_and_their_swizzle() {
        // 8 lanes read 16 bytes each down 64 columns of halves, four times.
        for (layout, wavefronts) in [("((8,4),8):((64,8),1)", 32), ("Sw<3,3,3> o 0 o ((8,4),8):((64,8),1)", 4)] {
            let access = of(layout, 2, None).expect("vectors of 8");
            assert_eq!(access.to_string(), "32 threads, 8 values of 2 B each: 1 access of 16 B");
            let verdict = access.shared(SharedOp::Load);
            assert_eq!(
                (verdict.wavefronts, verdict.least, verdict.conflict.is_some()),
                (wavefronts, 4, wavefronts > 4)
            );
            let global = access.global();
            assert_eq!((global.requests, global.sectors, global.bytes), (1, 16, Bytes(512)));
        }
    }

    #[test]
    fn what_lanes_share_is_asked_for_once() {
        let global = of("(32,1):(0,0)", 4, None).expect("an access").global();
        assert_eq!((global.sectors, global.bytes), (1, Bytes(4)));
        // Two warps, and two vectors each.
        let verdict = of("(64,4):(2,(1))", 4, None);
        assert!(verdict.is_err());
        let verdict = of("(64,(2,2)):(4,(1,2))", 4, Some(2)).expect("vectors of 2").global();
        assert_eq!((verdict.requests, verdict.sectors), (4, 64));
    }

    #[test]
    fn what_is_no_access_is_refused() {
        for (layout, bytes, vector, said) in [
            ("(32,8):(8,1)", 3, None, "elements of 3 B"),
            ("(32,2,4):(8,4,1)", 2, None, "rank 3"),
            ("(2048,8):(8,1)", 2, None, "2048 threads"),
            ("(32,8):(-8,1)", 2, None, "offset -8"),
            ("(32,8):(9,1)", 2, Some(8), "value 0 of thread 1 at offset 9"),
            ("(32,8):(1,32)", 2, Some(2), "value 0 of thread 0 at offset 0, value 1 of thread 0 at offset 32"),
            ("(32,8):(8,1)", 4, Some(8), "8 values of 4 B"),
            ("(M,8):(8,1)", 4, None, "M"),
        ] {
            let error = of(layout, bytes, vector).expect_err(layout).to_string();
            assert!(error.contains(said), "{layout}: {error}");
        }
    }
}

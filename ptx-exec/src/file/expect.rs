//! What memory has to hold after a launch: arrays, compared element by element.

use core::fmt;
use std::path::{Path, PathBuf};

use super::array::{self, Array};
use super::check::{Checked, float};
use super::{Held, bad};
use crate::Error;
use crate::num::format::{BF16, E4M3, E5M2, F16, F32, F64, Format};

/// Types by name: of elements that NumPy has no type for, and of memory that came without an array.
pub(super) const TYPES: &[&str] =
    &["f16", "bf16", "f32", "f64", "e4m3", "e5m2", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

/// The type of an element, with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Real(Format),
    Signed(usize),
    Unsigned(usize),
    /// Bytes that are no number.
    Raw(usize),
}

impl Element {
    fn named(name: &str) -> Element {
        let bytes = || name[1..].parse::<usize>().unwrap_or(8) / 8;
        match name {
            "f16" => Element::Real(F16),
            "bf16" => Element::Real(BF16),
            "f32" => Element::Real(F32),
            "f64" => Element::Real(F64),
            "e4m3" => Element::Real(E4M3),
            "e5m2" => Element::Real(E5M2),
            _ if name.starts_with('i') => Element::Signed(bytes()),
            _ => Element::Unsigned(bytes()),
        }
    }

    /// The type of an array's elements: NumPy's kind and size, behind the order of bytes.
    fn of(descr: &str) -> Element {
        let size = descr.get(2..).and_then(|size| size.parse().ok()).unwrap_or(1);
        match (descr.chars().nth(1), size) {
            (Some('f'), 2) => Element::Real(F16),
            (Some('f'), 4) => Element::Real(F32),
            (Some('f'), 8) => Element::Real(F64),
            (Some('i'), 1 | 2 | 4 | 8) => Element::Signed(size),
            (Some('u' | 'b'), 1 | 2 | 4 | 8) => Element::Unsigned(size),
            _ => Element::Raw(size),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Element::Real(format) => (format.precision + format.exponent_bits) as usize / 8,
            Element::Signed(bytes) | Element::Unsigned(bytes) | Element::Raw(bytes) => bytes,
        }
    }

    fn value(self, bytes: &[u8]) -> Value<'_> {
        let bits = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        match self {
            Element::Real(format) => Value::Real(format.to_f64(bits(bytes))),
            Element::Signed(size) => {
                let unused = 64 - 8 * size as u32;
                Value::Whole(i128::from((bits(bytes) << unused).cast_signed() >> unused))
            }
            Element::Unsigned(_) => Value::Whole(i128::from(bits(bytes))),
            Element::Raw(_) => Value::Raw(bytes),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value<'a> {
    Real(f64),
    Whole(i128),
    Raw(&'a [u8]),
}

impl Value<'_> {
    fn real(self) -> f64 {
        match self {
            Value::Real(value) => value,
            Value::Whole(value) => value as f64,
            Value::Raw(_) => f64::NAN,
        }
    }

    /// How far apart two values are; 0 where they are the same, and NaN is NaN.
    fn distance(self, other: Value<'_>) -> f64 {
        match (self, other) {
            (Value::Raw(a), Value::Raw(b)) if a == b => 0.0,
            (Value::Whole(a), Value::Whole(b)) => (a - b).unsigned_abs() as f64,
            _ => {
                let (a, b) = (self.real(), other.real());
                let same = a == b || a.is_nan() && b.is_nan();
                let apart = (a - b).abs();
                if same {
                    0.0
                } else if apart.is_nan() {
                    f64::INFINITY
                } else {
                    apart
                }
            }
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Real(value) => write!(f, "{value:?}"),
            Value::Whole(value) => write!(f, "{value}"),
            Value::Raw(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// What memory has to hold.
#[derive(Debug)]
pub(super) struct Expected {
    file: PathBuf,
    array: Array,
    /// How the memory is read.
    element: Element,
    /// How the array is read.
    theirs: Element,
    absolute: f64,
    relative: f64,
}

/// Memory that does not hold what a launch file expects of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where the launch file has the memory.
    pub path: String,
    /// The name of the memory.
    pub name: String,
    /// The file with what was expected.
    pub expected: PathBuf,
    /// Number of elements.
    pub elements: u64,
    /// Number of elements that differ.
    pub count: u64,
    /// Coordinates of the first of them, in the shape of the expected array.
    pub index: Vec<u64>,
    /// What it is.
    pub found: String,
    /// What it has to be, with the tolerance.
    pub required: String,
    /// The largest distance of an element from what it has to be; infinite for a NaN or an infinity that only one of them is.
    pub largest: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, name, expected, elements, count, index, found, required, largest } = self;
        writeln!(f, "error[exec-difference]: {name} is not what the launch file expects")?;
        writeln!(f, "  found:    {found} at {index:?}; {count} of {elements} elements differ, by {largest:?} at most")?;
        writeln!(f, "  required: {required}, of {}", expected.display())?;
        write!(f, "  because:  `{path}.expect` says so")
    }
}

impl Expected {
    /// Reads what this memory has to hold. `own` is the type of its array, if it came with one.
    pub(super) fn read(
        value: &Checked<'_>,
        folder: &Path,
        bytes: u64,
        own: Option<&Array>,
    ) -> Result<Option<Expected>, Error> {
        let Some(expect) = value.one("expect") else { return Ok(None) };
        let file = folder.join(expect.text("npy").unwrap_or_default());
        let array = array::read(&file, &expect.at("npy"))?;
        let by_name = expect.text("dtype").map(Element::named);
        let element = by_name.unwrap_or_else(|| Element::of(&own.unwrap_or(&array).descr));
        let mut theirs = Element::of(&array.descr);
        if let (Some(named), Element::Raw(size)) = (by_name, theirs)
            && size == named.bytes()
        {
            theirs = named;
        }
        let is_raw = |element| matches!(element, Element::Raw(_));
        let [has, needs] =
            [bytes / element.bytes().max(1) as u64, array.data.len() as u64 / theirs.bytes().max(1) as u64];
        let wrong = |what: &str| bad(format!("`{}` {what}", expect.path));
        if has != needs || !bytes.is_multiple_of(element.bytes().max(1) as u64) {
            return Err(wrong("does not fit the memory")
                .found(format!("{needs} elements in {}", file.display()))
                .required(format!("{has}: {bytes} B of elements of {} B", element.bytes())));
        }
        if is_raw(element) != is_raw(theirs) || is_raw(element) && element != theirs {
            return Err(wrong("has elements of another kind")
                .found(format!("{} and {}", array.descr, own.map_or("no array", |own| own.descr.as_str())))
                .required("numbers, or bytes of one size")
                .help("`dtype` says how the memory is read, for one \"bf16\""));
        }
        if own.is_some_and(|own| own.is_fortran != array.is_fortran && array.shape.len() > 1) {
            return Err(wrong("has another order of elements")
                .found(format!("{} in {} order", file.display(), if array.is_fortran { "Fortran" } else { "C" }))
                .required("the order of the memory's own array")
                .help("numpy.ascontiguousarray(a) is in C order"));
        }
        let most = |key| expect.get(key).and_then(|value| float(value, f64::MAX)).unwrap_or(0.0);
        let [absolute, relative] = ["absolute", "relative"].map(most);
        if !(absolute >= 0.0 && relative >= 0.0) {
            return Err(wrong("has a tolerance that no element meets")
                .found(format!("{absolute:?} and {relative:?}"))
                .required("numbers of at least 0"));
        }
        Ok(Some(Expected { file, array, element, theirs, absolute, relative }))
    }

    /// Compares what a launch left.
    fn compare(&self, held: &Held, left: &[u8]) -> Option<Difference> {
        let Self { array, element, theirs, absolute, relative, .. } = self;
        let pairs = left.chunks_exact(element.bytes().max(1)).zip(array.data.chunks_exact(theirs.bytes().max(1)));
        let pairs = pairs.map(|(found, wanted)| (element.value(found), theirs.value(wanted)));
        let (mut first, mut count, mut largest) = (None, 0, 0.0_f64);
        for (i, (found, wanted)) in pairs.enumerate() {
            let distance = found.distance(wanted);
            if distance == 0.0 || distance.is_finite() && distance <= absolute + relative * wanted.real().abs() {
                continue;
            }
            count += 1;
            largest = largest.max(distance);
            first = first.or(Some((i as u64, found, wanted)));
        }
        let (at, found, wanted) = first?;
        let within = match (*absolute > 0.0, *relative > 0.0) {
            (false, false) => String::new(),
            (true, false) => format!(", within {absolute:?}"),
            (false, true) => format!(", within {relative:?} times that"),
            (true, true) => format!(", within {absolute:?} and {relative:?} times that"),
        };
        Some(Difference {
            path: held.path.clone(),
            name: held.name.clone(),
            expected: self.file.clone(),
            elements: (left.len() / element.bytes().max(1)) as u64,
            count,
            index: array.index(at),
            found: found.to_string(),
            required: format!("{wanted}{within}"),
            largest,
        })
    }
}

/// The differences in a launch's own memory. Memory of the whole file is compared behind its last launch.
pub(super) fn compare<'h>(held: impl Iterator<Item = (&'h Held, &'h [u8])>, is_last: bool) -> Vec<Difference> {
    let due = held.filter(|(held, _)| is_last || !held.is_kept);
    due.filter_map(|(held, left)| held.expected.as_ref()?.compare(held, left)).collect()
}

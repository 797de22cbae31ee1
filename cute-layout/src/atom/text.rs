//! Reading atoms and tilings as people write them: CuTe's C++ types, or the short notation of layouts.

use std::str::FromStr;

use super::copy::CopyAtom;
use super::make_copy::{
    make_cotiled_copy, make_tiled_copy, make_tiled_copy_a, make_tiled_copy_b, make_tiled_copy_c, make_tiled_copy_c_atom,
};
use super::mma::{MmaAtom, Operand};
use super::tiled_copy::TiledCopy;
use super::tiled_mma::TiledMma;
use crate::layout::{Class, Layout, LayoutError, Tiler, make_layout};

/// The deepest nesting of C++ templates that is read.
const MOST_LEVELS: usize = 32;

/// Answers a question about a tiled atom, by the name that CuTe's member function has, with the text that CuTe prints;
/// `None` where `op` is not one of these.
///
/// | `op` | `inputs` |
/// |---|---|
/// | `tiled_mma_layoutA_TV`, `..B_TV`, `..C_TV` | a [`TiledMma`] |
/// | `make_tiled_copy.layoutS_TV`, `.layoutD_TV` | a [`CopyAtom`], thread layout, value layout |
/// | `make_cotiled_copy.layoutS_TV`, `.layoutD_TV` | a [`CopyAtom`], a TV layout of offsets, the data's layout |
/// | `make_tiled_copy_A.layoutS_TV` and the like for B, C, `C_atom` and D | a [`CopyAtom`], a [`TiledMma`] |
///
/// Layouts and tilers may be C++ types (`Layout<Shape<_8,_4>,Stride<_4,_1>>{}`, `Tile<_32,_,_16>{}`) or short
/// (`(8,4):(4,1)`, `[32,_,16]`).
///
/// # Errors
/// An input cannot be read, or the operation is refused.
///
/// ```
/// let inputs = ["SM80_16x8x16_F32F16F16F32_TN,Layout<Shape<_2,_2,_1>>{},Tile<_32,_32,_16>{}"];
/// let text = cute_layout::atom::answer("tiled_mma_layoutC_TV", &inputs).ok_or("no such operation")??;
/// assert_eq!(text, "((4,8,2,2),((2,2),(1,2))):((64,1,16,256),((32,8),(0,512)))");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn answer<S: AsRef<str>>(op: &str, inputs: &[S]) -> Option<Result<String, LayoutError>> {
    let inputs: Vec<&str> = inputs.iter().map(AsRef::as_ref).collect();
    if let Some(operand) = op.strip_prefix("tiled_mma_layout").and_then(|rest| rest.strip_suffix("_TV")) {
        let operand = operand_of(operand)?;
        return Some(tiled_mma_layout(operand, &inputs));
    }
    let (maker, side) = op.split_once(".layout")?;
    let maker = match maker {
        "make_tiled_copy" => Maker::Layouts,
        "make_cotiled_copy" => Maker::Offsets,
        "make_tiled_copy_C_atom" => Maker::OneAtom,
        other => Maker::Operand(operand_of(other.strip_prefix("make_tiled_copy_")?)?),
    };
    match side {
        "S_TV" => Some(tiled_copy(maker, &inputs).and_then(|copy| Ok(copy.layout_s_tv()?.to_string()))),
        "D_TV" => Some(tiled_copy(maker, &inputs).and_then(|copy| Ok(copy.layout_d_tv()?.to_string()))),
        _ => None,
    }
}

/// How a tiled copy is made.
enum Maker {
    /// From a thread and a value layout.
    Layouts,
    /// From offsets and the data's layout.
    Offsets,
    /// For an operand of a tiled MMA.
    Operand(Operand),
    /// For the first values of a tiled MMA's C.
    OneAtom,
}

fn operand_of(name: &str) -> Option<Operand> {
    Operand::ALL.into_iter().find(|operand| operand.to_string() == name)
}

fn tiled_mma_layout(operand: Operand, inputs: &[&str]) -> Result<String, LayoutError> {
    let [text] = inputs else { return Err(wrong_count("tiled_mma", inputs.len(), "1: a tiled MMA")) };
    Ok(text.parse::<TiledMma>()?.layout_tv(operand)?.to_string())
}

fn tiled_copy(maker: Maker, inputs: &[&str]) -> Result<TiledCopy, LayoutError> {
    match (maker, inputs) {
        (Maker::Layouts, [atom, threads, values]) => {
            make_tiled_copy(&atom.parse()?, &read_layout(threads)?, &read_layout(values)?)
        }
        (Maker::Layouts, _) => {
            Err(wrong_count("make_tiled_copy", inputs.len(), "3: an atom, a thread layout, a value layout"))
        }
        (Maker::Offsets, [atom, offsets, data]) => {
            make_cotiled_copy(&atom.parse()?, &read_layout(offsets)?, &read_layout(data)?)
        }
        (Maker::Offsets, _) => {
            Err(wrong_count("make_cotiled_copy", inputs.len(), "3: an atom, a TV layout of offsets, the data's layout"))
        }
        (maker, [atom, mma]) => {
            let atom: CopyAtom = atom.parse()?;
            let mma = read_tiled_mma(mma, Some(atom.value_bits()))?;
            match maker {
                Maker::Operand(Operand::A) => make_tiled_copy_a(&atom, &mma),
                Maker::Operand(Operand::B) => make_tiled_copy_b(&atom, &mma),
                Maker::Operand(Operand::C) => make_tiled_copy_c(&atom, &mma),
                _ => make_tiled_copy_c_atom(&atom, &mma),
            }
        }
        _ => Err(wrong_count("make_tiled_copy", inputs.len(), "2: a copy atom, a tiled MMA")),
    }
}

fn wrong_count(op: &'static str, found: usize, required: &str) -> LayoutError {
    LayoutError::new(op, Class::Argument).found(format!("{found} inputs")).required(required)
}

fn unreadable(what: &'static str, text: &str, required: &str) -> LayoutError {
    LayoutError::new(what, Class::Parse).found(format!("`{text}`")).required(required)
}

impl FromStr for CopyAtom {
    type Err = LayoutError;

    /// Reads `Copy_Atom<SM75_U32x4_LDSM_N,half_t>`; the second argument is a C++ type or a number of bits.
    fn from_str(text: &str) -> Result<CopyAtom, LayoutError> {
        let required = "Copy_Atom<operation, value type>";
        let bad = || unreadable("Copy_Atom", text, required);
        let inner = text.trim().trim_end_matches("{}").strip_prefix("Copy_Atom<").ok_or_else(bad)?;
        let parts = split(inner.strip_suffix('>').ok_or_else(bad)?);
        let [op, value] = parts[..] else { return Err(bad()) };
        let bits = match value {
            "int8_t" | "uint8_t" | "float_e4m3_t" | "float_e5m2_t" => 8,
            "half_t" | "bfloat16_t" | "int16_t" | "uint16_t" => 16,
            "float" | "tfloat32_t" | "int32_t" | "uint32_t" | "int" => 32,
            "double" | "int64_t" | "uint64_t" => 64,
            "uint128_t" => 128,
            other => other
                .parse()
                .map_err(|_| unreadable("Copy_Atom", other, "a value type such as half_t, or a number of bits"))?,
        };
        CopyAtom::named(op, bits)
    }
}

impl FromStr for TiledMma {
    type Err = LayoutError;

    /// Reads an atom's name, then an optional atom layout and optional permutations, separated by commas:
    /// `SM80_16x8x16_F32F16F16F32_TN, (2,2,1):(1,2,4), [32,32,16]`. Or in words, without types if only one atom has
    /// that shape: `SM80_16x8x8_F16F16F16F16_TN 2x2 warps tile 32x32x16`.
    fn from_str(text: &str) -> Result<TiledMma, LayoutError> {
        read_tiled_mma(text, None)
    }
}

fn read_tiled_mma(text: &str, a_bits: Option<i64>) -> Result<TiledMma, LayoutError> {
    let required = "an atom [, atom layout [, permutations]], or: an atom MxN warps tile MxNxK";
    if let [name, warps, "warps", "tile", tile] = text.split_whitespace().collect::<Vec<_>>()[..] {
        let atom = atom_of_shape(name, a_bits)?;
        let shape = |text: &str| format!("({})", text.replace('x', ",")).parse();
        let warps = make_layout(&shape(warps)?)?;
        return TiledMma::new(atom, &warps, &Tiler::Shape(shape(tile)?));
    }
    let parts = split(text);
    let (atom, rest) = parts.split_first().ok_or_else(|| unreadable("TiledMMA", text, required))?;
    let atom = MmaAtom::named(atom.trim_end_matches("{}"))?;
    let (layout, permutations) = match rest {
        [] => (Layout::unit(), None),
        [layout] => (read_layout(layout)?, None),
        [layout, permutations] => (read_layout(layout)?, Some(*permutations)),
        _ => return Err(unreadable("TiledMMA", text, required)),
    };
    let permutations = permutations.unwrap_or("[_,_,_]");
    TiledMma::new(atom, &layout, &to_short(permutations, 0)?.parse()?)
}

/// The atom of this name; or the first whose name begins so and whose A has this width, which are alike in layout.
fn atom_of_shape(name: &str, a_bits: Option<i64>) -> Result<MmaAtom, LayoutError> {
    if let Some(exact) = MmaAtom::find(name) {
        return exact;
    }
    let start = format!("{name}_");
    for full in MmaAtom::names().filter(|full| full.starts_with(&start)) {
        let atom = MmaAtom::named(&full)?;
        if a_bits.is_none_or(|bits| bits == atom.value_type(Operand::A).bits()) {
            return Ok(atom);
        }
    }
    MmaAtom::named(name)
}

fn read_layout(text: &str) -> Result<Layout, LayoutError> {
    let short = to_short(text, 0)?;
    if short.contains(':') { short.parse() } else { make_layout(&short.parse()?) }
}

/// Cut at the commas that are inside no bracket.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut level, mut begin) = (0i64, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => level += 1,
            b'>' | b')' | b']' => level -= 1,
            b',' if level == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

/// A C++ type of CuTe in the short notation; short notation is left as it is.
fn to_short(text: &str, level: usize) -> Result<String, LayoutError> {
    let text = text.trim().trim_end_matches("{}");
    if level > MOST_LEVELS {
        return Err(unreadable("type", text, "templates at most 32 deep"));
    }
    let Some((name, inner)) = text.split_once('<').filter(|(name, _)| name.bytes().all(is_word)) else {
        let number = text.strip_prefix('_').filter(|digits| digits.bytes().next().is_some_and(|b| b.is_ascii_digit()));
        return Ok(if text == "Underscore" { "_".to_owned() } else { number.unwrap_or(text).to_owned() });
    };
    let inner = inner.strip_suffix('>').ok_or_else(|| unreadable("type", text, "a closing `>`"))?;
    let parts = split(inner).into_iter().map(|part| to_short(part, level + 1)).collect::<Result<Vec<_>, _>>()?;
    match (name.rsplit("::").next().unwrap_or(name), &parts[..]) {
        ("Shape" | "Stride" | "Step" | "Coord", _) => Ok(format!("({})", parts.join(","))),
        ("Tile", _) => Ok(format!("[{}]", parts.join(","))),
        ("Int" | "C", [number]) => Ok(number.clone()),
        ("Layout", [shape]) => Ok(make_layout(&shape.parse()?)?.to_string()),
        ("Layout", [shape, stride]) => Ok(format!("{shape}:{stride}")),
        _ => Err(unreadable("type", text, "Layout, Shape, Stride, Tile or Int")),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':'
}

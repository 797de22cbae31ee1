//! Tensor maps: from a tile and its layout in shared memory, and whether TMA and WGMMA read that layout as it is.

use super::cover::{Flaws, Law};
use super::{Engine, Factor, Global, Place, Proxy, SmemTensor, TileCopy, Tiling};
use crate::layout::{Layout, LayoutError, Swizzle};
use crate::tiling::{MapSwizzle, MapType, TensorMapSpec};
use crate::units::Bytes;

/// Elements of a box along one mode, at most (CUDA Driver API, `cuTensorMapEncodeTiled`).
const MOST: i64 = 256;
/// What the bytes of a box's rows are a multiple of, likewise.
const UNIT: u64 = 16;

/// How TMA exchanges chunks of 16 bytes within rows of so many bytes: bits 4.. of an address with bits 7.. (PTX ISA, "Swizzling
/// Modes"), here of an element's number.
fn hardware(swizzle: MapSwizzle, bits: i64) -> Result<Option<Swizzle>, LayoutError> {
    let exchanged = swizzle.bits();
    if exchanged == 0 { Ok(None) } else { Swizzle::new(exchanged, 4, 3)?.recast(8, bits).map(Some) }
}

impl SmemTensor {
    /// The mode of TMA that has this swizzle.
    pub fn map_swizzle(&self) -> Option<MapSwizzle> {
        let bits = i64::from(self.dtype.bits());
        MapSwizzle::ALL.iter().copied().find(|mode| hardware(*mode, bits).is_ok_and(|s| s == self.swizzle))
    }
}

impl TileCopy {
    /// The global side and the tensor in shared memory, if the copy is between these memories.
    pub(crate) fn in_global_and_shared(&self) -> Option<(Global, &'static str)> {
        match (self.from, self.to) {
            (Place::Global(global), Place::Shared(name)) | (Place::Shared(name), Place::Global(global)) => {
                Some((global, name))
            }
            _ => None,
        }
    }

    /// The tensor map of a matrix (rows, columns) at an address. `leading` is the distance of rows in elements; `batches` is the number
    /// of batches and their distance in elements. `None` unless TMA copies into or out of this tensor.
    pub fn tensor_map(
        &self,
        tensor: &SmemTensor,
        address: u64,
        shape: [u64; 2],
        leading: u64,
        batches: [u64; 2],
    ) -> Option<TensorMapSpec> {
        let Engine::Tma { extents, rounds, .. } = &self.engine else { return None };
        let (global, _) = self.in_global_and_shared()?;
        // The contiguous mode first.
        let by_stride = |pair: [u64; 2]| if global.contiguous == 1 { [pair[1], pair[0]] } else { pair };
        let size = self.dtype.bytes().0;
        let matrix = TensorMapSpec::matrix(
            address,
            if *rounds { MapType::Tf32 } else { MapType::Of(self.dtype) },
            by_stride(shape),
            leading * size,
            by_stride(extents.map(|e| e as u64)),
            tensor.map_swizzle()?,
        );
        Some(if global.outer > 0 { matrix.batched(batches[0], batches[1] * size) } else { matrix })
    }
}

impl Tiling {
    pub(super) fn tma_flaws(&self, copy: &TileCopy, extents: [i64; 2], sharers: u32, flaws: &mut Flaws) {
        let Some((global, name)) = copy.in_global_and_shared() else {
            let found = format!("{}: from {:?} to {:?}", copy.what, copy.from, copy.to);
            flaws.push(Law::Box, found, "between global and shared memory", "this is what TMA copies");
            return;
        };
        let Some(tensor) = self.smem(name) else { return };
        let inner = extents[global.contiguous];
        let bytes = Bytes((inner.max(0) as u64) * copy.dtype.bytes().0);
        if extents.iter().any(|e| !(1..=MOST).contains(e)) || !bytes.0.is_multiple_of(UNIT) {
            flaws.push(
                Law::Box,
                format!("{}: a box of {extents:?}, {bytes} along the contiguous mode", copy.what),
                format!("1 to {MOST} elements along each mode, a multiple of {}", Bytes(UNIT)),
                "such boxes has cuTensorMapEncodeTiled",
            );
            return;
        }
        let whole = copy.tile.iter().zip(&extents).all(|(tile, extent)| tile % extent == 0);
        // CuTe makes a box of one contiguous piece, and divides the other mode among the CTAs that share the tile.
        let contiguous = global.contiguous;
        let along = tensor.layout.mode(contiguous).unwrap_or_else(Layout::unit);
        let piece = (0..along.size()).take_while(|i| along.at(*i).is_ok_and(|at| at == *i)).count() as i64;
        let shares = copy.tile[1 - contiguous] / extents[1 - contiguous];
        // Lines of a page come by boxes of their own.
        let (in_pages, lines) = (global.page > 0, extents[1 - contiguous]);
        if in_pages && (global.page % lines != 0 || sharers != 1) {
            let found =
                format!("{}: boxes of {lines} lines, shared by {sharers}, in pages of {}", copy.what, global.page);
            flaws.push(Law::Box, found, "boxes that divide a page, of one CTA", "a box has the lines of one page");
        }
        if !whole || inner != piece || !(in_pages || shares == i64::from(sharers)) {
            let found = format!("{}: boxes of {extents:?} in a tile of {:?}", copy.what, copy.tile);
            let required = format!("whole boxes of pieces of {piece}, divided by {sharers}");
            flaws.push(Law::CoversOnce, found, required, "each element is copied exactly once");
            return;
        }
        if !global.align.0.is_multiple_of(UNIT) {
            let found = format!("{}: rows at multiples of {}", copy.what, global.align);
            flaws.push(Law::Aligned, found, format!("{}", Bytes(UNIT)), "a tensor map has base and strides of such");
        }
        let Some(mode) = tensor.map_swizzle() else {
            let found = format!("s{name}: {:?}", tensor.swizzle);
            flaws.push(Law::Swizzle, found, "no swizzle, or one of 32, 64 or 128 bytes", "TMA has no others");
            return;
        };
        if mode.span().is_some_and(|span| bytes > span) {
            let found = format!("{}: {bytes} along the contiguous mode, swizzled by {mode}", copy.what);
            flaws.push(Law::Box, found, "no more than the swizzle spans", "such boxes has cuTensorMapEncodeTiled");
            return;
        }
        if tensor.proxy != Proxy::Async {
            let found = format!("s{name}: accessed by threads");
            flaws.push(Law::Swizzle, found, "accessed by the asynchronous proxy", "TMA writes or reads it");
        }
        boxes_lie_as_written(copy, tensor, extents, global.contiguous, flaws);
    }

    /// Descriptors: pieces as long as the swizzle spans, one below the other, of rows or of columns.
    pub(super) fn descriptor_flaws(&self, flaws: &mut Flaws) {
        let read = |tensor: &&SmemTensor| {
            self.mmas.iter().flat_map(|mma| mma.factors()).any(|(_, factor)| factor == Factor::Shared(tensor.name))
        };
        for tensor in self.smem.iter().filter(read) {
            let span = tensor.map_swizzle().and_then(MapSwizzle::span);
            let [rows, columns, _] = tensor.extents();
            let modes = [0, 1].map(|mode| tensor.layout.mode(mode).unwrap_or_else(Layout::unit));
            let (along, across) = if tensor.contiguous() == 1 { (1, 0) } else { (0, 1) };
            let piece = span.map_or(0, |span| (span.0 / tensor.dtype.bytes().0) as i64);
            let extents = [rows, columns];
            // The next piece lies behind all lines of this one.
            let pieces = piece > 0 && extents[along] % piece == 0;
            let apart = |i: i64| i % piece.max(1) + i / piece.max(1) * piece * extents[across];
            let lies = |mode: usize, place: &dyn Fn(i64) -> i64| {
                (0..extents[mode]).all(|i| modes[mode].at(i).is_ok_and(|at| at == place(i)))
            };
            if !pieces || extents[across] % 8 != 0 || !lies(along, &apart) || !lies(across, &|i| i * piece) {
                flaws.push(
                    Law::Swizzle,
                    format!("s{}: {:?} o {}", tensor.name, tensor.swizzle, tensor.stage()),
                    "pieces as long as the swizzle spans, one below the other, in groups of 8",
                    "a descriptor of WGMMA has no other tiles (PTX ISA, \"Shared Memory Matrix Layout\")",
                );
            }
        }
    }
}

/// TMA writes the rows of a box one below the other, and exchanges chunks by their addresses.
fn boxes_lie_as_written(
    copy: &TileCopy,
    tensor: &SmemTensor,
    [box_rows, box_columns]: [i64; 2],
    contiguous: usize,
    flaws: &mut Flaws,
) {
    let [rows, columns, stages] = tensor.extents();
    let bits = i64::from(tensor.dtype.bits());
    let Some(swizzle) = flaws.take(copy.what, hardware(tensor.map_swizzle().unwrap_or_default(), bits)) else { return };
    let block = swizzle.map_or(1, |swizzle| swizzle.block());
    let swizzled = |offset: i64| swizzle.map_or(offset, |swizzle| swizzle.apply(offset));
    if swizzle == tensor.swizzle && pieces_lie_in_boxes(&tensor.layout, [box_rows, box_columns], contiguous, block) {
        return;
    }
    let Some(values) = flaws.take(copy.what, tensor.stage().values()) else { return };
    let at = |row: i64, column: i64| values.get((row + rows * column) as usize).copied().unwrap_or(-1);
    let mut wrong = |found: String, required: String| {
        flaws.push(
            Law::Swizzle,
            format!("{}: {found}", copy.what),
            required,
            "the rows of a box lie one below the other, chunks of 16 bytes exchanged by their addresses",
        );
    };
    // The bits that a swizzle exchanges are the same in all stages where those begin at multiples of its block.
    let starts = tensor.layout.mode(2).unwrap_or_else(Layout::unit);
    let start = |stage: i64| starts.at(stage).unwrap_or(-1);
    if let Some(stage) = (0..stages).find(|stage| start(*stage) % block != 0) {
        return wrong(
            format!("stage {stage} begins at element {}", start(stage)),
            format!("stages at multiples of {block} elements"),
        );
    }
    for (column, row) in (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row))) {
        let (r, c) = (row % box_rows, column % box_columns);
        let origin = at(row - r, column - c);
        let written = swizzled(origin + if contiguous == 1 { r * box_columns + c } else { r + c * box_rows });
        let expected = at(row, column);
        let expected = tensor.swizzle.map_or(expected, |swizzle| swizzle.apply(expected));
        if written != expected || origin % block != 0 {
            return wrong(
                format!("TMA writes ({row},{column}) to element {written}"),
                format!(
                    "element {expected}, where s{} has it, and boxes at multiples of {block} elements",
                    tensor.name
                ),
            );
        }
    }
}

/// The same for stages and elements, from rows and columns by themselves: an element lies where its row and its column add up to, and both
/// swizzles are one.
pub(super) fn pieces_lie_in_boxes(layout: &Layout, extents: [i64; 2], contiguous: usize, block: i64) -> bool {
    let lines = [0, 1].map(|mode| layout.mode(mode).and_then(|lines| lines.values().ok()));
    let [Some(rows), Some(columns)] = lines else { return false };
    let starts = layout.mode(2).unwrap_or_else(Layout::unit).values();
    let strides = if contiguous == 1 { [extents[1], 1] } else { [1, extents[0]] };
    // From the first of its box on, each is a stride further.
    let in_boxes = |lines: &[i64], extent: i64, stride: i64| {
        lines.chunks(extent as usize).all(|of_box| of_box.iter().zip(0..).all(|(at, i)| *at == of_box[0] + i * stride))
    };
    let firsts = |lines: &[i64], extent: i64| lines.iter().step_by(extent as usize).all(|at| at % block == 0);
    starts.is_ok_and(|starts| starts.iter().all(|at| at % block == 0))
        && in_boxes(&rows, extents[0], strides[0])
        && in_boxes(&columns, extents[1], strides[1])
        && firsts(&rows, extents[0])
        && firsts(&columns, extents[1])
}

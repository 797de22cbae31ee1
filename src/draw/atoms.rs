//! MMA atoms with C at the origin, and tiled copies from source to destination.

use super::grid::{Grid, arrange};
use super::sheet::{GAP, Sheet, Style};
use super::tv::Owners;
use super::{DrawError, Options, allow};
use crate::atom::{MmaAtom, Operand, TiledCopy, TiledMma};
use crate::layout::{IntTuple, Layout, Shape};

/// An MMA atom: C at the origin, A (M x K) to its left, B (K x N) above it; at each element the thread and the value
/// that hold it, threads by their index in the warp (CuTe's `print_latex(MMA_Atom)`).
///
/// # Errors
/// There are more cells than the options allow.
///
/// ```
/// use cutemplate::{atom::MmaAtom, draw::{self, Options}};
/// let svg = draw::mma(&MmaAtom::named("SM70_8x8x4_F32F16F16F32_NT")?, &Options::default())?;
/// assert!(svg.contains(">T19</text>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn mma(atom: &MmaAtom, options: &Options) -> Result<String, DrawError> {
    let [m, n, k] = atom.shape_mnk();
    let title = format!("{}: {m} x {n} x {k} (M x N x K)", atom.name());
    let layouts = Operand::ALL.map(|operand| atom.layout_tv(operand).clone());
    let tiles = Operand::ALL.map(|operand| atom.tile(operand));
    let note = "Threads are numbered as in the warp, by the atom's ThrID";
    let note = format!("{note} {}: its logical threads are 0 to {}.", atom.thr_id(), atom.thr_id().size() - 1);
    let picture = Mma { title, layouts, tiles, names: Some(atom.thr_id()), borders: None };
    picture.draw((atom.thr_id().stride().as_int() != Some(1)).then_some(note), options)
}

/// A tiled MMA, drawn like its atom (CuTe's `print_latex(TiledMMA)`).
///
/// # Errors
/// A TV layout is refused, or there are more cells than the options allow.
pub fn tiled_mma(mma: &TiledMma, options: &Options) -> Result<String, DrawError> {
    let [m, n, k] = mma.tile_mnk()?;
    let (name, threads) = (mma.atom().name(), mma.threads());
    let [a, b, c] = Operand::ALL;
    let picture = Mma {
        title: format!("{name} tiled to {m} x {n} x {k} (M x N x K), {threads} threads"),
        layouts: [mma.layout_tv(a)?, mma.layout_tv(b)?, mma.layout_tv(c)?],
        tiles: [mma.tile(a)?, mma.tile(b)?, mma.tile(c)?],
        names: None,
        borders: Some(mma.atom().shape_mnk()),
    };
    picture.draw(None, options)
}

/// The three grids of an MMA.
struct Mma<'a> {
    title: String,
    /// Layouts of A, B and C, with rows and columns of their tiles.
    layouts: [Layout; 3],
    tiles: [(i64, i64); 3],
    /// Thread numbers, where the layouts have logical ones.
    names: Option<&'a Layout>,
    /// Extents of M, N and K after which a border is drawn.
    borders: Option<[i64; 3]>,
}

impl Mma<'_> {
    fn draw(&self, note: Option<String>, options: &Options) -> Result<String, DrawError> {
        allow("mma", &self.title, &self.tiles, options)?;
        let mut owners = Vec::with_capacity(3);
        for (layout, tile) in self.layouts.iter().zip(self.tiles) {
            let mut of = Owners::of("mma", layout, tile)?;
            if let Some(names) = self.names {
                of.rename(names)?;
            }
            owners.push(of);
        }
        let grid = |index: usize, operand: Operand| -> Result<Grid, DrawError> {
            // B is drawn K x N, so that its columns stand above those of C.
            let orient = if operand == Operand::B { (1, 0) } else { (0, 1) };
            Ok(owners[index].picture(String::new(), &self.shape(index, operand)?, orient))
        };
        let [a, b, c] = [grid(0, Operand::A)?, grid(1, Operand::B)?, grid(2, Operand::C)?];
        let mut sheet = Sheet::new();
        place_mma(&mut sheet, [&a, &b, &c]);
        let mut caption = vec![
            "C (M x N) at the origin, A (M x K) to its left, B (K x N) above it. Each element says which thread holds it \
             and as which of its values."
                .to_owned(),
        ];
        caption.extend(note);
        for ((name, layout), owners) in ["A (m,k)", "B (n,k)", "C (m,n)"].into_iter().zip(&self.layouts).zip(&owners) {
            let remarks = match (owners.in_memory, owners.remarks()) {
                (true, _) => " Read from shared memory through a descriptor: no thread holds it.".to_owned(),
                (false, Some(remarks)) => format!(" {remarks}"),
                (false, None) => String::new(),
            };
            caption.push(format!("{name}: (thread,value) -> {layout}.{remarks}"));
        }
        Ok(sheet.finish(&self.title, &caption))
    }

    /// The tile of an operand, nested at the borders.
    fn shape(&self, index: usize, operand: Operand) -> Result<Shape, DrawError> {
        let side = |extent: i64, mode: usize| match self.borders.map(|atom| atom[mode]) {
            Some(atom) if extent % atom == 0 => shape(atom, extent / atom),
            _ => Ok(IntTuple::int(extent)),
        };
        let ((rows, columns), (row_mode, column_mode)) = (self.tiles[index], operand.modes());
        Ok(IntTuple::tuple([side(rows, row_mode)?, side(columns, column_mode)?])?)
    }
}

/// One cell size for all three, so that rows of A meet rows of C and columns of B columns of C.
fn place_mma(sheet: &mut Sheet, [a, b, c]: [&Grid; 3]) {
    let cell = [a, b, c]
        .iter()
        .map(|grid| grid.cell())
        .fold((0, 0), |most: (i64, i64), cell| (most.0.max(cell.0), most.1.max(cell.1)));
    let wide = |grid: &Grid| grid.columns.len() as i64 * cell.0;
    let high = |grid: &Grid| grid.rows.len() as i64 * cell.1;
    let left = a.margins().0.max(c.margins().0).max(b.margins().0);
    let top = b.margins().1 + 20;
    let origin = (left + wide(a) + left + 6, top + high(b) + c.margins().1 + 26);
    a.draw_cells(sheet, (left, origin.1), cell);
    b.draw_cells(sheet, (origin.0, top), cell);
    c.draw_cells(sheet, origin, cell);
    let heading = Style { size: 15, anchor: "middle", bold: true, fill: "#000000" };
    let names = [
        (left + wide(a) / 2, origin.1 - 24, "A".to_owned()),
        (origin.0 + wide(b) / 2, 14, "B".to_owned()),
        (origin.0 + wide(c) / 2, origin.1 - 24, "C".to_owned()),
    ];
    sheet.texts(heading, names.into());
}

/// A tiled copy: on the left which thread reads each element of the tile, on the right which thread receives it (CuTe's
/// `print_latex(TiledCopy)`).
///
/// # Errors
/// A TV layout is refused, the tile is not of two modes, or there are more cells than the options allow.
///
/// ```
/// use cutemplate::{atom::{CopyAtom, make_tiled_copy}, draw::{self, Options}};
/// let atom = CopyAtom::named("SM75_U32x4_LDSM_N", 16)?;
/// let copy = make_tiled_copy(&atom, &"(16,2):(1,16)".parse()?, &"(1,8):(0,1)".parse()?)?;
/// assert!(draw::tiled_copy(&copy, &Options::default())?.contains("Source"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tiled_copy(copy: &TiledCopy, options: &Options) -> Result<String, DrawError> {
    let tile = super::tv::tile_of("tiled_copy", &copy.tile()?)?;
    let atom = copy.atom();
    let what = format!("{} of {}-bit values over {}", atom.name(), atom.value_bits(), copy.tiler());
    allow("tiled_copy", &what, &[tile, tile], options)?;
    let mut grids = Vec::with_capacity(2);
    let mut caption = vec![
        "Source: the thread that reads an element, or gives its address, and as which of its values. Destination: the \
         thread that receives it."
            .to_owned(),
    ];
    for (name, layout) in [("Source", copy.layout_s_tv()?), ("Destination", copy.layout_d_tv()?)] {
        let owners = Owners::of("tiled_copy", &layout, tile)?;
        grids.push(owners.picture(name.to_owned(), &shape(tile.0, tile.1)?, (0, 1)));
        let remarks = owners.remarks().map(|remarks| format!(" {remarks}")).unwrap_or_default();
        caption.push(format!("{name}: (thread,value) -> {layout}.{remarks}"));
    }
    let mut sheet = Sheet::new();
    arrange(&mut sheet, &grids, GAP);
    Ok(sheet.finish(&what, &caption))
}

fn shape(rows: i64, columns: i64) -> Result<Shape, DrawError> {
    Ok(IntTuple::tuple([IntTuple::int(rows), IntTuple::int(columns)])?)
}

//! The C++ types of a tiling, and the assertions of its text: values, printed.

use super::cute::{int, layout_type, shape_type, swizzled_type, tuple_type};
use crate::atom::{Operand, TiledCopy};
use crate::dtype::DType;
use crate::layout::{IntTuple, Layout, Tiler, composition};
use crate::tiling::{CopyOp, Engine, Factor, Global, Guard, Place, Proxy, SmemTensor, TileCopy, TileMma, Tiling};

/// `using name = type;  // comment`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: String,
    /// The type, as CuTe spells it.
    pub ty: String,
    /// The meaning of its modes.
    pub comment: String,
}

impl Alias {
    pub(crate) fn new(name: &str, ty: String, comment: &str) -> Self {
        Self { name: name.to_owned(), ty, comment: comment.to_owned() }
    }
}

/// `static_assert(condition, "what");`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    /// The condition, in terms of the aliases.
    pub condition: String,
    /// Its message.
    pub what: String,
}

/// The C++ type of an element in CuTe.
pub fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "half_t",
        DType::Bf16 => "bfloat16_t",
        DType::F32 => "float",
        other => other.cxx(),
    }
}

impl SmemTensor {
    /// Its layout, with its swizzle.
    pub(crate) fn ty(&self) -> String {
        let bits = self.dtype.bits();
        match (self.swizzle, self.proxy) {
            (None, _) => layout_type(&self.layout),
            (Some(swizzle), Proxy::Generic) => swizzled_type(swizzle, &self.layout),
            // The pointer's type tells the swizzle, in bytes.
            (Some(swizzle), Proxy::Async) => {
                let bytes = swizzle.recast(bits.into(), 8).unwrap_or(swizzle);
                let (b, m, s) = (bytes.bits(), bytes.base(), bytes.shift());
                let layout = layout_type(&self.layout);
                format!("ComposedLayout<Swizzle<{b},{m},{s}>,smem_ptr_flag_bits<{bits}>,{layout}>")
            }
        }
    }
}

impl TileMma {
    /// The tiles of A, B and D.
    pub(crate) fn tile_aliases(&self) -> [Alias; 3] {
        let of = [(Operand::A, "(BM,BK)"), (Operand::B, "(BN,BK)"), (Operand::C, "(BM,BN)")];
        core::array::from_fn(|tile| {
            let (operand, modes) = of[tile];
            Alias::new(self.tiles[tile], tuple_type("Shape", &self.tile_of(operand)), modes)
        })
    }

    fn ty(&self, tiling: &Tiling) -> String {
        let lies_along_k = |factor| match factor {
            Factor::Shared(name) => tiling.smem(name).is_none_or(|tensor| tensor.contiguous() == 1),
            Factor::Fragments | Factor::Accumulators(_) => true,
        };
        let major = |factor| if lies_along_k(factor) { "GMMA::Major::K" } else { "GMMA::Major::MN" };
        let by_descriptors = self.factors().iter().any(|(_, factor)| matches!(factor, Factor::Shared(_)));
        let majors = match by_descriptors {
            false => String::new(),
            // Types that can only lie along K have no majors, and integers no signs either.
            true if self.atom.contains("_S32") => String::new(),
            true if self.atom.ends_with("_TN") => "<>".to_owned(),
            true => format!("<{},{}>", major(self.a), major(self.b)),
        };
        let permutation =
            self.permutation.as_ref().map_or_else(String::new, |by_mode| format!(", {}", tiler_type(by_mode)));
        format!("TiledMMA<MMA_Atom<{}{majors}>, {}{permutation}>", self.atom, layout_type(&self.atoms))
    }
}

impl TileCopy {
    fn atom_ty(&self, op: CopyOp) -> String {
        let zeros = (self.guard == Guard::ZeroFill).then(|| op.zero_filling()).flatten();
        format!("Copy_Atom<{}, {}>", zeros.unwrap_or(op.name()), element(self.dtype))
    }

    /// The function that derives the tiled copy from an MMA, and the MMA, where its values are those of the MMA's fragments.
    fn maker(&self) -> Option<(String, &'static str)> {
        let Engine::Fragments(op) = self.engine else { return None };
        match (self.from, self.to) {
            (_, Place::Fragments(mma, operand)) if op.is_ldmatrix() => {
                Some((format!("make_tiled_copy_{operand}"), mma))
            }
            (Place::Pairs(mma), _) => Some(("pairs of the accumulators".to_owned(), mma)),
            (Place::Fragments(mma, _), _) if self.hands_over_accumulators() => {
                Some(("make_tiled_copy_C_atom".to_owned(), mma))
            }
            _ => None,
        }
    }

    fn tiled_ty(&self, op: CopyOp, copy: &TiledCopy) -> String {
        let (tv, tiler) = (layout_type(copy.layout_tv()), tiler_type(copy.tiler()));
        format!("TiledCopy<{}, {tv}, {tiler}>", self.atom_ty(op))
    }

    /// What TMA fills at once, as a layout in shared memory and its extents: the tile, or of one that lies in pages a part.
    fn boxed(&self, tensor: &SmemTensor, global: Global, extents: &[i64; 2]) -> Option<(String, [i64; 2])> {
        let (lines, mut part) = (1 - global.contiguous, self.tile);
        if global.page == 0 || extents[lines] == part[lines] {
            return Some((format!("Smem{}", tensor.name), part));
        }
        part[lines] = extents[lines];
        let mut modes: Vec<Layout> = tensor.layout.modes().collect();
        modes[lines] = composition(&modes[lines], &Layout::mode_of(part[lines], 1).ok()?).ok()?;
        let layout = Layout::from_modes(modes).ok()?;
        Some((SmemTensor { layout, ..tensor.clone() }.ty(), part))
    }

    fn ty(&self, tiling: &Tiling) -> Option<String> {
        match (&self.engine, self.to) {
            (Engine::Threads { op, threads, values }, _) => {
                Some(self.tiled_ty(*op, &self.tiled(*op, threads, values).ok()?))
            }
            // Values: nvcc takes a second or more to derive them.
            (Engine::Fragments(op), _) if self.maker().is_some() => {
                Some(self.tiled_ty(*op, &tiling.tiled_as_fragments(self).ok()??))
            }
            (Engine::Tma { extents, sharers, rounds }, to) => {
                let (global, name) = self.in_global_and_shared()?;
                let op = match (to, sharers) {
                    (Place::Global(_), _) => "SM90_TMA_STORE",
                    (_, 1) => "SM90_TMA_LOAD",
                    _ => "SM90_TMA_LOAD_MULTICAST",
                };
                let (smem, tile) = self.boxed(tiling.smem(name)?, global, extents)?;
                let (tile, sharers) = (shape_type(tile), int((*sharers).into()));
                let strides = if global.contiguous == 1 { ["int64_t", "_1"] } else { ["_1", "int64_t"] };
                let outer = core::iter::repeat_n("int64_t", global.outer);
                let strides = strides.into_iter().chain(outer).collect::<Vec<_>>().join(",");
                let element = if *rounds { "tfloat32_t" } else { element(self.dtype) };
                Some(format!("Tma<{op}, {element}, Stride<{strides}>, {smem}, {tile}, {sharers}>"))
            }
            // Whole tiles: no element has a predicate of its own.
            (Engine::Fragments(op), Place::Global(global)) if global.whole => Some(self.atom_ty(*op)),
            _ => None,
        }
    }
}

pub(crate) fn tiler_type(tiler: &Tiler) -> String {
    match tiler {
        Tiler::Layout(layout) => layout_type(layout),
        Tiler::Shape(shape) => shape_text(shape),
        Tiler::Tuple(entries) => {
            let modes: Vec<String> = entries.iter().map(tiler_type).collect();
            format!("Tile<{}>", modes.join(","))
        }
    }
}

fn shape_text(shape: &IntTuple) -> String {
    match shape.ints().as_deref() {
        Some([n]) => int(*n),
        Some([m, n]) => shape_type([*m, *n]),
        Some(extents) => tuple_type("Shape", extents),
        None => "Underscore".to_owned(),
    }
}

impl Tiling {
    /// The headers of its atoms that `cute/tensor.hpp` does not include.
    pub fn headers(&self) -> &'static [&'static str] {
        let of = self.mmas.iter().filter_map(|mma| Some(mma.tiled().ok()?.atom().headers()));
        of.max_by_key(|headers| headers.len()).unwrap_or_default()
    }

    /// The types of the text: tiles, tensors in shared memory, MMA, copies.
    pub fn aliases(&self) -> Vec<Alias> {
        let mut all: Vec<Alias> = self.mmas.iter().flat_map(TileMma::tile_aliases).chain(self.smem_aliases()).collect();
        for mma in &self.mmas {
            let tile = mma.tiled().and_then(|tiled| tiled.tile_mnk()).unwrap_or_default();
            let [m, n, k] = tile;
            all.push(Alias::new(mma.name, mma.ty(self), &format!("({m},{n},{k}) at a time")));
        }
        for copy in &self.copies {
            let Some(ty) = copy.ty(self) else { continue };
            let made = copy.maker().map_or_else(String::new, |(maker, mma)| format!(": {maker} of {mma}"));
            all.push(Alias::new(copy.name, ty, &format!("{}{made}", copy.what)));
        }
        all
    }

    /// The types of the tensors in shared memory.
    pub(crate) fn smem_aliases(&self) -> impl Iterator<Item = Alias> {
        self.smem.iter().map(|tensor| Alias::new(&format!("Smem{}", tensor.name), tensor.ty(), tensor.modes))
    }

    /// Every number that was decided here and that the text relies on.
    pub fn assertions(&self) -> Vec<Assertion> {
        let mut all = Vec::new();
        let mut assert = |condition: String, what: &str| all.push(Assertion { condition, what: what.to_owned() });
        for mma in &self.mmas {
            let Ok(tiled) = mma.tiled() else { continue };
            let (name, [tile_a, _, tile_d]) = (mma.name, mma.tiles);
            assert(format!("size({name}{{}}) == {}", tiled.threads()), "threads that compute");
            for (mode, letter) in ["M", "N"].iter().enumerate() {
                let condition = format!("size<{mode}>({tile_d}{{}}) % tile_size<{mode}>({name}{{}}) == 0");
                assert(condition, &format!("the MMA divides the CTA tile along {letter}"));
            }
            assert(format!("size<1>({tile_a}{{}}) % tile_size<2>({name}{{}}) == 0"), "and the k-tile");
        }
        for copy in &self.copies {
            let threads = match &copy.engine {
                Engine::Threads { threads, .. } => threads.size(),
                Engine::Fragments(_) if copy.maker().is_some() => self.threads_of_tile().into(),
                _ => continue,
            };
            assert(format!("size({}{{}}) == {threads}", copy.name), copy.what);
        }
        for tensor in &self.smem {
            let (name, extents) = (tensor.name, tensor.extents());
            let modes = extents.get(..tensor.layout.rank()).unwrap_or(&extents);
            let nested = tensor.layout.modes().any(|mode| mode.rank() > 1);
            let shape = format!("shape(Smem{name}{{}})");
            let shape = if nested { format!("product_each({shape})") } else { shape };
            let condition = format!("{shape} == {}{{}}", tuple_type("Shape", modes));
            assert(condition, &format!("s{name} is {}", tensor.modes));
            if let Ok(cosize) = tensor.layout.cosize() {
                assert(format!("cosize_v<Smem{name}> == {cosize}"), "elements of shared memory");
            }
        }
        all
    }
}

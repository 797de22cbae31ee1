//! `elementwise_add`: C = A + B with a thread-value layout, as in NVIDIA's CuTe DSL notebook `elementwise_add.ipynb`.

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

use askama::Template;

use crate::arch::{Arch, Targets};
use crate::diagnostic::{BindError, Code, Diagnostics, PlanError};
use crate::dtype::{DType, Element, Kind};
use crate::emit;
use crate::expr::{Checked, Compute, Function};
use crate::layout::{Layout, recast_layout};
use crate::model::Prediction;
use crate::plan::checks::{self, Checks, TvTile};
use crate::plan::{
    Computes, Entry, Fact, Geometry, KernelPlan, Operand, ParamStruct, ParamType, ParamValue, Plan, ROW_MAJOR,
};
use crate::recipe::Recipe;
use crate::recipe::elementwise_apply::{ElementwiseApply, Variant, row_major, tile_type};
use crate::recipe::field::{as_displayed, recipe};
use crate::recipe::reader::Reader;
use crate::settings::{Setting, Settings};
use crate::units::Bytes;
use crate::view::{Access, AnyView, Args, Space, View, ViewMut, ViewRef};

recipe! {
    /// C = A + B on row-major matrices `(M,N):(ld,1)` of any size and any leading dimension.
    ///
    /// Each block takes one tile of C. Within it, `thr_layout` and the value layout give the thread-value layout, so every
    /// thread moves whole vectors of `vector` bytes, `unroll` of them in flight.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{ElementwiseAdd, Recipe};
    ///
    /// let plan = ElementwiseAdd { dtype: DType::F16, ..Default::default() }.plan(&Targets::default())?;
    /// assert_eq!(plan.threads(), 256);
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub struct ElementwiseAdd |this| {
        /// element type of A, B and C: f32, f16, bf16
        dtype: DType, "bf16";
        /// thread layout (ThrM,ThrN) -> tid
        thr_layout = "thr": Layout, "(4,64):(64,1)";
        /// value layout of one thread in bytes, (ValM,ValBytes) -> vid, recast to the element type
        val_layout_bytes = "val": Layout, "(16,16):(16,1)";
        /// bytes of one load or store: 2, 4, 8 or 16
        vector: Bytes, "16";
        /// vectors of each input that a thread loads before it uses the first, 0 for all
        unroll: u32, "4";
        /// blocks walk along `n` (rows) or `m` (columns)
        raster: Raster, "n";
    }
}

as_displayed!(Raster);

/// The order in which blocks walk over the tiles of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Raster {
    /// Neighbouring blocks take neighbouring tiles of a row: long runs of contiguous memory for row-major matrices.
    AlongN,
    /// Neighbouring blocks take neighbouring tiles of a column.
    AlongM,
}

impl FromStr for Raster {
    type Err = &'static str;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "n" => Ok(Raster::AlongN),
            "m" => Ok(Raster::AlongM),
            _ => Err("blocks walk along `n` or along `m`"),
        }
    }
}

impl fmt::Display for Raster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Raster::AlongN => "n",
            Raster::AlongM => "m",
        })
    }
}

impl Default for ElementwiseAdd {
    /// The notebook's choice: f16, threads `(4,64):(64,1)`, values `(16,16):(16,1)` bytes, 16-byte vectors, all loads
    /// in flight, blocks along N.
    fn default() -> Self {
        Self {
            dtype: DType::F16,
            thr_layout: row_major([4, 64]),
            val_layout_bytes: row_major([16, 16]),
            vector: Bytes(16),
            unroll: 0,
            raster: Raster::AlongN,
        }
    }
}

impl Recipe for ElementwiseAdd {
    const FAMILY: &'static str = "elementwise_add";
    const RUST_TYPE: &'static str = "ElementwiseAdd";
    const SUMMARY: &'static str = "C = A + B, elementwise, row-major matrices of any size";
    const SETTINGS: &'static [Setting] = SETTINGS;
    /// The notebook's choice for each type.
    const CATALOGUE: &'static [&'static str] = &["dtype=f32", "dtype=f16", "dtype=bf16"];
    const PROBLEM: &'static [i64] = &[16384, 8192];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        ("check", ""),
        ("check", "--set dtype=f32 --set 'thr=(8,32):(32,1)' --arch sm_90a"),
        ("emit", ""),
        ("emit", "--out kernels"),
        ("run", "--problem 1023x511"),
        ("run", "--set dtype=f32 --input a.npy --input b.npy --output c.npy"),
        ("run", "--problem 64x200 --ld 256 --mode races"),
        ("bench", "--set dtype=bf16 --problem 16384x8192"),
    ];

    fn plan_as(&self, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
        plan(self, name, targets)
    }

    fn default_name(&self) -> String {
        format!("{}_{}", Self::FAMILY, self.dtype)
    }

    fn from_settings(settings: &Settings) -> Result<Self, PlanError> {
        let mut reader = Reader::new(Self::FAMILY, SETTINGS, settings);
        let mut recipe = Self::default();
        recipe.read_fields(&mut reader);
        reader.finish().map(|()| recipe)
    }

    fn settings(&self) -> Settings {
        self.written()
    }
}

/// What was decided beyond what every plan holds.
#[derive(Debug)]
struct Decision {
    recipe: ElementwiseAdd,
    val_layout: Layout,
    tile: TvTile,
    sum: Checked,
}

fn plan(recipe: &ElementwiseAdd, name: &str, targets: &Targets) -> Result<Plan, PlanError> {
    let mut checks = Checks::new(&format!("{recipe:?}"), targets);
    checks::kernel_name(&mut checks, name);
    let smem = Bytes(0);
    checks::shared_memory(&mut checks, smem, targets);
    let decision = decide(recipe, &mut checks);
    let warnings = checks.take_warnings();
    let (decision, threads, registers) = checks.finish(decision)?;
    let operand = |name, param: &str, access| Operand {
        name,
        param: param.to_owned(),
        dtype: recipe.dtype,
        access,
        strides: ROW_MAJOR.to_vec(),
        in_place: false,
        may_be_empty: false,
    };
    Ok(Plan {
        family: ElementwiseAdd::FAMILY,
        rust_type: ElementwiseAdd::RUST_TYPE,
        name: name.to_owned(),
        recipe: format!("{recipe:?}"),
        settings: recipe.settings(),
        targets: targets.clone(),
        operands: vec![
            operand("A", "a", Access::Read),
            operand("B", "b", Access::Read),
            operand("C", "c", Access::Write),
        ],
        params: params(),
        entries: vec![Entry::new(name, threads, smem).with_registers(registers)],
        scalars: Vec::new(),
        shared: Vec::new(),
        warnings,
        facts: facts(&decision, registers),
        kernel: Arc::new(decision),
        parts: Vec::new(),
    })
}

fn params() -> ParamStruct {
    ParamStruct::new(&[
        ("a", ParamType::ConstPtr, "A, (M,N):(lda,1)"),
        ("b", ParamType::ConstPtr, "B, (M,N):(ldb,1)"),
        ("c", ParamType::MutPtr, "C, (M,N):(ldc,1)"),
        ("lda", ParamType::I64, "elements from one row of A to the next"),
        ("ldb", ParamType::I64, "elements from one row of B to the next"),
        ("ldc", ParamType::I64, "elements from one row of C to the next"),
        ("m", ParamType::I32, "M, rows"),
        ("n", ParamType::I32, "N, columns"),
    ])
}

/// Runs every check; a later one runs only where the earlier ones left something to look at.
fn decide(recipe: &ElementwiseAdd, checks: &mut Checks) -> Option<(Decision, u32, u64)> {
    let help = "a compact layout, such as thr=(4,64):(64,1)";
    let threads = checks::numbers_once(checks, Code::ThreadLayout, "thr", &recipe.thr_layout, help)
        .and_then(|threads| checks::thread_count(checks, threads, "thr=(4,64):(64,1) has 256 threads"));
    let help = "a compact layout, such as val=(16,16):(16,1)";
    let bytes = &recipe.val_layout_bytes;
    let val_layout = checks::numbers_once(checks, Code::ValueLayout, "val", bytes, help).and_then(|_| {
        let recast = recast_layout(bytes, 8, i64::from(recipe.dtype.bits()));
        recast.map_err(|e| tile_type(bytes, recipe.dtype, checks, &e)).ok()
    });
    let vec = checks::vector_width(checks, recipe.vector, recipe.dtype);
    let (threads, val_layout, vec) = (threads?, val_layout?, vec?);
    let tile = checks::tv_tile(checks, &recipe.thr_layout, &val_layout, vec, recipe.unroll)?;
    // A and B are in registers at the same time; C takes the place of what was added.
    let unroll = checks.sound("the vectors in flight are counted", u64::try_from(tile.values[1]))?;
    let in_flight = Bytes(recipe.vector.0.saturating_mul(2).saturating_mul(unroll));
    let registers = checks::registers(checks, in_flight, threads);
    let compute = match (recipe.dtype, recipe.dtype.kind()) {
        (DType::F64, _) => Compute::F64,
        (_, Kind::Int) => Compute::I32,
        _ => Compute::F32,
    };
    let sum = Function::binary(|a, b| a + b).check(compute).map_err(|all| format!("{all:?}"));
    let sum = checks.sound("a + b is a function of every type", sum)?;
    Some((Decision { recipe: recipe.clone(), val_layout, tile, sum }, threads, registers))
}

fn facts(decision: &Decision, registers: u64) -> Vec<Fact> {
    let TvTile { tile: [tile_m, tile_n], tv, frag, values: [vec, unroll, steps] } = &decision.tile;
    let recipe = &decision.recipe;
    let fact = |name, value: String, why: &str| Fact { name, value, why: why.to_owned() };
    vec![
        fact("thread layout", recipe.thr_layout.to_string(), "(ThrM,ThrN) -> tid, from the recipe"),
        fact("value layout", decision.val_layout.to_string(), "(ValM,ValN) -> vid, the byte layout recast to the type"),
        fact("tiler", format!("({tile_m},{tile_n})"), "make_layout_tv: thread extents times value extents"),
        fact("TV layout", tv.to_string(), "(tid,vid) -> (TileM,TileN), make_layout_tv"),
        fact("fragment", frag.to_string(), "(tid,VEC,UNROLL,STEP) -> (TileM,TileN), the values as vectors"),
        fact("vector", format!("{vec} elements, {}", recipe.vector), "where the views are aligned; else by element"),
        fact(
            "in flight",
            format!("{} vectors, {} in all", 2 * unroll, 2 * unroll * steps),
            "loads of A and B before the first use",
        ),
        fact("coverage", "each element of the tile once".into(), "looked at every (tid,vid)"),
        fact("registers", format!("about {registers}"), "the vectors in flight and the addresses; ptxas tells exactly"),
        fact("raster", format!("{:?}", recipe.raster), "the order in which blocks walk over the tiles"),
        fact("grid", format!("ceil_div(M,{tile_m}) * ceil_div(N,{tile_n})"), "one block for each tile"),
    ]
}

#[derive(Template)]
#[template(path = "elementwise_add.cuh")]
struct Header<'a> {
    banner: String,
    plan: &'a Plan,
    element: &'static str,
    element_bytes: u64,
    vector_type: String,
    vector_bytes: u64,
    thr_layout: String,
    val_layout: String,
    tiler: String,
    tv_layout: String,
    tv_frag: String,
    values: i64,
    tile_m: i64,
    tile_n: i64,
    tile_size: i64,
    cta_crd: &'static str,
}

impl KernelPlan for Decision {
    fn header(&self, plan: &Plan) -> String {
        let TvTile { tile: [tile_m, tile_n], tv, frag, values } = &self.tile;
        let recipe = &self.recipe;
        emit::text(&Header {
            banner: emit::banner(plan, "elementwise_add.cuh"),
            plan,
            element: recipe.dtype.cxx(),
            element_bytes: recipe.dtype.bytes().0,
            vector_type: format!("uint{}_t", recipe.vector.0 * 8),
            vector_bytes: recipe.vector.0,
            thr_layout: emit::layout_type(&recipe.thr_layout),
            val_layout: emit::layout_type(&self.val_layout),
            tiler: emit::shape_type([*tile_m, *tile_n]),
            tv_layout: emit::layout_type(tv),
            tv_frag: emit::layout_type(frag),
            values: values.iter().product(),
            tile_m: *tile_m,
            tile_n: *tile_n,
            tile_size: tile_m * tile_n,
            cta_crd: match recipe.raster {
                Raster::AlongN => "select<1,0>(idx2crd(int(blockIdx.x), select<1,0>(rest_MN)))",
                Raster::AlongM => "idx2crd(int(blockIdx.x), rest_MN)",
            },
        })
    }

    fn computes(&self) -> Option<Computes<'_>> {
        Some(Computes::Elementwise(&self.sum))
    }

    /// The requests of the kernel of `elementwise_apply` that has the same tile. Here all vectors of a launch are moved whole
    /// or none is, so that rows of no whole number of vectors are moved as vectors of one element are there.
    fn predict(&self, views: &[ViewRef]) -> Option<Prediction> {
        let recipe = &self.recipe;
        let whole = views.iter().all(|v| v.layout.shape().last().is_some_and(|n| n % self.tile.values[0] == 0));
        let same = ElementwiseApply {
            variant: Variant::Tv,
            vector: if whole { recipe.vector } else { recipe.dtype.bytes() },
            thr_layout: recipe.thr_layout.clone(),
            val_layout_bytes: recipe.val_layout_bytes.clone(),
            ..ElementwiseApply::new(self.sum.function().clone(), recipe.dtype)
        };
        let mut prediction = same.plan_as(ElementwiseAdd::FAMILY, &Targets::default()).ok()?.kernel.predict(views)?;
        let output = prediction.traffic.iter_mut().find(|t| t.written)?;
        output.operand = "C";
        Some(prediction)
    }

    fn geometry(&self, plan: &Plan, views: &[ViewRef], _: &[f64]) -> Result<Geometry, BindError> {
        let [a, b, c] = views else { return Err(plan.unexpected_views(views).into()) };
        // The general checks have seen that each is a matrix.
        let ([rows, cols], false) = (c.layout.shape(), views.iter().any(|v| v.layout.rank() != 2)) else {
            return Err(plan.unexpected_views(views).into());
        };
        let (rows, cols) = (*rows, *cols);
        let mut found = Vec::new();
        for (name, view) in [("A", a), ("B", b)] {
            if view.layout.shape() != c.layout.shape() {
                let [m, n] = [view.layout.shape()[0], view.layout.shape()[1]];
                found.push(plan.diagnostic(
                    Code::ViewShape,
                    format!("{name} is ({m},{n}), C is ({rows},{cols})"),
                    "A, B and C of one shape".into(),
                    "an elementwise kernel reads A and B at each coordinate of C",
                    &format!("pass a view of {name} with shape ({rows},{cols})"),
                ));
            }
        }
        let [tile_m, tile_n] = self.tile.tile;
        // Extents are positive here.
        let blocks = ((rows - 1) / tile_m + 1).checked_mul((cols - 1) / tile_n + 1);
        // The last tile's coordinates must be 32-bit integers too, also where they lie outside the matrix.
        let extent =
            |extent: i64, tile: i64| i32::try_from(extent).ok().filter(|e| e.checked_add(tile as i32).is_some());
        let grid = blocks.and_then(|b| u32::try_from(b).ok()).filter(|b| u64::from(*b) <= Arch::MAX_GRID_X);
        let geometry = match (extent(rows, tile_m), extent(cols, tile_n), grid) {
            (Some(m), Some(n), Some(grid)) => {
                let pointers = [a, b, c].map(|v| ParamValue::Ptr(v.ptr));
                let strides = [a, b, c].map(|v| ParamValue::I64(v.layout.stride()[0]));
                let extents = [ParamValue::I32(m), ParamValue::I32(n)];
                let values = pointers.into_iter().chain(strides).chain(extents).collect();
                Some(Geometry::new([grid, 1, 1], values))
            }
            _ => {
                found.push(plan.diagnostic(
                    Code::ProblemTooLarge,
                    format!("C is ({rows},{cols}) in tiles of ({tile_m},{tile_n})"),
                    format!(
                        "M <= {}, N <= {}, at most {} tiles",
                        i64::from(i32::MAX) - tile_m,
                        i64::from(i32::MAX) - tile_n,
                        Arch::MAX_GRID_X
                    ),
                    "coordinates are 32-bit integers, and a grid has at most 2^31-1 blocks along x (CUDA C++ \
                     Programming Guide, \"Compute Capabilities\"); offsets are 64-bit, so more than 2^31 elements work",
                    "launch on parts of the matrix, or use a larger tile",
                ));
                None
            }
        };
        Diagnostics::refuse(found)?;
        geometry.ok_or_else(|| plan.unexpected_views(views).into())
    }
}

/// The arguments of one launch: C = A + B, all `(M,N)`.
#[derive(Debug)]
pub struct ElementwiseAddArgs<'a, T: Element, S: Space> {
    /// A, `(M,N):(lda,1)`.
    pub a: View<'a, T, S>,
    /// B, `(M,N):(ldb,1)`.
    pub b: View<'a, T, S>,
    /// C, `(M,N):(ldc,1)`.
    pub c: ViewMut<'a, T, S>,
}

impl<T: Element, S: Space> Args<ElementwiseAdd, S> for ElementwiseAddArgs<'_, T, S> {
    fn views(&mut self) -> Vec<AnyView<'_, S>> {
        vec![self.a.erase(), self.b.erase(), self.c.erase()]
    }
}

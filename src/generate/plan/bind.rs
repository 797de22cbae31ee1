//! From views to a launch: every view is checked against the plan, then grid and parameters follow.

use super::demand;
use crate::diagnostic::{Code, Defect, Diagnostic, Diagnostics};
use crate::plan::{Abi, Entry, Geometry, Grid, ModeStride, Operand, ParamType, WORKSPACE};
use crate::tiling::TensorMapSpec;
use crate::units::Bytes;
use crate::view::{ViewLayout, ViewRef};

/// A tensor of a launch: its view, and where its address stands in the parameter struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundTensor {
    /// The operand's name, as in the emitted text: `A` for `mA`.
    pub name: &'static str,
    /// The view that was checked.
    pub view: ViewRef,
    /// Byte offset of the pointer in [`Binding::params`].
    pub param_offset: usize,
}

/// The grid of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryLaunch {
    /// Which of [`Abi::entries`](crate::plan::Abi::entries).
    pub entry: usize,
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_smem: u32,
    /// Whether it begins while the kernel before it in the stream ends (CUDA C++ Programming Guide, "Programmatic Dependent Launch").
    pub overlaps: bool,
}

/// Memory that one entry of a launch writes and a later one reads: partial sums, or packed operands. The caller
/// provides it, aligned to 256 bytes, and puts its address into the parameters. Its contents before and after mean
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Workspace {
    /// Its size; never 0.
    pub bytes: Bytes,
    /// Byte offset of the pointer in [`Binding::params`].
    pub param_offset: usize,
}

/// Everything that a launch needs besides the code. Only [`Abi::bind`](crate::plan::Abi::bind) makes one, so every check has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    launches: Vec<EntryLaunch>,
    params: Vec<u8>,
    tensors: Vec<BoundTensor>,
    workspace: Option<Workspace>,
    tensor_maps: Vec<BoundMap>,
}

/// A tensor map of a launch, which whoever launches encodes and puts into the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundMap {
    /// Its contents. In the workspace, its address is an offset, to which the caller adds the workspace's address.
    pub spec: TensorMapSpec,
    /// Whether it is of the workspace.
    pub in_workspace: bool,
    /// Byte offset of its 128 bytes in [`Binding::params`].
    pub param_offset: usize,
}

impl Binding {
    /// From the geometry that the plan's family computed for these views.
    pub(super) fn new(abi: &Abi, views: &[ViewRef], geometry: Geometry) -> Result<Self, Defect> {
        let Geometry { grids, values, maps, workspace } = geometry;
        let defect = |what: String| Defect::new(what, abi.recipe());
        let params = abi.params().pack(&values);
        let params =
            params.map_err(|e| defect(format!("a launch computes parameters that are not the plan's: {e}")))?;
        let tensors = abi.operands().iter().zip(views).map(|(o, v)| BoundTensor {
            name: o.name,
            // The view of a tensor that is changed in place is one that is written.
            view: ViewRef { access: o.access, ..*v },
            param_offset: abi.params().field(&o.param).map_or(0, |f| f.offset),
        });
        let launch = |(entry, (e, grid)): (usize, (&Entry, Option<Grid>))| {
            let Grid { blocks, overlaps, shared, threads } = grid?;
            // A block's shared memory was checked against the architectures, which have less than 2^32 bytes of it.
            let dynamic_smem = shared.unwrap_or(u32::try_from(e.dynamic_smem.0).unwrap_or(u32::MAX));
            let overlaps = e.overlaps && overlaps;
            Some(EntryLaunch {
                entry,
                grid: blocks,
                block: threads.unwrap_or_else(|| e.block()),
                dynamic_smem,
                overlaps,
            })
        };
        let launches: Vec<EntryLaunch> = abi.entries().iter().zip(grids).enumerate().filter_map(launch).collect();
        let pointer = abi.params().field(WORKSPACE).filter(|field| field.ty == ParamType::MutPtr);
        let workspace = match (workspace.0 > 0 && !launches.is_empty(), pointer) {
            (false, _) => None,
            (true, Some(field)) => Some(Workspace { bytes: workspace, param_offset: field.offset }),
            (true, None) => return Err(defect("a launch asks for a workspace and has no pointer to it".into())),
        };
        if workspace.is_none() && maps.iter().any(|map| map.in_workspace) {
            return Err(defect("a launch has a tensor map of a workspace, and no workspace".into()));
        }
        Ok(Self { launches, params, tensors: tensors.collect(), workspace, tensor_maps: maps })
    }

    /// The grids, in the order in which they run, each after the one before has ended. Empty where there is nothing to
    /// compute.
    pub fn launches(&self) -> &[EntryLaunch] {
        &self.launches
    }

    /// The bytes of the parameter struct, one for all entries.
    pub fn params(&self) -> &[u8] {
        &self.params
    }

    /// The tensors, in the order of the operands.
    pub fn tensors(&self) -> &[BoundTensor] {
        &self.tensors
    }

    /// The tensor maps, in the order of the parameters.
    pub fn tensor_maps(&self) -> &[BoundMap] {
        &self.tensor_maps
    }

    /// The memory that the launch needs besides its tensors.
    pub fn workspace(&self) -> Option<Workspace> {
        self.workspace
    }
}

/// Checks that hold for every kernel: element types, extents, leading dimensions, memory, alignment, overlap.
pub(crate) fn check_views(abi: &Abi, views: &[ViewRef], scalars: &[f64]) -> Result<(), Diagnostics> {
    let operands = abi.operands();
    let mut found = Vec::new();
    if views.len() != operands.len() {
        let found = abi.diagnostic(
            Code::ViewCount,
            format!("{} views", views.len()),
            format!("{} views: {}", operands.len(), names(operands)),
            "each operand of the kernel needs exactly one view",
            &format!("pass one view for each operand, in this order: {}", abi.draft().call.views),
        );
        return Err(found.into());
    }
    let names = abi.scalars();
    if scalars.len() != names.len() {
        found.push(abi.diagnostic(
            Code::ScalarCount,
            format!("{} values", scalars.len()),
            match names {
                [] => "none: the kernel has no run-time scalars".into(),
                names => format!("{}: {}", names.len(), names.join(", ")),
            },
            "each run-time scalar of the kernel needs exactly one value",
            &match names {
                [] => "leave them out".to_owned(),
                _ => format!("pass one value for each scalar, in this order: {}", abi.draft().call.scalars),
            },
        ));
    }
    for (operand, view) in operands.iter().zip(views) {
        check_view(abi, operand, view, &mut found);
    }
    if found.is_empty() {
        check_shapes(abi, views, &mut found);
        check_overlap(abi, views, &mut found);
    }
    if found.is_empty() {
        demand::check(abi, views, scalars, &mut found);
    }
    Diagnostics::refuse(found)
}

fn names(operands: &[Operand]) -> String {
    operands.iter().map(|o| o.name).collect::<Vec<_>>().join(", ")
}

fn check_view(abi: &Abi, operand: &Operand, view: &ViewRef, found: &mut Vec<Diagnostic>) {
    let name = operand.name;
    if view.dtype != operand.dtype {
        found.push(abi.diagnostic(
            Code::ViewType,
            format!("{name} holds {}", view.dtype),
            format!("{name} holds {}", operand.dtype),
            "the kernel was generated for that element type; other bits would be read as wrong numbers",
            &format!("convert {name}, or generate the recipe with dtype={}", view.dtype),
        ));
    }
    if view.access.writes() != operand.access.writes() {
        found.push(abi.diagnostic(
            Code::ViewAccess,
            format!("{name} is given for {:?} access", view.access),
            format!("{name} is given for {:?} access", operand.access),
            "a tensor that the kernel writes must be borrowed mutably",
            &format!("pass a ViewMut for {name} if the kernel writes it, a View otherwise"),
        ));
    }
    if check_layout(abi, operand, view, found) {
        check_memory(abi, name, view, found);
    }
}

/// Rank, extents and strides; whether they make sense enough to look at the memory.
fn check_layout(abi: &Abi, operand: &Operand, view: &ViewRef, found: &mut Vec<Diagnostic>) -> bool {
    let (name, layout) = (operand.name, view.layout);
    let mut refuse = |code, what: String, required: String, because, help: &str| {
        found.push(abi.diagnostic(code, what, required, because, help));
        false
    };
    if layout.rank() != operand.strides.len() {
        return refuse(
            Code::ViewStride,
            format!("{name} = {layout} has rank {}", layout.rank()),
            format!("rank {}, with strides {}", operand.strides.len(), operand.stride_text()),
            "the kernel was generated for tensors of that rank",
            match (layout.rank(), &operand.strides[..]) {
                (1, [ModeStride::Broadcast, _]) => "`View::row(m)` makes one row for all of m rows of a vector",
                (1, [_, ModeStride::Broadcast]) => {
                    "`View::column(n)` makes one column for all of n columns of a vector"
                }
                (1, [_, _]) => {
                    "`View::host(.., [m, n], ld)` is a matrix; `View::row(m)` makes one row for all of m rows of a vector, \
                     `View::column(n)` one column for all"
                }
                (_, [_]) => "`View::host_vector(..)` or `Buffer::vector()` is a vector",
                _ => "pass a view of that rank, or generate the kernel for the rank you have",
            },
        );
    }
    if layout.shape().iter().any(|e| *e < 0) {
        return refuse(
            Code::ViewExtent,
            format!("{name} is {layout}"),
            "extents of at least 0".into(),
            "an extent counts the coordinates of a mode",
            "pass the number of coordinates; with 0 the tensor is empty",
        );
    }
    // An empty tensor needs no memory, and its strides are never used.
    if layout.size() == Some(0) {
        return true;
    }
    // The stride of a mode with one coordinate is never used.
    let modes = || layout.shape().iter().zip(layout.stride()).filter(|(e, _)| **e > 1).map(|(_, d)| *d);
    if let Some(negative) = modes().find(|d| *d < 0) {
        return refuse(
            Code::ViewStride,
            format!("{name} = {layout} has stride {negative}"),
            "strides of at least 0".into(),
            "a view begins at its lowest address; CuTe's layouts may run backwards, the views of a launch may not",
            "view the memory forwards, or copy it in the other order first",
        );
    }
    let written = operand.access.writes();
    let reach = if written { layout } else { layout.distinct() };
    if !reach.is_injective() {
        return refuse(
            Code::ViewLeadingDimension,
            format!("{name} = {layout}"),
            format!("strides larger than all offsets of the modes inside{}", least(&layout)),
            if written {
                "one element would have two coordinates, and threads would write it in any order"
            } else {
                "one element would have two coordinates; use stride 0 to broadcast"
            },
            "a contiguous tensor, or one with gaps",
        );
    }
    if let Some(i) = (0..layout.rank()).find(|i| !fits(operand, &layout, *i)) {
        return refuse(
            Code::ViewStride,
            format!("{name} = {layout} has stride {} along mode {i}", layout.stride()[i]),
            format!("strides {}: {} along mode {i}", operand.stride_text(), operand.strides[i]),
            "the kernel's text has these strides as constants, so that it can move whole vectors",
            &format!(
                "{}pass a view with these strides, or generate the kernel for the strides you have",
                adapter(operand, &layout)
            ),
        );
    }
    true
}

/// Whether the stride along a mode is the one that the kernel was generated for. With one coordinate it is never used.
fn fits(operand: &Operand, layout: &ViewLayout, mode: usize) -> bool {
    let (extent, stride) = (layout.shape()[mode], layout.stride()[mode]);
    match operand.strides[mode] {
        _ if extent == 1 => true,
        ModeStride::Unit => stride == 1,
        ModeStride::Broadcast => stride == 0,
        ModeStride::Dynamic => true,
    }
}

/// The view that would fit, where one call makes it of this one.
fn adapter(operand: &Operand, layout: &ViewLayout) -> &'static str {
    let turned = layout.transposed();
    match &operand.strides[..] {
        _ if (0..turned.rank()).all(|mode| fits(operand, &turned, mode)) => {
            "`View::transposed()` exchanges the first two modes, where that is what the memory holds; else "
        }
        [ModeStride::Broadcast, _] => "one row for all rows is `View::host_vector(..).row(m)`; else ",
        [_, ModeStride::Broadcast] => "one column for all columns is `View::host_vector(..).column(n)`; else ",
        _ => "",
    }
}

/// For a matrix with contiguous rows: the smallest leading dimension.
fn least(layout: &ViewLayout) -> String {
    match (layout.shape(), layout.stride()) {
        ([_, cols], [_, 1]) => format!(": leading dimension >= {cols}"),
        _ => String::new(),
    }
}

fn check_memory(abi: &Abi, name: &str, view: &ViewRef, found: &mut Vec<Diagnostic>) {
    let bytes = view.dtype.bytes();
    if !view.ptr.is_multiple_of(bytes.0) {
        found.push(abi.diagnostic(
            Code::ViewAlignment,
            format!("{name} at {:#x}, {} past a multiple of {bytes}", view.ptr, view.ptr % bytes.0),
            format!("an address that is a multiple of {bytes}"),
            "the GPU faults on an address that is not aligned to the element (CUDA C++ Programming Guide, \
             \"Device Memory Accesses\")",
            "slice the allocation at a whole element",
        ));
    }
    match view.end().and(view.span()) {
        Some(span) if span <= view.available.0 => {}
        span => found.push(abi.diagnostic(
            Code::ViewMemory,
            format!("{name} has {}", view.available),
            match span {
                Some(span) => format!("{span} elements for {}", view.layout),
                None => format!("{} must fit in a 64-bit address", view.layout),
            },
            "the last elements would lie outside the allocation",
            "allocate 1 + sum((extent-1)*stride) elements, or pass a smaller shape",
        )),
    }
}

/// The views are those of one problem, which the first of them tell.
fn check_shapes(abi: &Abi, views: &[ViewRef], found: &mut Vec<Diagnostic>) {
    let shapes: Vec<&[i64]> = views.iter().map(|view| view.layout.shape()).collect();
    let Some((rule, problem)) = abi.problem_shape().and_then(|rule| Some((rule, rule.problem_of(&shapes)?))) else {
        return;
    };
    let required = rule.shapes(&problem).unwrap_or_default();
    let text = |extents: &[i64]| format!("({})", extents.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
    let (because, help) = rule.agreement();
    let is = |(operand, shape): (&Operand, &&[i64])| format!("{} is {}", operand.name, text(shape));
    let told: Vec<String> = abi.operands().iter().zip(&shapes).take(rule.tellers()).map(is).collect();
    for ((operand, shape), required) in abi.operands().iter().zip(&shapes).zip(&required) {
        if shape != required {
            let (what, required) = (is((operand, shape)), format!("{} of shape {}", operand.name, text(required)));
            let what = format!("{what}, where {}", told.join(" and "));
            found.push(abi.diagnostic(Code::ViewShape, what, required, because, help));
        }
    }
}

fn check_overlap(abi: &Abi, views: &[ViewRef], found: &mut Vec<Diagnostic>) {
    let operands = abi.operands();
    for (i, (out, ov)) in operands.iter().zip(views).enumerate() {
        if !ov.access.writes() {
            continue;
        }
        for (j, (other, xv)) in operands.iter().zip(views).enumerate() {
            if i == j || (xv.access.writes() && j < i) || !overlap(ov, xv) {
                continue;
            }
            if other.in_place && (xv.ptr, xv.layout, xv.dtype) == (ov.ptr, ov.layout, ov.dtype) {
                continue;
            }
            found.push(abi.diagnostic(
                Code::ViewOverlap,
                format!("{} = {ov} shares memory with {} = {xv}", out.name, other.name),
                "an output that shares no memory with another tensor".into(),
                if xv.access.writes() {
                    "threads would write two values to one element, in any order"
                } else {
                    "threads write it while others still read, so the result would depend on their order"
                },
                if other.in_place {
                    "write to memory of its own, or to exactly the elements of an input (same address, type and strides)"
                } else {
                    "write to memory of its own"
                },
            ));
        }
    }
}

/// Whether two tensors share a byte. Exact for row-major matrices of the same pitch in bytes; false where all strides leave them apart,
/// as even and odd columns are; otherwise true as soon as the spans meet.
fn overlap(a: &ViewRef, b: &ViewRef) -> bool {
    if a.span() == Some(0) || b.span() == Some(0) {
        return false;
    }
    let (Some(a_end), Some(b_end)) = (a.end(), b.end()) else { return true };
    if a_end <= b.ptr || b_end <= a.ptr {
        return false;
    }
    if apart(a, b) {
        return false;
    }
    let (Some((pitch, a_width)), Some((b_pitch, b_width))) = (rows(a), rows(b)) else { return true };
    if pitch != b_pitch {
        return true;
    }
    // Column ranges on the common pitch: [0, a_width) against [shift, shift + b_width) modulo the pitch.
    let shift = if b.ptr >= a.ptr { (b.ptr - a.ptr) % pitch } else { (pitch - (a.ptr - b.ptr) % pitch) % pitch };
    shift < a_width || shift + b_width > pitch
}

/// Whether no element of one is a multiple of the common divisor of all strides away from an element of the other.
fn apart(a: &ViewRef, b: &ViewRef) -> bool {
    let mut strides = [a, b].into_iter().flat_map(|view| {
        let modes = view.layout.shape().iter().zip(view.layout.stride());
        modes
            .filter(|(extent, _)| **extent > 1)
            .map(|(_, stride)| stride.unsigned_abs().checked_mul(view.dtype.bytes().0))
    });
    let common = strides.try_fold(0, |all, stride| Some(gcd(all, stride?)));
    let (a_bytes, b_bytes) = (a.dtype.bytes().0, b.dtype.bytes().0);
    common.filter(|common| *common > 0).is_some_and(|common| {
        let shift = (i128::from(b.ptr) - i128::from(a.ptr)).rem_euclid(i128::from(common)) as u64;
        a_bytes <= shift && shift + b_bytes <= common
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Pitch and width of a row-major matrix, in bytes.
fn rows(view: &ViewRef) -> Option<(u64, u64)> {
    let bytes = view.dtype.bytes().0;
    match (view.layout.shape(), view.layout.stride()) {
        ([_, cols], [ld, 1]) if *ld > 0 => {
            let bytes_of = |elements: i64| u64::try_from(elements).ok()?.checked_mul(bytes);
            Some((bytes_of(*ld)?, bytes_of(*cols)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

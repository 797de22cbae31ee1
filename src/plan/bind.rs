//! From views to a launch: every view is checked against the plan, then grid and parameters follow.

use crate::plan::diagnostic::{Code, Diagnostic};
use crate::plan::{Operand, Plan};
use crate::view::{Access, ViewRef};

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

/// Everything that a launch needs besides the code. Only [`Plan::bind`] makes one, so every check has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_smem: u32,
    pub(crate) params: Vec<u8>,
    pub(crate) tensors: Vec<BoundTensor>,
}

impl Binding {
    /// Blocks along x, y, z.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Threads of a block along x, y, z.
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Dynamic shared memory of a block, in bytes.
    pub fn dynamic_smem(&self) -> u32 {
        self.dynamic_smem
    }

    /// The bytes of the parameter struct.
    pub fn params(&self) -> &[u8] {
        &self.params
    }

    /// The tensors, in the order of the operands.
    pub fn tensors(&self) -> &[BoundTensor] {
        &self.tensors
    }
}

/// A launch was refused: every reason, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindError(pub Vec<Diagnostic>);

impl core::fmt::Display for BindError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::plan::diagnostic::write_all(f, &self.0)
    }
}

impl core::error::Error for BindError {}

/// Checks that hold for every kernel: element types, extents, leading dimensions, memory, alignment, overlap.
pub(crate) fn check_views(plan: &Plan, views: &[ViewRef]) -> Result<(), BindError> {
    let operands = plan.operands();
    let mut found = Vec::new();
    if views.len() != operands.len() {
        found.push(plan.diagnostic(
            Code::ViewCount,
            format!("{} views", views.len()),
            format!("{} views: {}", operands.len(), names(operands)),
            "each operand of the kernel needs exactly one view",
            "pass one view for each operand, in this order",
        ));
        return Err(BindError(found));
    }
    for (operand, view) in operands.iter().zip(views) {
        check_view(plan, operand, view, &mut found);
    }
    if found.is_empty() {
        check_overlap(plan, views, &mut found);
    }
    if found.is_empty() { Ok(()) } else { Err(BindError(found)) }
}

fn names(operands: &[Operand]) -> String {
    operands.iter().map(|o| o.name).collect::<Vec<_>>().join(", ")
}

fn check_view(plan: &Plan, operand: &Operand, view: &ViewRef, found: &mut Vec<Diagnostic>) {
    let name = operand.name;
    if view.dtype != operand.dtype {
        found.push(plan.diagnostic(
            Code::ViewType,
            format!("{name} holds {}", view.dtype),
            format!("{name} holds {}", operand.dtype),
            "the kernel was generated for that element type; other bits would be read as wrong numbers",
            &format!("convert {name}, or generate the recipe with dtype={}", view.dtype),
        ));
    }
    if view.access != operand.access {
        found.push(plan.diagnostic(
            Code::ViewAccess,
            format!("{name} is given for {:?} access", view.access),
            format!("{name} is given for {:?} access", operand.access),
            "a tensor that the kernel writes must be borrowed mutably",
            &format!("pass a ViewMut for {name} if the kernel writes it, a View otherwise"),
        ));
    }
    if view.rows <= 0 || view.cols <= 0 {
        found.push(plan.diagnostic(
            Code::ViewExtent,
            format!("{name} is {} x {}", view.rows, view.cols),
            "at least 1 x 1".into(),
            "a launch of no blocks is an error to the driver, and a negative extent means nothing",
            "skip the launch where there is nothing to compute",
        ));
        return;
    }
    if view.ld < view.cols {
        found.push(plan.diagnostic(
            Code::ViewLeadingDimension,
            format!("{name} is {} x {} with leading dimension {}", view.rows, view.cols, view.ld),
            format!("leading dimension >= {}", view.cols),
            "rows would overlap: the leading dimension counts the elements from one row to the next",
            &format!("leading dimension {} for a contiguous matrix", view.cols),
        ));
        return;
    }
    check_memory(plan, name, view, found);
}

fn check_memory(plan: &Plan, name: &str, view: &ViewRef, found: &mut Vec<Diagnostic>) {
    let bytes = view.dtype.bytes();
    if !view.ptr.is_multiple_of(bytes.0) {
        found.push(plan.diagnostic(
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
        span => found.push(plan.diagnostic(
            Code::ViewMemory,
            format!("{name} has {}", view.available),
            match span {
                Some(span) => format!("{span} elements for ({},{}):({},1)", view.rows, view.cols, view.ld),
                None => format!("({},{}):({},1) must fit in a 64-bit address", view.rows, view.cols, view.ld),
            },
            "the last row would lie outside the allocation",
            "allocate (M-1)*ld + N elements, or pass a smaller shape",
        )),
    }
}

fn check_overlap(plan: &Plan, views: &[ViewRef], found: &mut Vec<Diagnostic>) {
    let operands = plan.operands();
    for (i, (out, ov)) in operands.iter().zip(views).enumerate() {
        if ov.access != Access::Write {
            continue;
        }
        for (j, (other, xv)) in operands.iter().zip(views).enumerate() {
            if i == j || (xv.access == Access::Write && j < i) || !overlap(ov, xv) {
                continue;
            }
            found.push(plan.diagnostic(
                Code::ViewOverlap,
                format!("{} = {ov} shares memory with {} = {xv}", out.name, other.name),
                "an output that shares no memory with another tensor".into(),
                "threads write it while others still read, so the result would depend on their order",
                "write to memory of its own",
            ));
        }
    }
}

/// Whether two row-major matrices share a byte. Exact where both have the same pitch in bytes; otherwise true as soon as
/// the spans meet.
fn overlap(a: &ViewRef, b: &ViewRef) -> bool {
    let (Some(a_end), Some(b_end)) = (a.end(), b.end()) else { return true };
    if a_end <= b.ptr || b_end <= a.ptr {
        return false;
    }
    let pitch = |v: &ViewRef| (v.ld as u64) * v.dtype.bytes().0;
    let width = |v: &ViewRef| (v.cols as u64) * v.dtype.bytes().0;
    if pitch(a) != pitch(b) {
        return true;
    }
    // Column ranges on the common pitch: [0, width(a)) against [shift, shift + width(b)) modulo the pitch.
    let shift =
        if b.ptr >= a.ptr { (b.ptr - a.ptr) % pitch(a) } else { (pitch(a) - (a.ptr - b.ptr) % pitch(a)) % pitch(a) };
    shift < width(a) || shift + width(b) > pitch(a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::units::Elements;

    fn view(ptr: u64, rows: i64, cols: i64, ld: i64) -> ViewRef {
        ViewRef { dtype: DType::F16, ptr, available: Elements(1 << 20), rows, cols, ld, access: Access::Read }
    }

    /// The definition: some element of one shares a byte with some element of the other.
    fn overlap_by_elements(a: &ViewRef, b: &ViewRef) -> bool {
        let bytes = |v: &ViewRef| -> std::collections::BTreeSet<u64> {
            let at = |i: i64, j: i64| v.ptr + 2 * (i * v.ld + j) as u64;
            (0..v.rows).flat_map(|i| (0..v.cols).flat_map(move |j| [at(i, j), at(i, j) + 1])).collect()
        };
        !bytes(a).is_disjoint(&bytes(b))
    }

    #[test]
    fn overlap_is_exact_on_a_common_pitch_and_safe_elsewhere() {
        let a = view(1000, 3, 4, 8);
        for delta in -70_i64..70 {
            for (rows, cols, ld) in [(1, 1, 8), (2, 4, 8), (3, 8, 8), (2, 3, 5)] {
                let b = view((1000 + 2 * delta) as u64, rows, cols, ld);
                let truth = overlap_by_elements(&a, &b);
                assert!(overlap(&a, &b) || !truth, "{a} and {b} share memory");
                // A single row has no pitch of its own: the answer there may be cautious.
                if ld == 8 && rows > 1 {
                    let common_rows = truth || !overlap(&a, &b) || a.end() > Some(b.ptr);
                    assert!(common_rows, "{a} and {b} do not share memory");
                }
            }
        }
        assert!(!overlap(&a, &view(1000 + 2 * 4, 3, 4, 8)), "left and right half of one buffer");
    }
}

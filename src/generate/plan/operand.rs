//! The tensors of a kernel.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::name::Name;
use crate::dtype::DType;
use crate::view::{Access, ViewLayout, ViewRef};

/// The stride along one mode of a tensor that a kernel was generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModeStride {
    /// Neighbours are neighbours in memory: stride 1.
    #[serde(rename = "1")]
    Unit,
    /// One element stands for all: stride 0.
    #[serde(rename = "0")]
    Broadcast,
    /// Any stride, known at launch.
    #[serde(rename = "?")]
    Dynamic,
}

impl fmt::Display for ModeStride {
    /// As in CuTe's layouts: `1`, `0`, and `?` for a stride that is known at launch only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ModeStride::Unit => "1",
            ModeStride::Broadcast => "0",
            ModeStride::Dynamic => "?",
        })
    }
}

/// A tensor of the kernel, in argument order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operand {
    /// Its name in the emitted text: `A` for `mA`.
    #[serde(deserialize_with = "crate::plan::name::interned")]
    pub name: Name,
    /// The field of the parameter struct that holds its address.
    pub param: String,
    /// Its element type.
    pub dtype: DType,
    /// Whether the kernel reads or writes it.
    pub access: Access,
    /// Its stride along each mode.
    pub strides: Vec<ModeStride>,
    /// Whether it may be the very memory of an output, element for element.
    pub in_place: bool,
}

impl Operand {
    /// One whose address stands in the field of its name, which is apart from every output.
    pub fn new(name: &'static str, dtype: DType, access: Access, strides: &[ModeStride]) -> Self {
        let (param, strides) = (name.to_ascii_lowercase(), strides.to_vec());
        Self { name, param, dtype, access, strides, in_place: false }
    }

    /// Whether vectors of `vec` elements at multiples of `vec` along the contiguous mode are aligned, at every coordinate of the
    /// other modes.
    pub(crate) fn aligned(&self, view: &ViewRef, vec: i64) -> bool {
        let bytes = view.dtype.bytes().0 * vec.unsigned_abs();
        let modes = self.strides.iter().zip(view.layout.stride()).zip(view.layout.shape());
        let mut steps = modes.filter(|((want, _), extent)| **want == ModeStride::Dynamic && **extent > 1);
        view.ptr.is_multiple_of(bytes) && steps.all(|((_, stride), _)| stride % vec == 0)
    }

    /// Its strides in CuTe notation: `(?,1)` for a row-major matrix.
    pub fn stride_text(&self) -> String {
        let modes: Vec<String> = self.strides.iter().map(ToString::to_string).collect();
        if let [one] = &modes[..] { one.clone() } else { format!("({})", modes.join(",")) }
    }

    /// A layout of these strides for a shape: without gaps, the contiguous mode innermost and the others from the last to
    /// the first; `pad` elements instead of the innermost extent lie between its neighbours. `None` where the ranks differ,
    /// `pad` is smaller than the extent, or the strides overflow.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::recipe::{ElementwiseAdd, Recipe};
    ///
    /// let plan = ElementwiseAdd::default().plan(&Targets::default())?;
    /// let layout = |pad| plan.operands()[0].layout(&[3, 12], pad).map(|l| l.to_string());
    /// assert_eq!(layout(None).as_deref(), Some("(3,12):(12,1)"));
    /// assert_eq!(layout(Some(16)).as_deref(), Some("(3,12):(16,1)"));
    /// # Ok::<(), cutemplate::diagnostic::PlanError>(())
    /// ```
    pub fn layout(&self, shape: &[i64], pad: Option<i64>) -> Option<ViewLayout> {
        if shape.len() != self.strides.len() {
            return None;
        }
        let unit = self.strides.iter().position(|s| *s == ModeStride::Unit);
        let others = (0..shape.len()).rev().filter(|i| Some(*i) != unit && self.strides[*i] != ModeStride::Broadcast);
        let mut stride = vec![0; shape.len()];
        let mut next = 1_i64;
        for (place, mode) in unit.into_iter().chain(others).enumerate() {
            stride[mode] = next;
            let extent = match pad {
                Some(pad) if place == 0 => Some(pad).filter(|pad| *pad >= shape[mode])?,
                _ => shape[mode],
            };
            next = next.checked_mul(extent)?;
        }
        ViewLayout::strided(shape, &stride)
    }
}

//! The host's rule of a launch: parameters, grids and workspace, as expressions of integers. They are evaluated here,
//! printed as the host side of the text, and stored in a bundle.

use serde::{Deserialize, Serialize};

use super::bind::BoundMap;
use super::demand::Demand;
use super::given::{Given, Merging, Tensors};
use super::params::{ParamStruct, ParamType, ParamValue};
use crate::arch::Arch;
use crate::dtype::{bf16, f16};
use crate::int::{Int, Steps};
use crate::tiling::{MOST_MAP_MODES, MapSwizzle, MapType, TensorMapSpec};
use crate::units::Bytes;
use crate::view::ViewRef;

/// The contents of a tensor map, the contiguous mode first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapRule {
    /// Which parameter.
    pub param: usize,
    /// Whether there is a map.
    pub when: Int,
    /// The element type.
    pub dtype: MapType,
    /// Whether it is of the workspace.
    pub in_workspace: Int,
    /// Address of the first element; in the workspace its offset, in bytes.
    pub address: Int,
    /// Extents, in elements, one for each mode.
    pub dims: Vec<Int>,
    /// Strides of all modes but the first, in bytes.
    pub strides: Vec<Int>,
    /// Extents of the box, in elements, likewise.
    pub extents: Vec<Int>,
    /// How rows of a box are swizzled.
    pub swizzle: MapSwizzle,
}

impl MapRule {
    /// `Some(None)` where there is none.
    fn bound(&self, params: &ParamStruct, values: &[i64]) -> Option<Option<BoundMap>> {
        if self.when.eval(values)? == 0 {
            return Some(None);
        }
        let mut spec = TensorMapSpec {
            address: self.address.eval(values)?.cast_unsigned(),
            dtype: self.dtype,
            rank: u32::try_from(self.dims.len()).ok()?,
            dims: [1; MOST_MAP_MODES],
            strides: [0; MOST_MAP_MODES - 1],
            extents: [1; MOST_MAP_MODES],
            swizzle: self.swizzle,
        };
        for (slot, dim) in spec.dims.iter_mut().zip(&self.dims) {
            *slot = dim.eval(values)?.cast_unsigned();
        }
        for (slot, extent) in spec.extents.iter_mut().zip(&self.extents) {
            *slot = u32::try_from(extent.eval(values)?).ok()?;
        }
        for (slot, stride) in spec.strides.iter_mut().zip(&self.strides) {
            *slot = stride.eval(values)?.cast_unsigned();
        }
        let param_offset = params.fields().get(self.param).filter(|field| field.ty == ParamType::TensorMap)?.offset;
        let in_workspace = self.in_workspace.eval(values)? != 0;
        Some(Some(BoundMap { spec, in_workspace, param_offset }))
    }
}

/// The grid of an entry: whether there is anything to do, and its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridRule {
    /// Whether there is anything to do.
    pub when: Int,
    /// Blocks along x, y, z.
    pub blocks: [Int; 3],
    /// Whether it had better begin while the kernel before it ends, where its entry can; always where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlaps: Option<Int>,
    /// Bytes of dynamic shared memory of a block, where they are not always those of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Int>,
    /// Threads of a block along x, y and z, where they are not always those of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<[Int; 3]>,
}

/// The error for numbers that are too large.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// What fits.
    pub required: String,
    /// Why.
    pub because: String,
    /// What to do.
    pub help: String,
}

/// A grid of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) blocks: [u32; 3],
    /// Whether it had better begin while the kernel before it ends.
    pub(crate) overlaps: bool,
    /// Bytes of dynamic shared memory of a block, where they are not those of the entry.
    pub(crate) shared: Option<u32>,
    /// Threads of a block, where they are not those of the entry.
    pub(crate) threads: Option<[u32; 3]>,
}

/// Grids and parameter values of one launch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Geometry {
    /// That of each entry of the plan, which run one after the other; `None` for an entry that has nothing to do.
    pub(crate) grids: Vec<Option<Grid>>,
    /// The parameters, in the order of the fields; whoever launches replaces that of the workspace.
    pub(crate) values: Vec<ParamValue>,
    /// What the tensor maps among them say.
    pub(crate) maps: Vec<BoundMap>,
    /// Memory for what one entry leaves for the next. Where it is not 0, the field [`WORKSPACE`](super::WORKSPACE) holds its address.
    pub(crate) workspace: Bytes,
}

/// The rule of a launch: from views and scalars to parameters, grids and workspace. The first values are the parameters, with any value for parameters that the caller does not
/// give.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Modes that the kernel takes as one.
    pub merging: Option<Merging>,
    /// Further inputs: the values behind those of the parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Given>,
    /// What a launch has to meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<Demand>,
    /// The parameters that the caller does not give.
    pub derived: Vec<Option<Int>>,
    /// Values, and what they have to be.
    pub steps: Steps,
    /// Contents of the tensor maps.
    pub maps: Vec<MapRule>,
    /// One for each entry.
    pub grids: Vec<GridRule>,
    /// Bytes of memory for what one entry leaves for the next; the parameter `workspace` holds its address.
    pub workspace: Int,
    /// The error where the numbers are too large.
    pub reach: Reach,
}

impl Rule {
    /// The rule of these parameters, without grids; `reach` is the error where numbers do not fit.
    pub fn new(params: &ParamStruct, reach: Reach) -> Self {
        let mut rule = Self { derived: vec![None; params.fields().len()], reach, ..Self::default() };
        for field in params.fields() {
            rule.steps.input(&field.name);
        }
        rule
    }

    /// The number of a parameter.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.steps.names.iter().take(self.derived.len()).position(|known| known == name)
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// The kernel has no parameter of that name: the text says which ones it has.
    #[track_caller]
    pub fn param(&self, name: &str) -> Int {
        Int::Value(self.known(name))
    }

    /// The value of a parameter that only some kernels have, such as the number of batches: 1 where this one has none.
    pub fn param_or_one(&self, name: &str) -> Int {
        self.index(name).map_or(Int::Const(1), Int::Value)
    }

    /// Gives a parameter a value that follows from others.
    ///
    /// # Panics
    /// The kernel has no parameter of that name: the text says which ones it has.
    #[track_caller]
    pub fn derive(&mut self, name: &str, value: Int) {
        let index = self.known(name);
        self.derived[index] = Some(value);
    }

    /// Does so where the kernel has such a parameter.
    pub fn derive_if_any(&mut self, name: &str, value: Int) {
        if self.index(name).is_some() {
            self.derive(name, value);
        }
    }

    #[track_caller]
    fn known(&self, name: &str) -> usize {
        let known = &self.steps.names[..self.derived.len()];
        self.index(name).unwrap_or_else(|| panic!("the kernel has no parameter `{name}`; it has {}", known.join(", ")))
    }

    /// Launches the next entry with these blocks, if there is something to do.
    pub fn grid(&mut self, when: Int, blocks: [Int; 3]) {
        for (blocks, most) in blocks.iter().zip([Arch::MAX_GRID_X, Arch::MAX_GRID_YZ, Arch::MAX_GRID_YZ]) {
            self.steps.require(blocks.clone().at_most(most as i64), "a grid has no more blocks");
        }
        self.grids.push(GridRule { when, blocks, overlaps: None, shared: None, threads: None });
    }

    /// The last grid had better begin while the kernel before it ends only where this holds.
    pub fn overlaps_where(&mut self, condition: Int) {
        if let Some(grid) = self.grids.last_mut().filter(|_| condition != Int::Const(1)) {
            grid.overlaps = Some(condition);
        }
    }

    /// All values for these tensors; `None` where the kernel's numbers do not reach. `Err` where they are not the kernel's.
    pub(crate) fn values(
        &self,
        params: &ParamStruct,
        views: &[ViewRef],
        scalars: &[f64],
    ) -> Result<Option<Vec<i64>>, NotItsTensors> {
        if params.fields().len() != self.derived.len() {
            return Err(NotItsTensors);
        }
        let tensors = Tensors::new(self.merging.as_ref(), views).ok_or(NotItsTensors)?;
        let given = params.fields().iter().map(|field| &field.given).chain(&self.inputs);
        let inputs = given.map(|given| given.integer(&tensors, scalars));
        Ok(self.steps.eval(&inputs.collect::<Option<Vec<_>>>().ok_or(NotItsTensors)?))
    }

    /// Grids and parameters for these tensors. Integers are refused where the parameter has fewer bits.
    pub(crate) fn geometry(
        &self,
        params: &ParamStruct,
        views: &[ViewRef],
        scalars: &[f64],
    ) -> Result<Option<Geometry>, NotItsTensors> {
        Ok(self.values(params, views, scalars)?.and_then(|values| self.of_values(params, &values, scalars)))
    }

    fn of_values(&self, params: &ParamStruct, values: &[i64], scalars: &[f64]) -> Option<Geometry> {
        let mut out = Vec::with_capacity(self.derived.len());
        for (index, (field, derived)) in params.fields().iter().zip(&self.derived).enumerate() {
            let value = derived.as_ref().map_or(values.get(index).copied(), |derived| derived.eval(values))?;
            let scalar = || match field.given {
                Given::Scalar(index) => scalars.get(index).copied(),
                _ => None,
            };
            let number = || if let Given::Scalar(_) = field.given { scalar() } else { Some(value as f64) };
            out.push(match field.ty {
                ParamType::ConstPtr | ParamType::MutPtr => ParamValue::Ptr(value.cast_unsigned()),
                ParamType::I32 if matches!(field.given, Given::Scalar(_)) => ParamValue::I32(scalar()? as i32),
                ParamType::I32 => ParamValue::I32(i32::try_from(value).ok()?),
                ParamType::I64 => ParamValue::I64(value),
                ParamType::F32 => ParamValue::F32(scalar()? as f32),
                ParamType::F64 => ParamValue::F64(scalar()?),
                ParamType::U8 => ParamValue::U8(number()? as u8),
                ParamType::U16 => ParamValue::U16(number()? as u16),
                ParamType::F16 => ParamValue::U16(f16::from_f64(scalar()?).to_bits()),
                ParamType::Bf16 => ParamValue::U16(bf16::from_f64(scalar()?).to_bits()),
                ParamType::TensorMap => ParamValue::TensorMap,
            });
        }
        let maps: Vec<Option<BoundMap>> =
            self.maps.iter().map(|map| map.bound(params, values)).collect::<Option<_>>()?;
        let blocks = |of: &Int| u32::try_from(of.eval(values)?).ok();
        let grid = |rule: &GridRule| {
            if rule.when.eval(values)? == 0 {
                return Some(None);
            }
            let three = |[x, y, z]: &[Int; 3]| Some([blocks(x)?, blocks(y)?, blocks(z)?]);
            let overlaps = rule.overlaps.as_ref().map_or(Some(1), |of| of.eval(values))? != 0;
            let shared = match &rule.shared {
                Some(of) => Some(blocks(of)?),
                None => None,
            };
            let threads = match &rule.threads {
                Some(of) => Some(three(of)?),
                None => None,
            };
            Some(Some(Grid { blocks: three(&rule.blocks)?, overlaps, shared, threads }))
        };
        let workspace = Bytes(u64::try_from(self.workspace.eval(values)?).ok()?);
        let grids = self.grids.iter().map(grid).collect::<Option<_>>()?;
        Some(Geometry { grids, values: out, maps: maps.into_iter().flatten().collect(), workspace })
    }
}

/// Parameters of another rule, or views that they cannot be read off: a defect, where the views passed the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotItsTensors;

#[path = "rule/reach.rs"]
mod reach;
#[cfg(test)]
#[path = "rule/tests.rs"]
mod tests;

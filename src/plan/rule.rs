//! What follows on the host from what a launch is given: parameters, grids, workspace. Said once, as expressions of integers that
//! are evaluated here and printed as the host side of the text.

use super::params::{Param, ParamStruct, ParamType, ParamValue};
use super::{Geometry, WORKSPACE};
use crate::arch::Arch;
use crate::tiling::TensorMapSpec;
use crate::units::Bytes;

/// An operation on 64-bit integers; what is true is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum IntOp {
    Or,
    And,
    Equal,
    Less,
    AtMost,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    CeilDiv,
    Min,
    Max,
}

impl IntOp {
    /// `None` where the result is none of 64 bits.
    fn apply(self, a: i64, b: i64) -> Option<i64> {
        Some(match self {
            IntOp::Or => (a != 0 || b != 0).into(),
            IntOp::And => (a != 0 && b != 0).into(),
            IntOp::Equal => (a == b).into(),
            IntOp::Less => (a < b).into(),
            IntOp::AtMost => (a <= b).into(),
            IntOp::Add => a.checked_add(b)?,
            IntOp::Sub => a.checked_sub(b)?,
            IntOp::Mul => a.checked_mul(b)?,
            IntOp::Div => a.checked_div(b)?,
            IntOp::Rem => a.checked_rem(b)?,
            IntOp::CeilDiv => a.checked_div(b)? + i64::from(a.checked_rem(b)? != 0),
            IntOp::Min => a.min(b),
            IntOp::Max => a.max(b),
        })
    }
}

/// An integer that a launch computes, on extents, strides and addresses that are not negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Int {
    Const(i64),
    /// One that is given or was computed before, by its number.
    Value(usize),
    Binary(IntOp, Box<[Int; 2]>),
    /// A condition, and what holds where it is true, and elsewhere.
    Select(Box<[Int; 3]>),
}

impl From<i64> for Int {
    fn from(value: i64) -> Self {
        Int::Const(value)
    }
}

impl Int {
    pub(crate) fn op(self, op: IntOp, other: impl Into<Int>) -> Int {
        let other = other.into();
        match (op, &self, &other) {
            (IntOp::And, Int::Const(1), _) => other,
            (IntOp::Or, _, Int::Const(1)) => other,
            (IntOp::And, _, Int::Const(1)) | (IntOp::Mul | IntOp::CeilDiv, _, Int::Const(1)) => self,
            (_, Int::Const(a), Int::Const(b)) if op.apply(*a, *b).is_some() => {
                op.apply(*a, *b).map_or(other, Int::Const)
            }
            _ => Int::Binary(op, Box::new([self, other])),
        }
    }

    pub(crate) fn ceil_div(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::CeilDiv, other)
    }

    pub(crate) fn is(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::Equal, other)
    }

    pub(crate) fn less(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::Less, other)
    }

    pub(crate) fn at_most(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::AtMost, other)
    }

    pub(crate) fn and(self, other: impl Into<Int>) -> Int {
        self.op(IntOp::And, other)
    }

    /// Whether it is a multiple.
    pub(crate) fn divides_by(self, other: i64) -> Int {
        if other == 1 { Int::Const(1) } else { (self % other).is(0) }
    }

    /// `yes` where this is true, and `no` elsewhere.
    pub(crate) fn select(self, yes: impl Into<Int>, no: impl Into<Int>) -> Int {
        Int::Select(Box::new([self, yes.into(), no.into()]))
    }

    /// Whether all hold.
    pub(crate) fn all(conditions: impl IntoIterator<Item = Int>) -> Int {
        conditions.into_iter().fold(Int::Const(1), Int::and)
    }

    /// Its value, where these are known.
    pub(crate) fn eval(&self, values: &[i64]) -> Option<i64> {
        match self {
            Int::Const(value) => Some(*value),
            Int::Value(index) => values.get(*index).copied(),
            Int::Binary(op, sides) => op.apply(sides[0].eval(values)?, sides[1].eval(values)?),
            Int::Select(of) => of[if of[0].eval(values)? != 0 { 1 } else { 2 }].eval(values),
        }
    }
}

macro_rules! operators {
    ($($name:ident $method:ident)*) => {$(
        impl<T: Into<Int>> core::ops::$name<T> for Int {
            type Output = Int;
            fn $method(self, other: T) -> Int {
                self.op(IntOp::$name, other)
            }
        }
    )*};
}

operators!(Add add Sub sub Mul mul Div div Rem rem);

/// A line of what is computed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The value of that number.
    Let(usize, Int),
    /// What has to hold, and why.
    Require(Int, &'static str),
}

/// Values with names, each of which follows from those before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Steps {
    pub(crate) names: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

impl Steps {
    /// A value that is known before.
    pub(crate) fn input(&mut self, name: &str) -> Int {
        self.names.push(name.to_owned());
        Int::Value(self.names.len() - 1)
    }

    /// Computes a value.
    pub(crate) fn set(&mut self, name: &str, value: Int) -> Int {
        let at = self.input(name);
        if let Int::Value(index) = at {
            self.steps.push(Step::Let(index, value));
        }
        at
    }

    /// The last value of that name; 0 where there is none.
    pub(crate) fn find(&self, name: &str) -> Int {
        self.names.iter().rposition(|known| known == name).map_or(Int::Const(0), Int::Value)
    }

    /// The same among all values.
    pub(crate) fn value(&self, name: &str, values: &[i64]) -> Option<i64> {
        self.find(name).eval(values)
    }

    /// Refuses a launch for which it does not hold.
    pub(crate) fn require(&mut self, condition: Int, because: &'static str) {
        let step = Step::Require(condition, because);
        if step != Step::Require(Int::Const(1), because) && !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }

    /// All values, where the first are these; `None` where something that is required does not hold.
    pub(crate) fn eval(&self, inputs: &[i64]) -> Option<Vec<i64>> {
        let mut values = inputs.to_vec();
        values.resize(self.names.len(), 0);
        for step in &self.steps {
            match step {
                Step::Let(index, value) => values[*index] = value.eval(&values)?,
                Step::Require(condition, _) => (condition.eval(&values)? != 0).then_some(())?,
            }
        }
        Some(values)
    }
}

/// What a tensor map says, the contiguous mode first: the type of elements, the box and the swizzle are those of the template, all
/// else follows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MapRule {
    /// Which parameter.
    pub(crate) param: usize,
    /// Whether there is a map.
    pub(crate) when: Int,
    pub(crate) template: TensorMapSpec,
    pub(crate) address: Int,
    /// Extents, in elements, as many as it has modes.
    pub(crate) dims: Vec<Int>,
    /// Of the modes behind the first, in bytes.
    pub(crate) strides: Vec<Int>,
}

impl MapRule {
    fn spec(&self, values: &[i64]) -> Option<Option<TensorMapSpec>> {
        if self.when.eval(values)? == 0 {
            return Some(None);
        }
        let mut spec = TensorMapSpec { address: self.address.eval(values)?.cast_unsigned(), ..self.template };
        for (slot, dim) in spec.dims.iter_mut().zip(&self.dims) {
            *slot = dim.eval(values)?.cast_unsigned();
        }
        for (slot, stride) in spec.strides.iter_mut().zip(&self.strides) {
            *slot = stride.eval(values)?.cast_unsigned();
        }
        Some(Some(spec))
    }
}

/// A grid: whether there is anything to do, and its blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GridRule {
    pub(crate) when: Int,
    pub(crate) blocks: [Int; 3],
}

/// What follows from what a launch is given: parameters, of which the first values are what is given of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) params: ParamStruct,
    /// What is not given of them.
    pub(crate) derived: Vec<Option<Int>>,
    pub(crate) steps: Steps,
    pub(crate) maps: Vec<MapRule>,
    /// One for each entry.
    pub(crate) grids: Vec<GridRule>,
    /// Bytes.
    pub(crate) workspace: Int,
}

impl Rule {
    pub(crate) fn new(params: &ParamStruct) -> Self {
        let mut steps = Steps::default();
        for field in params.fields() {
            steps.input(&field.name);
        }
        let derived = vec![None; params.fields().len()];
        Self { params: params.clone(), derived, steps, maps: Vec::new(), grids: Vec::new(), workspace: Int::Const(0) }
    }

    /// The value of a parameter; 1 for one that there is not, such as the batches of a kernel for one product.
    pub(crate) fn param(&self, name: &str) -> Int {
        let found = self.params.fields().iter().position(|field| field.name == name);
        found.map_or(Int::Const(1), Int::Value)
    }

    /// Gives a parameter, where there is one of that name, a value that follows.
    pub(crate) fn derive(&mut self, name: &str, value: Int) {
        if let Int::Value(index) = self.param(name) {
            self.derived[index] = Some(value);
        }
    }

    /// Launches the next entry with so many blocks where there is something to do.
    pub(crate) fn grid(&mut self, when: Int, blocks: [Int; 3]) {
        for (blocks, most) in blocks.iter().zip([Arch::MAX_GRID_X, Arch::MAX_GRID_YZ, Arch::MAX_GRID_YZ]) {
            self.steps.require(blocks.clone().at_most(most as i64), "a grid has no more blocks");
        }
        self.grids.push(GridRule { when, blocks });
    }

    /// The parameters that a launch is given.
    pub(crate) fn given(&self) -> impl Iterator<Item = usize> {
        let fields = self.params.fields().iter().enumerate();
        let follows = |i: usize, field: &Param| {
            field.name == WORKSPACE || field.ty == ParamType::TensorMap || self.derived[i].is_some()
        };
        fields.filter(move |(i, field)| !follows(*i, field)).map(|(i, _)| i)
    }

    /// All values for parameters, of which those that are not given may be any; `None` where the kernel's numbers do not reach.
    pub(crate) fn values(&self, params: &[ParamValue]) -> Option<Vec<i64>> {
        let inputs = params.iter().map(|value| match *value {
            ParamValue::Ptr(address) => address.cast_signed(),
            ParamValue::I32(value) => value.into(),
            ParamValue::I64(value) => value,
            ParamValue::F32(_) | ParamValue::F64(_) | ParamValue::TensorMap(_) => 0,
        });
        self.steps.eval(&inputs.collect::<Vec<_>>())
    }

    /// Grids and parameters, where some are given and those that are not may be any. Integers are given as 64 bits, and are
    /// refused where the parameter has fewer.
    pub(crate) fn geometry(&self, params: &[ParamValue]) -> Option<Geometry> {
        let values = self.values(params)?;
        let mut params = params.to_vec();
        for ((slot, field), (index, derived)) in
            params.iter_mut().zip(self.params.fields()).zip(self.derived.iter().enumerate())
        {
            let value = derived.as_ref().map_or(Some(values[index]), |derived| derived.eval(&values))?;
            match field.ty {
                ParamType::I32 => *slot = ParamValue::I32(i32::try_from(value).ok()?),
                ParamType::I64 => *slot = ParamValue::I64(value),
                _ => {}
            }
        }
        for map in &self.maps {
            params[map.param] = ParamValue::TensorMap(map.spec(&values)?);
        }
        let blocks = |of: &Int| u32::try_from(of.eval(&values)?).ok();
        let grid = |rule: &GridRule| match rule.when.eval(&values)? {
            0 => Some(None),
            _ => Some(Some([blocks(&rule.blocks[0])?, blocks(&rule.blocks[1])?, blocks(&rule.blocks[2])?])),
        };
        let workspace = Bytes(u64::try_from(self.workspace.eval(&values)?).ok()?);
        Some(Geometry { grids: self.grids.iter().map(grid).collect::<Option<_>>()?, values: params, workspace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D rows of a matrix, `whole` where they are multiples of 8, and a second kernel over parts.
    fn rule() -> Rule {
        let params = ParamStruct::new(&[
            ("d", ParamType::MutPtr, "D"),
            (WORKSPACE, ParamType::MutPtr, "parts"),
            ("ldd", ParamType::I64, "stride"),
            ("m", ParamType::I32, "M"),
            ("whole", ParamType::I32, "1 where"),
            ("alpha", ParamType::F32, "scale"),
        ]);
        let mut rule = Rule::new(&params);
        let [d, ldd, m] = ["d", "ldd", "m"].map(|name| rule.param(name));
        rule.derive("whole", d.divides_by(16).and(ldd.divides_by(8)));
        let tiles = rule.steps.set("tiles", m.clone().ceil_div(128));
        rule.grid(Int::from(0).less(m.clone()), [tiles.clone(), Int::from(1), Int::from(1)]);
        rule.grid(Int::from(1).less(tiles.clone()), [Int::from(1), tiles.clone(), Int::from(1)]);
        rule.workspace = tiles * 64;
        rule
    }

    fn given(d: u64, ldd: i64, m: i64) -> [ParamValue; 6] {
        let any = ParamValue::I64(7);
        [ParamValue::Ptr(d), ParamValue::Ptr(0), ParamValue::I64(ldd), ParamValue::I64(m), any, ParamValue::F32(0.5)]
    }

    #[test]
    fn parameters_and_grids_follow_from_what_is_given() {
        let geometry = rule().geometry(&given(32, 24, 300)).expect("it fits");
        assert_eq!(geometry.grids, [Some([3, 1, 1]), Some([1, 3, 1])]);
        assert_eq!(geometry.workspace, Bytes(192));
        let expected = [
            ParamValue::Ptr(32),
            ParamValue::Ptr(0),
            ParamValue::I64(24),
            ParamValue::I32(300),
            ParamValue::I32(1),
            ParamValue::F32(0.5),
        ];
        assert_eq!(geometry.values, expected);
        let geometry = rule().geometry(&given(8, 24, 0)).expect("it fits");
        assert_eq!((&geometry.grids[..], geometry.values[4]), (&[None, None][..], ParamValue::I32(0)));
    }

    #[test]
    fn what_the_numbers_do_not_reach_is_refused() {
        assert!(rule().geometry(&given(0, 8, 65535 * 128)).is_some());
        assert!(rule().geometry(&given(0, 8, 65535 * 128 + 1)).is_none(), "blocks along y");
        assert!(rule().geometry(&given(0, 8, 1 << 40)).is_none(), "32 bits");
        let mut steps = Steps::default();
        let n = steps.input("n");
        steps.set("square", n.clone() * n);
        assert_eq!(steps.eval(&[1 << 31]), Some(vec![1 << 31, 1 << 62]));
        assert_eq!(steps.eval(&[1 << 32]), None, "64 bits");
    }
}

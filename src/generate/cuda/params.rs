//! The parameters of an entry, laid out as C lays them out: flat fields for a launch, and what the compiler has to tell of each.

use super::entry::{Operand, Param};
use super::layout::Declared;
use crate::dtype::DType;
use crate::plan::own::{Known, KnownType};
use crate::plan::{Field, Given, ParamType, WORKSPACE};
use crate::view::Access;

/// The meaning of a field with the low half of an integer of 64 bits.
pub(crate) const LOW: &str = "the low 32 bits of a run-time scalar";

impl Known {
    /// The fields of a struct.
    pub(crate) fn fields(&self) -> Option<&[Known]> {
        match &self.is {
            KnownType::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// As C++ would write it: `f16* x`, `f32 const* cos`, `int32_t rows`.
    pub(crate) fn ty(&self) -> String {
        match &self.is {
            KnownType::Pointer { halves: true, writes: true, .. } => "int64_t*".to_owned(),
            KnownType::Pointer { halves: true, .. } => "int64_t const*".to_owned(),
            KnownType::Null => "null".to_owned(),
            KnownType::Pointer { dtype, writes: true, .. } => format!("{dtype}*"),
            KnownType::Pointer { dtype, .. } => format!("{dtype} const*"),
            KnownType::Workspace => "void*".to_owned(),
            KnownType::Integer => format!("int{}_t", 8 * self.size),
            KnownType::Float if self.size == 4 => "float".to_owned(),
            KnownType::Float => "double".to_owned(),
            KnownType::Half(dtype) => dtype.to_string(),
            KnownType::Struct(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|field| format!("{} {};", field.ty(), field.name)).collect();
                format!("struct {{ {} }}", fields.join(" "))
            }
        }
    }
}

/// How a field of the parameter struct gets its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// From the inputs of a launch, as the field says.
    Given,
    /// It is the value of an expression, called so.
    Value(String, String),
    /// The address of so many bytes.
    Workspace(String),
    /// Nothing: it fills a gap.
    Gap,
}

/// Laid out parameters.
#[derive(Debug, Default)]
pub(super) struct Flat<'a> {
    pub(super) fields: Vec<Field>,
    pub(super) sources: Vec<Source>,
    /// Offset and size of each parameter of the function.
    pub(super) params: Vec<[usize; 2]>,
    pub(super) known: Vec<Known>,
    pub(super) operands: Vec<&'a Operand>,
    /// The scalars: name, type, and the numbers of its one or two values.
    pub(super) scalars: Vec<(String, ParamType)>,
    /// Names of the values that a launch gives for the scalars.
    pub(super) scalar_values: Vec<String>,
    at: usize,
    gaps: usize,
}

impl<'a> Flat<'a> {
    pub(super) fn of(params: &'a [Param]) -> Self {
        let mut flat = Self::default();
        for param in params {
            let known = known(param);
            flat.align(known.align);
            flat.params.push([flat.at, known.size]);
            flat.known.push(known);
            flat.param(param);
        }
        flat
    }

    fn push(&mut self, name: String, ty: ParamType, doc: &str, given: Given, source: Source) {
        self.at += ty.bytes();
        self.fields.push((name, ty, doc.to_owned(), given));
        self.sources.push(source);
    }

    /// Fills up to a multiple, by the widest fields that fit.
    fn align(&mut self, to: usize) {
        while !self.at.is_multiple_of(to) {
            let fits = |ty: &ParamType| self.at.is_multiple_of(ty.bytes()) && ty.bytes() <= to - self.at % to;
            let ty = [ParamType::I32, ParamType::U16].into_iter().find(fits).unwrap_or(ParamType::U8);
            let name = format!("gap_{}", self.gaps);
            self.gaps += 1;
            self.push(name, ty, "fills a gap", Given::Follows, Source::Gap);
        }
    }

    fn param(&mut self, param: &'a Param) {
        match param {
            Param::Operand(operand) => {
                let writes = operand.access.writes();
                let ty = if writes { ParamType::MutPtr } else { ParamType::ConstPtr };
                let (tensor, doc) = (self.operands.len(), format!("the first element of {}", operand.name));
                self.operands.push(operand);
                self.push(operand.name.clone(), ty, &doc, Given::Address { tensor }, Source::Given);
            }
            Param::Value { name, ty, of } => {
                let source = Source::Value(name.clone(), of.clone());
                self.push(name.clone(), *ty, of, Given::Follows, source);
            }
            Param::Scalar { name, ty } => self.scalar(name, *ty),
            Param::Null { name } => {
                let source = Source::Value(name.clone(), "0".to_owned());
                self.push(name.clone(), ParamType::I64, "no address", Given::Follows, source);
            }
            Param::Workspace { bytes } => {
                let source = Source::Workspace(bytes.clone());
                self.push(WORKSPACE.to_owned(), ParamType::MutPtr, "memory of the launch", Given::Follows, source);
            }
            Param::Struct { fields, .. } => {
                for field in fields {
                    self.align(known(field).align);
                    self.param(field);
                }
                self.align(known(param).align);
            }
        }
    }

    /// An integer of 64 bits is given as its halves: the values of a launch are of f64, which holds 53 bits.
    fn scalar(&mut self, name: &str, ty: ParamType) {
        self.scalars.push((name.to_owned(), ty));
        let halves = if ty == ParamType::I64 { &["_low", "_high"][..] } else { &[""] };
        for half in halves {
            let field = format!("{name}{half}");
            let ty = if ty == ParamType::I64 { ParamType::I32 } else { ty };
            let given = Given::Scalar(self.scalar_values.len());
            self.scalar_values.push(field.clone());
            let doc = match *half {
                "_low" => LOW,
                "_high" => "the high 32 bits of a run-time scalar",
                _ => "a run-time scalar",
            };
            self.push(field, ty, doc, given, Source::Given);
        }
    }
}

fn known(param: &Param) -> Known {
    let of = |name: &str, bytes, is| Known { name: name.to_owned(), size: bytes, align: bytes, offset: 0, is };
    match param {
        Param::Operand(Operand { name, dtype, access, align, layout, .. }) => {
            let align = (*align).max(dtype.bytes().0) as usize;
            let halves = *dtype == DType::I32 && Declared::read(layout).is_ok_and(|layout| layout.is_of_pairs());
            of(name, 8, KnownType::Pointer { dtype: *dtype, writes: *access != Access::Read, align, halves })
        }
        Param::Null { name } => of(name, 8, KnownType::Null),
        Param::Value { name, ty, .. } | Param::Scalar { name, ty } => match ty {
            ParamType::F32 | ParamType::F64 => of(name, ty.bytes(), KnownType::Float),
            ParamType::F16 => of(name, 2, KnownType::Half(DType::F16)),
            ParamType::Bf16 => of(name, 2, KnownType::Half(DType::Bf16)),
            _ => of(name, ty.bytes(), KnownType::Integer),
        },
        Param::Workspace { .. } => of(WORKSPACE, 8, KnownType::Workspace),
        Param::Struct { name, fields } => {
            let (mut at, mut align, mut all) = (0_usize, 1, Vec::new());
            for field in fields {
                let field = known(field);
                let offset = at.next_multiple_of(field.align);
                at = offset + field.size;
                align = align.max(field.align);
                all.push(Known { offset, ..field });
            }
            let size = at.next_multiple_of(align);
            Known { name: name.clone(), size, align, offset: 0, is: KnownType::Struct(all) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Entry, Struct};
    use crate::dtype::DType;
    use crate::plan::ParamStruct;

    #[test]
    fn parameters_lie_where_c_puts_them() {
        let inner = Struct::new().scalar("a", ParamType::I32).scalar("b", ParamType::F64).scalar("c", ParamType::F32);
        let entry = Entry::new("f")
            .extent("n", "x.0")
            .structure("p", inner)
            .scalar("theta", ParamType::F32)
            .operand("x", DType::F16, Access::Read, "1")
            .scalar("seed", ParamType::I64)
            .scalar("last", ParamType::I32);
        let flat = Flat::of(&entry.params);
        assert_eq!(flat.params, [[0, 4], [8, 24], [32, 4], [40, 8], [48, 8], [56, 4]]);
        let fields = ParamStruct::new(flat.fields.clone());
        let offset = |name: &str| fields.field(name).map(|field| field.offset);
        let names = ["n", "a", "b", "c", "theta", "x", "seed_low", "seed_high", "last"];
        let offsets: Vec<usize> = names.iter().filter_map(|name| offset(name)).collect();
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 48, 52, 56]);
        assert_eq!(flat.scalar_values, ["a", "b", "c", "theta", "seed_low", "seed_high", "last"]);
    }
}

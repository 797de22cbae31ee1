//! The parameter struct of a kernel: described once here, emitted as a C header and as a Rust type.

use core::fmt;

use super::given::Given;
use super::operand::{ModeStride, Operand};
use super::problem_shape::ProblemShape;
use crate::diagnostic::debug_as_display;
use crate::dtype::DType;
use crate::expr::Compute;
use crate::view::Access;

/// The type of one field, the same in C and in Rust on every 64-bit platform that CUDA supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParamType {
    /// `void const*`: a tensor that the kernel reads.
    ConstPtr,
    /// `void*`: a tensor that the kernel writes.
    MutPtr,
    /// `int32_t`.
    I32,
    /// `int64_t`.
    I64,
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// `uint8_t`, or `bool`.
    U8,
    /// `uint16_t`.
    U16,
    /// `__half` of `cuda_fp16.h`.
    F16,
    /// `__nv_bfloat16` of `cuda_bf16.h`.
    Bf16,
    /// `CUtensorMap`: the tensor memory accelerator's description of a matrix.
    TensorMap,
}

impl ParamType {
    /// That of a run-time scalar of a function that is computed in this type.
    pub(crate) fn of(compute: Compute) -> Self {
        match compute {
            Compute::F32 => ParamType::F32,
            Compute::F64 => ParamType::F64,
            Compute::I32 => ParamType::I32,
        }
    }

    /// Its size.
    pub fn bytes(self) -> usize {
        match self {
            ParamType::TensorMap => 128,
            ParamType::ConstPtr | ParamType::MutPtr | ParamType::I64 | ParamType::F64 => 8,
            ParamType::I32 | ParamType::F32 => 4,
            ParamType::U16 | ParamType::F16 | ParamType::Bf16 => 2,
            ParamType::U8 => 1,
        }
    }

    /// Its alignment, which is its size. `CUtensorMap` is aligned to 64 bytes before CUDA 13 and to 128 from there on; here always
    /// to 128.
    pub fn align(self) -> usize {
        self.bytes()
    }

    /// The C spelling.
    pub fn c(self) -> &'static str {
        match self {
            ParamType::ConstPtr => "void const*",
            ParamType::MutPtr => "void*",
            ParamType::I32 => "int32_t",
            ParamType::I64 => "int64_t",
            ParamType::F32 => "float",
            ParamType::F64 => "double",
            ParamType::U8 => "uint8_t",
            ParamType::U16 => "uint16_t",
            ParamType::F16 => "__half",
            ParamType::Bf16 => "__nv_bfloat16",
            ParamType::TensorMap => "alignas(128) CUtensorMap",
        }
    }

    /// The Rust spelling. Device addresses are numbers to the host, so pointers are `u64`.
    pub fn rust(self) -> &'static str {
        match self {
            ParamType::ConstPtr | ParamType::MutPtr => "u64",
            ParamType::I32 => "i32",
            ParamType::I64 => "i64",
            ParamType::F32 => "f32",
            ParamType::F64 => "f64",
            ParamType::U8 => "u8",
            ParamType::U16 => "u16",
            ParamType::F16 => "::cutemplate::dtype::f16",
            ParamType::Bf16 => "::cutemplate::dtype::bf16",
            ParamType::TensorMap => "::cutemplate::tiling::TensorMap",
        }
    }
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its name, the same in both languages.
    pub name: String,
    /// Its type.
    pub ty: ParamType,
    /// Its meaning, with its unit.
    pub doc: String,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// The input of a launch that it holds.
    pub given: Given,
}

/// The value of one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamValue {
    /// A device or host address.
    Ptr(u64),
    /// A 32-bit integer.
    I32(i32),
    /// A 64-bit integer.
    I64(i64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// An 8-bit integer.
    U8(u8),
    /// A 16-bit integer, or the bits of a 16-bit float.
    U16(u16),
    /// A tensor map, which whoever launches encodes.
    TensorMap,
}

/// Name, type and meaning of a field, and the input of a launch that it holds: everything else follows.
pub type Field = (String, ParamType, String, Given);

/// A parameter struct with C layout.
#[derive(Clone, Default, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<Field>", into = "Vec<Field>")]
pub struct ParamStruct {
    fields: Vec<Param>,
    size: usize,
    align: usize,
}

/// Values do not match the fields of the struct they are packed into: a defect of the recipe, not of its user.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("parameter {index}: found {found:?}, required {required}")]
pub struct PackError {
    /// Which field.
    pub index: usize,
    /// The value given, if any.
    pub found: Option<Box<ParamValue>>,
    /// The type that the struct has there.
    pub required: String,
}

debug_as_display!(PackError);

impl From<Vec<Field>> for ParamStruct {
    fn from(fields: Vec<Field>) -> Self {
        Self::new(fields)
    }
}

impl From<ParamStruct> for Vec<Field> {
    fn from(params: ParamStruct) -> Self {
        params.fields.into_iter().map(|field| (field.name, field.ty, field.doc, field.given)).collect()
    }
}

impl ParamStruct {
    /// The field `param` that holds the address of the tensor `name`, which is the launch's view of this number.
    pub fn address_field(tensor: usize, [name, param]: [&str; 2], dtype: DType, access: Access) -> Field {
        let ty = if access == Access::Read { ParamType::ConstPtr } else { ParamType::MutPtr };
        (param.to_owned(), ty, format!("{name}, {dtype}"), Given::Address { tensor })
    }

    /// The fields that hold the run-time scalars of `what`, in the type that it is computed in.
    pub fn scalar_fields(names: &[String], compute: Compute, what: &str) -> impl Iterator<Item = Field> {
        let (ty, doc) = (ParamType::of(compute), format!("run-time scalar of the {what}"));
        names.iter().enumerate().map(move |(index, name)| (name.clone(), ty, doc.clone(), Given::Scalar(index)))
    }

    /// Lays the fields out as C does: each at the next multiple of its alignment, the size a multiple of the largest.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Self {
        let mut at = 0;
        let mut align = 1;
        let fields = fields.into_iter().map(|(name, ty, doc, given)| {
            let offset = usize::next_multiple_of(at, ty.align());
            at = offset + ty.bytes();
            align = align.max(ty.align());
            Param { name, ty, doc, offset, given }
        });
        let fields = fields.collect();
        Self { fields, size: at.next_multiple_of(align), align }
    }

    /// The usual fields: for each operand its address, `x`, and behind it the strides that a launch gives, `x_stride0` for the first
    /// mode; then the extents of the problem by their names in lower case, of 32 bits; then the run-time scalars, as `float`.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::plan::{ModeStride, Operand, ParamStruct, ProblemShape};
    /// use cutemplate::view::Access;
    ///
    /// let rows = [ModeStride::Dynamic, ModeStride::Unit];
    /// let x = Operand::new("X", DType::F32, Access::Write, &rows);
    /// let params = ParamStruct::of(&[x], &ProblemShape::of_one_shape(2, 1), &["eps".to_owned()]);
    /// let text: Vec<String> = params.fields().iter().map(|field| field.to_string()).collect();
    /// assert_eq!(text, ["void* x", "int64_t x_stride0", "int32_t m", "int32_t n", "float eps"]);
    /// ```
    pub fn of(operands: &[Operand], problem: &ProblemShape, scalars: &[String]) -> Self {
        let of_operand = |(tensor, operand): (usize, &Operand)| {
            let (param, strides) = (operand.param.clone(), operand.strides.clone());
            let address = Self::address_field(tensor, [operand.name, &param], operand.dtype, operand.access);
            let given = strides.into_iter().enumerate().filter(|(_, stride)| *stride == ModeStride::Dynamic);
            let stride = move |(mode, _): (usize, _)| {
                let doc = format!("elements from one coordinate of mode {mode} to the next");
                (format!("{param}_stride{mode}"), ParamType::I64, doc, Given::Stride { tensor, mode })
            };
            core::iter::once(address).chain(given.map(stride))
        };
        let extent = |(number, name): (usize, &String)| {
            let (tensor, mode) = problem.first_with(number)?;
            Some((name.to_lowercase(), ParamType::I32, format!("the extent {name}"), Given::Extent { tensor, mode }))
        };
        let scalar = |(index, name): (usize, &String)| {
            (name.clone(), ParamType::F32, "a run-time scalar".to_owned(), Given::Scalar(index))
        };
        let operands = operands.iter().enumerate().flat_map(of_operand);
        let extents = problem.extents().iter().enumerate().filter_map(extent);
        Self::new(operands.chain(extents).chain(scalars.iter().enumerate().map(scalar)))
    }

    /// The fields, in order.
    pub fn fields(&self) -> &[Param] {
        &self.fields
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Param> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// Those that a launch is given: the others follow from them.
    pub(crate) fn given(&self) -> impl Iterator<Item = (usize, &Param)> {
        self.fields.iter().enumerate().filter(|(_, field)| field.given != Given::Follows)
    }

    /// Whether it holds tensor maps, whose type `cuda.h` declares.
    pub fn has_tensor_maps(&self) -> bool {
        self.fields.iter().any(|field| field.ty == ParamType::TensorMap)
    }

    /// `sizeof`, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// `alignof`, in bytes.
    pub fn align(&self) -> usize {
        self.align
    }

    /// The bytes of the struct with the given values, padding zeroed, and zeros for tensor maps, which are encoded at
    /// launch.
    ///
    /// # Errors
    /// Where a value is missing, left over, or of another type than its field.
    pub fn pack(&self, values: &[ParamValue]) -> Result<Vec<u8>, PackError> {
        let mut bytes = vec![0_u8; self.size];
        for (index, field) in self.fields.iter().enumerate() {
            let value = values.get(index).copied();
            let slot = &mut bytes[field.offset..field.offset + field.ty.bytes()];
            match (field.ty, value) {
                (ParamType::ConstPtr | ParamType::MutPtr, Some(ParamValue::Ptr(v))) => {
                    slot.copy_from_slice(&v.to_ne_bytes());
                }
                (ParamType::I32, Some(ParamValue::I32(v))) => slot.copy_from_slice(&v.to_ne_bytes()),
                (ParamType::I64, Some(ParamValue::I64(v))) => slot.copy_from_slice(&v.to_ne_bytes()),
                (ParamType::F32, Some(ParamValue::F32(v))) => slot.copy_from_slice(&v.to_ne_bytes()),
                (ParamType::F64, Some(ParamValue::F64(v))) => slot.copy_from_slice(&v.to_ne_bytes()),
                (ParamType::U8, Some(ParamValue::U8(v))) => slot.copy_from_slice(&[v]),
                (ParamType::U16 | ParamType::F16 | ParamType::Bf16, Some(ParamValue::U16(v))) => {
                    slot.copy_from_slice(&v.to_ne_bytes());
                }
                (ParamType::TensorMap, Some(ParamValue::TensorMap)) => {}
                (_, found) => {
                    return Err(PackError { index, found: found.map(Box::new), required: field.to_string() });
                }
            }
        }
        match values.get(self.fields.len()) {
            None => Ok(bytes),
            found => Err(PackError {
                index: self.fields.len(),
                found: found.copied().map(Box::new),
                required: "no more fields".into(),
            }),
        }
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ty.c(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ParamStruct {
        ParamStruct::new([
            ("m".into(), ParamType::I32, "rows".into(), Given::Follows),
            ("a".into(), ParamType::ConstPtr, "A".into(), Given::Follows),
            ("alpha".into(), ParamType::F32, "scale".into(), Given::Follows),
        ])
    }

    #[test]
    fn fields_lie_where_c_puts_them() {
        let s = sample();
        let offsets: Vec<usize> = s.fields().iter().map(|f| f.offset).collect();
        assert_eq!((offsets, s.size(), s.align()), (vec![0, 8, 16], 24, 8));
    }

    #[test]
    fn packing_puts_each_value_at_its_offset_and_refuses_others() {
        let s = sample();
        let bytes = s.pack(&[ParamValue::I32(-2), ParamValue::Ptr(7), ParamValue::F32(0.5)]).expect("matches");
        assert_eq!(bytes[0..4], (-2_i32).to_ne_bytes());
        assert_eq!(bytes[8..16], 7_u64.to_ne_bytes());
        assert_eq!(bytes[16..20], 0.5_f32.to_ne_bytes());
        assert_eq!(s.pack(&[ParamValue::I64(1)]).map_err(|e| e.index), Err(0));
        assert_eq!(s.pack(&[ParamValue::I32(1), ParamValue::Ptr(1)]).map_err(|e| e.index), Err(2));
        let four = [ParamValue::I32(1), ParamValue::Ptr(1), ParamValue::F32(0.0), ParamValue::I32(1)];
        assert_eq!(s.pack(&four).map_err(|e| e.index), Err(3));
    }
}

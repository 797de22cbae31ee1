//! The arguments of a launch file, placed among the parameters of the entry.

use std::path::Path;

use super::check::{Checked, float, hex, integer};
use super::keys::{ARGUMENT, Kind, MEMBER, Object};
use super::memory::LaunchMemory;
use super::{bad, map};
use crate::TensorMap;
use crate::code::ParamInfo;
use crate::num::format::{BF16, F16};
use crate::types::Ty;
use crate::{Error, Launch, Module};

/// An argument whose value depends on where memory is placed.
#[derive(Debug)]
enum Late {
    Pointer { buffer: usize, byte: u64 },
    Map { buffer: usize, byte: u64, spec: TensorMap },
}

/// The parameters of a launch.
#[derive(Debug, Default)]
pub(super) struct Params {
    bytes: Vec<u8>,
    late: Vec<(usize, Late)>,
}

impl Params {
    /// Reads the arguments. `memory` already has their buffers; buffers of members are added.
    pub(super) fn read(
        launch: &Checked<'_>,
        folder: &Path,
        module: &Module,
        entry: &str,
        memory: &mut LaunchMemory,
    ) -> Result<Params, Error> {
        let code = module.code(entry)?;
        let arguments: Vec<Checked<'_>> = launch.list("args").collect();
        let (given, wanted) = (arguments.len(), code.params.len());
        if given != wanted {
            let fewer = if given < wanted { "fewer" } else { "more" };
            return Err(Error::launch(format!("the launch has {fewer} arguments than the entry has parameters"))
                .found(format!("{given} arguments in `args`"))
                .required(format!("{wanted} for {}", code.name)));
        }
        let mut params = Params { bytes: vec![0; code.param_bytes as usize], late: Vec::new() };
        for (number, (argument, param)) in arguments.iter().zip(&code.params).enumerate() {
            if argument.has("struct") {
                params.members(argument, param, folder, memory)?;
                continue;
            }
            let value = value(argument, &ARGUMENT, memory.of_argument(number), memory)?;
            fits(argument, &value, param)?;
            params.put(param.offset as usize, value);
        }
        Ok(params)
    }

    /// A struct by value.
    fn members(
        &mut self,
        argument: &Checked<'_>,
        param: &ParamInfo,
        folder: &Path,
        memory: &mut LaunchMemory,
    ) -> Result<(), Error> {
        let mut taken: Vec<(u64, u64, String)> = Vec::new();
        for member in argument.list("struct") {
            let own = memory.own(&member, folder)?;
            let value = value(&member, &MEMBER, own, memory)?;
            let (first, bytes) = (member.whole("at").unwrap_or(0), value.bytes());
            if first + bytes > param.bytes {
                return Err(bad(format!("`{}` lies outside of its struct", member.path))
                    .found(format!("bytes {first} to {}", first + bytes))
                    .required(format!("at most {} B, those of {}", param.bytes, param.name)));
            }
            if let Some((.., other)) = taken.iter().find(|(start, end, _)| first < *end && *start < first + bytes) {
                return Err(bad(format!("`{}` overlaps another member", member.path))
                    .found(format!("bytes {first} to {}, and `{other}`", first + bytes))
                    .required("members beside each other"));
            }
            taken.push((first, first + bytes, member.path.clone()));
            self.put((param.offset + first) as usize, value);
        }
        Ok(())
    }

    fn put(&mut self, offset: usize, value: Value) {
        match value {
            Value::Bytes(bytes, _) => self.bytes[offset..offset + bytes.len()].copy_from_slice(&bytes),
            Value::Late(late) => self.late.push((offset, late)),
        }
    }

    /// Adds the arguments to a launch that has the buffers of the memory.
    pub(super) fn tell<'a>(&self, launch: Launch<'a>) -> Launch<'a> {
        let launch = launch.params(&self.bytes);
        self.late.iter().fold(launch, |launch, (offset, late)| match late {
            Late::Pointer { buffer, byte } => launch.pointer(*offset, *buffer, *byte),
            Late::Map { buffer, byte, spec } => launch.tensor_map(*offset, *buffer, *byte, *spec),
        })
    }
}

/// The contents of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Integer,
    Float,
    Any,
}

/// A parameter, or a member of one.
#[derive(Debug)]
enum Value {
    Bytes(Vec<u8>, Class),
    Late(Late),
}

impl Value {
    fn bytes(&self) -> u64 {
        match self {
            Value::Bytes(bytes, _) => bytes.len() as u64,
            Value::Late(Late::Pointer { .. }) => 8,
            Value::Late(Late::Map { .. }) => 128,
        }
    }
}

/// The value of an argument or a member. `own` is the buffer that it brings.
fn value(of: &Checked<'_>, object: &Object, own: Option<usize>, memory: &mut LaunchMemory) -> Result<Value, Error> {
    let form = of.form(object).unwrap_or_default();
    if let Some(map) = of.one("tensor_map") {
        let spec = map::read(&map)?;
        let buffer = own.map_or_else(|| memory.of(&map), Ok)?;
        return Ok(Value::Late(Late::Map { buffer, byte: memory.byte(&map, buffer)?, spec }));
    }
    if matches!(form, "npy" | "scratch" | "of") {
        let buffer = own.map_or_else(|| memory.of(of), Ok)?;
        return Ok(Value::Late(Late::Pointer { buffer, byte: memory.byte(of, buffer)? }));
    }
    let kind = object.keys().find(|key| key.name == form).map(|key| key.kind);
    let read = of.get(form).zip(kind).and_then(|(value, kind)| match kind {
        Kind::Integer { bits, is_signed } => {
            let bytes = integer(value, bits, is_signed)?.to_le_bytes()[..bits as usize / 8].to_vec();
            Some(Value::Bytes(bytes, Class::Integer))
        }
        Kind::Float { most } => Some(Value::Bytes(float_bytes(form, float(value, most)?), Class::Float)),
        _ => Some(Value::Bytes(hex(value.text()?)?, Class::Any)),
    });
    read.ok_or_else(|| bad(format!("`{}` cannot be read", of.at(form))).required("a value of its type"))
}

fn float_bytes(form: &str, value: f64) -> Vec<u8> {
    match form {
        "f16" => (F16.from_f64(value, 0, false) as u16).to_le_bytes().to_vec(),
        "bf16" => (BF16.from_f64(value, 0, false) as u16).to_le_bytes().to_vec(),
        "f32" => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

/// Whether a value fits the declaration of its parameter.
///
/// Compilers declare `float` as `.f32`, `int` as `.u32`, pointers as `.u64`, f16 of Triton as `.b16`, and structs, f16 of nvcc among
/// them, as arrays of `.b8`. Bits (`.b32`) and arrays take what has as many bytes.
fn fits(argument: &Checked<'_>, value: &Value, param: &ParamInfo) -> Result<(), Error> {
    let form = argument.form(&ARGUMENT).unwrap_or_default();
    let error = |found: String, required: String| {
        Err(Error::launch(format!("`{}` does not fit its parameter", argument.path)).found(found).required(required))
    };
    let ty = format!("{:?}", param.ty).to_lowercase();
    let declared = match param.is_array {
        true => format!("{} bytes", param.bytes),
        false => format!(".{ty}"),
    };
    if value.bytes() != param.bytes {
        return error(
            format!("`{form}`, {} B", value.bytes()),
            format!("{} B: {} is declared as {declared}", param.bytes, param.name),
        );
    }
    let class = match value {
        Value::Bytes(_, class) => *class,
        Value::Late(Late::Pointer { .. }) => Class::Integer,
        Value::Late(Late::Map { .. }) => Class::Any,
    };
    let is_bits = param.is_array || matches!(param.ty, Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128);
    let wanted = if param.ty.is_float() { Class::Float } else { Class::Integer };
    if is_bits || class == Class::Any || class == wanted {
        return Ok(());
    }
    let suits = match (wanted, param.bytes) {
        (Class::Float, 2) => "`f16` or `bf16`".to_owned(),
        (Class::Float, bytes) => format!("`f{}`", bytes * 8),
        (_, bytes) => format!("`i{0}` or `u{0}`", bytes * 8),
    };
    error(
        format!("`{form}`"),
        format!("{suits}: {} is declared as {declared}; `bytes` gives the bits of any type", param.name),
    )
}

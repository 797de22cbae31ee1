//! A declared entry beside the one that nvcc made: where they differ.

use crate::dtype::DType;
use crate::plan::own::{Known, KnownType, OwnEntry};

/// A parameter that nvcc made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompiledParam {
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Offset in its struct, for a field.
    pub(crate) offset: usize,
    /// 1: integer, 2: float, 3: pointer, 0: another.
    pub(crate) kind: i32,
    /// Of what a pointer points to; the size of `void` is 0.
    pub(crate) to_size: usize,
    pub(crate) to_align: usize,
    pub(crate) constant: bool,
    /// As nvcc spells it.
    pub(crate) ty: String,
    /// The declared fields of a struct.
    pub(crate) fields: Vec<CompiledParam>,
}

/// An entry that nvcc made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compiled {
    pub(crate) params: Vec<CompiledParam>,
    pub(crate) reqntid: Option<[u32; 3]>,
    pub(crate) maxntid: Option<[u32; 3]>,
    pub(crate) cluster: Option<[u32; 3]>,
    /// Whether it names dynamic shared memory.
    pub(crate) dynamic_shared: bool,
}

/// A difference: a line of the table where it is one of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Declared and compiled parameters side by side, with a remark where they differ.
    pub(crate) table: Vec<[String; 3]>,
    /// What differs besides parameters: declared, compiled.
    pub(crate) others: Vec<(String, String)>,
}

/// Where an entry is not what it is declared to be.
pub(crate) fn compare(declared: &OwnEntry, compiled: &Compiled) -> Option<Mismatch> {
    let mut mismatch = Mismatch { table: Vec::new(), others: Vec::new() };
    let rows = declared.params.len().max(compiled.params.len());
    let mut differs = false;
    for at in 0..rows {
        let (want, have) = (declared.params.get(at), compiled.params.get(at));
        let remark = match (want, have) {
            (Some(want), Some(have)) => differences(want, have),
            (None, _) => vec!["the text has one more".to_owned()],
            (_, None) => vec!["the text has no such parameter".to_owned()],
        };
        differs |= !remark.is_empty();
        let want_text = want.map_or("-".to_owned(), |want| format!("{} {}", want.ty(), want.name));
        let have_text = have.map_or("-".to_owned(), |have| format!("{}, {}", have.ty, bytes(have.size)));
        mismatch.table.push([want_text, have_text, remark.join("; ")]);
    }
    if !differs {
        mismatch.table.clear();
    }
    mismatch.others = launch_differences(declared, compiled);
    (differs || !mismatch.others.is_empty()).then_some(mismatch)
}

fn bytes(size: usize) -> String {
    if size == 1 { "1 byte".to_owned() } else { format!("{size} bytes") }
}

fn launch_differences(declared: &OwnEntry, compiled: &Compiled) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let text = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
    let block = match declared.varies {
        true => format!("block of up to {} threads, which changes", declared.threads[0]),
        false => format!("block of {} threads", text(declared.threads)),
    };
    if let Some(required) = compiled.reqntid.filter(|required| declared.varies || *required != declared.threads) {
        all.push((block.clone(), format!("exactly {} threads (.reqntid)", text(required))));
    }
    if let Some(most) = compiled.maxntid {
        let count = |of: [u32; 3]| of.iter().map(|n| u64::from(*n)).product::<u64>();
        if count(declared.threads) > count(most) {
            all.push((block, format!("at most {} threads (__launch_bounds__)", count(most))));
        }
    }
    let cluster = compiled.cluster.filter(|of| *of != [1; 3]);
    let declared_cluster = (declared.cluster > 1).then_some([declared.cluster, 1, 1]);
    if cluster != declared_cluster {
        let told =
            |of: Option<[u32; 3]>| of.map_or("no cluster".to_owned(), |of| format!("clusters of {} blocks", text(of)));
        all.push((told(declared_cluster), told(cluster)));
    }
    match (declared.shared, compiled.dynamic_shared) {
        (false, true) => all.push((
            "no dynamic shared memory".to_owned(),
            "`extern __shared__` memory: declare its bytes with Entry::shared".to_owned(),
        )),
        (true, false) => {
            all.push(("dynamic shared memory".to_owned(), "no `extern __shared__` memory".to_owned()));
        }
        _ => {}
    }
    all
}

/// What differs between a declared parameter and the compiled one.
fn differences(want: &Known, have: &CompiledParam) -> Vec<String> {
    let mut all = Vec::new();
    if have.ty.contains("CUtensorMap") {
        let instead = "take the tensor's pointer, or write a family, whose launches encode maps";
        all.push(format!("a tensor map by value, which no declaration passes yet: {instead}"));
        return all;
    }
    if have.size != want.size {
        all.push(format!("{} declared, {} compiled", bytes(want.size), bytes(have.size)));
        return all;
    }
    let kind = match want.is {
        KnownType::Pointer { .. } | KnownType::Workspace | KnownType::Null => (3, "a pointer"),
        KnownType::Integer => (1, "an integer"),
        KnownType::Float => (2, "a float"),
        KnownType::Struct(_) => (0, "a struct"),
        KnownType::Half(dtype) => {
            let name = spelled(&have.ty);
            if have.kind != 0 || !known_element(name).is_some_and(|known| known.contains(&dtype)) {
                all.push(format!("{dtype} declared, `{name}` compiled"));
            }
            return all;
        }
    };
    if have.kind != kind.0 {
        let found =
            ["a struct", "an integer", "a float", "a pointer"].get(have.kind as usize).unwrap_or(&"another type");
        all.push(format!("{} declared, {found} compiled", kind.1));
        return all;
    }
    if have.align != want.align {
        all.push(format!("alignment of {} declared, of {} compiled", want.align, have.align));
    }
    match &want.is {
        KnownType::Pointer { dtype, writes, align, halves } => {
            all.extend(pointee((*dtype, *halves), *writes, *align, have));
        }
        KnownType::Workspace if have.constant => all.push("a workspace is written, the text reads it only".to_owned()),
        KnownType::Struct(fields) => {
            for (want, have) in fields.iter().zip(&have.fields) {
                let mut told = differences(want, have);
                if told.is_empty() && want.offset != have.offset {
                    told.push(format!("at byte {} declared, at byte {} compiled", want.offset, have.offset));
                }
                all.extend(told.iter().map(|told| format!("{}: {told}", want.name)));
            }
        }
        _ => {}
    }
    all
}

/// Whether a pointer is one to elements of this type.
fn pointee((dtype, halves): (DType, bool), writes: bool, align: usize, have: &CompiledParam) -> Vec<String> {
    let mut all = Vec::new();
    if writes && have.constant {
        all.push("declared to be written, const in the text".to_owned());
    }
    if have.to_size == 0 {
        return all;
    }
    let element = dtype.bytes().0 as usize;
    let name = spelled(&have.ty);
    let fits = match known_element(name) {
        Some([]) => halves,
        Some(known) => known.contains(&dtype),
        None => have.to_size.is_multiple_of(element),
    };
    if !fits {
        let pairs = known_element(name).is_some_and(<[DType]>::is_empty);
        let help = if pairs { ": declare pairs of I32, (n,2):(2,1)" } else { "" };
        all.push(format!("elements of {dtype} declared, of `{name}` compiled{help}"));
    } else if have.to_align > align {
        all.push(format!(
            "an address at a multiple of {align} declared, `{name}` lies at multiples of {}: Entry::aligned({})",
            have.to_align, have.to_align
        ));
    }
    all
}

/// The type that a pointer points to, without `const`, a namespace and an alias's path.
fn spelled(pointer: &str) -> &str {
    let to = pointer.trim().trim_end_matches("__restrict__").trim().trim_end_matches('*').trim();
    let to = to.trim_start_matches("const ").trim_start_matches("volatile ").trim_end_matches(" const").trim();
    if to.contains('<') { to } else { to.rsplit("::").next().unwrap_or(to) }
}

/// The element types whose bits a C++ type holds; `None` for a type that is not known.
fn known_element(name: &str) -> Option<&'static [DType]> {
    use DType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, U8};
    Some(match name {
        "double" | "double1" | "double2" | "double3" | "double4" => &[F64],
        "float" | "float1" | "float2" | "float3" | "float4" => &[F32],
        "__half" | "half" | "half_t" | "__half2" | "half2" => &[F16],
        "__nv_bfloat16" | "nv_bfloat16" | "bfloat16_t" | "__nv_bfloat162" | "nv_bfloat162" => &[Bf16],
        "__nv_fp8_e4m3" | "float_e4m3_t" | "__nv_fp8x2_e4m3" | "__nv_fp8x4_e4m3" => &[E4m3],
        "__nv_fp8_e5m2" | "float_e5m2_t" | "__nv_fp8x2_e5m2" | "__nv_fp8x4_e5m2" => &[E5m2],
        "int" | "unsigned int" | "int2" | "int4" | "uint2" | "uint4" => &[I32],
        // Integers of 16 or 8 bits may hold the bits of any type of that width.
        "short" | "unsigned short" => &[I16, F16, Bf16],
        "char" | "signed char" | "unsigned char" => &[I8, U8, Bool, E4m3, E5m2],
        "bool" => &[Bool],
        "long" | "unsigned long" | "long long" | "unsigned long long" => &[],
        _ => return None,
    })
}

//! The host side of a text: its plan's launch computation, as C++.

use askama::Template;

use super::int::{cxx, within};
use crate::arch::Arch;
use crate::dtype::DType;
use crate::plan::{Int, MapRule, ParamType, Plan, Rule, Step, WORKSPACE};
use crate::tiling::{MapSwizzle, MapType};

#[derive(Template)]
#[template(path = "launch.cuh")]
struct Launch<'a> {
    plan: &'a Plan,
    params: String,
    /// The fields of `Arguments`.
    arguments: String,
    lines: Vec<Line<'a>>,
    /// The parameters, with their values.
    values: Vec<(&'a str, String)>,
    maps: Vec<Map<'a>>,
    entries: Vec<EntryText<'a>>,
    /// Bytes.
    workspace: String,
    runs_on: String,
    grid: Grids,
    launch: Launches,
}

/// How an entry is launched.
#[derive(Template)]
enum Grids {
    /// After the kernel before it.
    #[template(path = "launch/grid.cuh")]
    InTurn,
    /// It may begin while the kernel before it ends.
    #[template(path = "launch/grid_pdl.cuh")]
    Overlapping,
}

/// The function that callers call.
#[derive(Template)]
enum Launches {
    #[template(path = "launch/without_workspace.cuh")]
    Plain,
    /// An entry may leave something for the next.
    #[template(path = "launch/with_workspace.cuh")]
    WithWorkspace,
}

/// A `__global__` function, as it is launched.
struct EntryText<'a> {
    /// The device function that it calls.
    name: &'a str,
    attributes: Vec<String>,
    threads: u32,
    /// Bytes of dynamic shared memory.
    smem: u64,
    /// Whether it has something to do.
    when: String,
    /// The fields of its `Grid`.
    grid: Vec<String>,
}

/// A tensor map, as it is encoded.
struct Map<'a> {
    name: &'a str,
    when: String,
    ty: String,
    address: String,
    dims: Vec<String>,
    strides: Vec<String>,
    extents: Vec<String>,
    swizzle: &'static str,
}

/// A line of the computation.
enum Line<'a> {
    Let(String, String),
    Require(String, &'a str),
}

/// The text behind the kernel.
pub(super) fn host_side(plan: &Plan) -> String {
    let (rule, params) = (&with_names_apart(&plan.draft().rule), plan.params());
    let names = &rule.steps.names;
    let arguments: Vec<_> = params.given().map(|(_, field)| field).collect();
    let lets = used(rule).into_iter().map(|index| {
        let field = &params.fields()[index];
        let value = match field.ty {
            ParamType::ConstPtr | ParamType::MutPtr => {
                format!("int64_t(reinterpret_cast<uintptr_t>(args.{}))", field.name)
            }
            _ => format!("args.{}", field.name),
        };
        Line::Let(field.name.clone(), value)
    });
    let steps = rule.steps.steps.iter().map(|step| match step {
        Step::Let(index, value) => Line::Let(names[*index].clone(), cxx(value, names)),
        Step::Require(condition, because) => Line::Require(cxx(condition, names), because),
    });
    let values = params.fields().iter().zip(&rule.derived).filter(|(field, _)| field.ty != ParamType::TensorMap);
    let values = values.map(|(field, derived)| match derived {
        None if field.name == WORKSPACE => (WORKSPACE, "launch.workspace".to_owned()),
        None => (field.name.as_str(), format!("args.{}", field.name)),
        Some(value) => (field.name.as_str(), format!("{}({})", field.ty.c(), cxx(value, names))),
    });
    let overlaps = plan.entries().iter().any(|entry| entry.overlaps);
    let entries = plan.entries().iter().zip(&rule.grids).map(|(entry, grid)| {
        let blocks = grid.blocks.iter().map(|blocks| format!("unsigned({})", cxx(blocks, names)));
        let begins = grid.overlaps.as_ref().filter(|_| entry.overlaps);
        let begins = begins.map_or(entry.overlaps.to_string(), |of| format!("bool({})", cxx(of, names)));
        EntryText {
            name: entry.function(plan.name()),
            attributes: entry.attributes(),
            threads: entry.threads,
            smem: entry.dynamic_smem.0,
            when: cxx(&grid.when, names),
            grid: blocks.chain(overlaps.then_some(begins)).collect(),
        }
    });
    super::text(&Launch {
        plan,
        params: super::params::c_name(plan),
        arguments: super::params::c_fields(arguments),
        lines: lets.chain(steps).collect(),
        values: values.collect(),
        maps: rule.maps.iter().map(|map| tensor_map(rule, map)).collect(),
        entries: entries.collect(),
        workspace: cxx(&rule.workspace, names),
        runs_on: runs_on(plan),
        grid: if overlaps { Grids::Overlapping } else { Grids::InTurn },
        launch: if rule.workspace == Int::Const(0) { Launches::Plain } else { Launches::WithWorkspace },
    })
}

/// The rule, where no number that it computes has the name of an argument that it reads: that may be a name of the user's.
fn with_names_apart(rule: &Rule) -> Rule {
    let arguments: Vec<String> = used(rule).into_iter().map(|index| rule.steps.names[index].clone()).collect();
    let mut rule = rule.clone();
    for number in rule.steps.names.iter_mut().skip(rule.derived.len()) {
        while arguments.contains(number) {
            number.push_str("_value");
        }
    }
    rule
}

/// What `cuTensorMapEncodeTiled` is told.
fn tensor_map<'a>(rule: &'a Rule, map: &MapRule) -> Map<'a> {
    let all = |ty: &str, of: &[Int]| {
        of.iter().map(|value| format!("{ty}({})", cxx(value, &rule.steps.names))).collect::<Vec<_>>()
    };
    let ty = match map.dtype.dtype() {
        _ if map.dtype == MapType::Tf32 => "TFLOAT32",
        DType::F64 => "FLOAT64",
        DType::F32 => "FLOAT32",
        DType::F16 => "FLOAT16",
        DType::Bf16 => "BFLOAT16",
        DType::I32 => "INT32",
        // TMA moves bits; only zeros outside of the matrix have a type.
        other if other.bits() == 16 => "UINT16",
        _ => "UINT8",
    };
    Map {
        name: rule.steps.names.get(map.param).map_or("", String::as_str),
        when: cxx(&map.when, &rule.steps.names),
        ty: format!("CU_TENSOR_MAP_DATA_TYPE_{ty}"),
        address: match cxx(&map.in_workspace, &rule.steps.names) {
            never if never == "0" => cxx(&map.address, &rule.steps.names),
            when => format!("({when} ? begin : 0) + {}", within(&map.address, &rule.steps.names, 3)),
        },
        dims: all("cuuint64_t", &map.dims),
        strides: all("cuuint64_t", &map.strides),
        extents: all("cuuint32_t", &map.extents),
        swizzle: match map.swizzle {
            MapSwizzle::None => "CU_TENSOR_MAP_SWIZZLE_NONE",
            MapSwizzle::B32 => "CU_TENSOR_MAP_SWIZZLE_32B",
            MapSwizzle::B64 => "CU_TENSOR_MAP_SWIZZLE_64B",
            MapSwizzle::B128 => "CU_TENSOR_MAP_SWIZZLE_128B",
        },
    }
}

/// The parameters that something follows from.
fn used(rule: &Rule) -> Vec<usize> {
    let mut all = Vec::new();
    let mut add = |of: &Int| of.values(&mut all);
    for step in &rule.steps.steps {
        let (Step::Let(_, of) | Step::Require(of, _)) = step;
        add(of);
    }
    rule.derived.iter().flatten().for_each(&mut add);
    for grid in &rule.grids {
        add(&grid.when);
        grid.blocks.iter().chain(&grid.overlaps).for_each(&mut add);
    }
    for map in &rule.maps {
        [&map.when, &map.in_workspace, &map.address]
            .into_iter()
            .chain(&map.dims)
            .chain(&map.strides)
            .chain(&map.extents)
            .for_each(&mut add);
    }
    add(&rule.workspace);
    all.retain(|index| *index < rule.derived.len());
    all.sort_unstable();
    all.dedup();
    all
}

/// Where the text runs, as a condition on `capability`, 10 times the major number and the minor one.
fn runs_on(plan: &Plan) -> String {
    let number = |arch: &Arch| arch.capability().0 * 10 + arch.capability().1;
    let least = plan.targets().ptx().map(|arch| number(&arch));
    let others = plan.targets().archs().iter().map(number).filter(|arch| least.is_none_or(|least| *arch < least));
    let mut all: Vec<String> = others.map(|arch| format!("capability == {arch}")).collect();
    all.extend(least.map(|least| format!("capability >= {least}")));
    all.join(" || ")
}

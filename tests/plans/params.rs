//! Contract: the parameter struct as a C compiler lays it out is the one that Rust packs. libclang reads the emitted header
//! through bindgen; size, alignment, and every field's name, order, offset and type are compared with the plan.

use std::process::Command;

use cutemplate::emit::render;
use cutemplate::plan::{ParamStruct, ParamType, Plan};
use cutemplate::recipe::FAMILIES;
use cutemplate::settings::Settings;

/// What bindgen says of the structs of all plans, one line for each fact.
fn read_by_libclang(plans: &[Plan]) -> String {
    let cc = std::process::Command::new("cc").arg("-print-file-name=include").output().expect("a C compiler");
    let builtin = String::from_utf8(cc.stdout).expect("UTF-8");
    // cuda.h declares the type of tensor maps.
    let cuda =
        cutlass_sys::Finder::from_env().toolchain(&mut ()).expect("it is fetched in this workspace").nvcc.headers;
    let builder = bindgen::Builder::default()
        .clang_args(["-isystem", builtin.trim()])
        .clang_args(cuda.include_dirs.iter().flat_map(|dir| ["-isystem".to_owned(), dir.display().to_string()]));
    let with = |builder: bindgen::Builder, plan: &Plan| {
        let unit = render(plan);
        let builder = builder.header_contents(&unit.params().name, &unit.params().text);
        builder.allowlist_type(format!("{}_params", plan.name()))
    };
    plans.iter().fold(builder, with).generate().expect("the headers are plain C").to_string()
}

/// The type that bindgen gives to a field of ours.
fn as_bound(ty: ParamType) -> &'static str {
    match ty {
        ParamType::ConstPtr => "*const ::std::os::raw::c_void",
        ParamType::MutPtr => "*mut ::std::os::raw::c_void",
        ParamType::I32 => "i32",
        ParamType::I64 => "i64",
        ParamType::F32 => "f32",
        ParamType::F64 => "f64",
        ParamType::U8 => "u8",
        ParamType::U16 => "u16",
        ParamType::F16 => "__half",
        ParamType::Bf16 => "__nv_bfloat16",
        ParamType::TensorMap => "CUtensorMap",
    }
}

fn expected(name: &str, params: &ParamStruct) -> Vec<String> {
    let mut lines = vec![
        format!("[\"Size of {name}\"][::std::mem::size_of::<{name}>() - {}usize];", params.size()),
        format!("[\"Alignment of {name}\"][::std::mem::align_of::<{name}>() - {}usize];", params.align()),
    ];
    for f in params.fields() {
        lines.push(format!("pub {}: {},", f.name, as_bound(f.ty)));
        let field = &f.name;
        lines.push(format!(
            "[\"Offset of field: {name}::{field}\"][::std::mem::offset_of!({name}, {field}) - {}usize];",
            f.offset
        ));
    }
    lines
}

/// bindgen takes libclang from the environment, which is not changed while other threads may read it: a process of its own.
#[test]
fn libclang_lays_the_struct_out_as_the_plan_does() {
    let libclang = cutlass_sys::Finder::from_env().libclang(&mut ()).expect("libclang is fetched in this workspace");
    let output = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "params::as_the_plan_does", "--ignored", "--nocapture"])
        .env("LIBCLANG_PATH", libclang.path.parent().expect("a file in a folder"))
        .output()
        .expect("this binary runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn as_the_plan_does() {
    let squeeze = |s: &str| s.split_whitespace().collect::<String>();
    let mut plans: Vec<Plan> = Vec::new();
    for family in FAMILIES {
        for settings in family.catalogue {
            let plan = family.usual_plan(&Settings::parse_lines(settings)).expect("catalogue");
            plans.extend(plan.texts().iter().cloned());
        }
    }
    let all = read_by_libclang(&plans);
    let structs: Vec<&str> = all.split("#[repr(C").collect();
    for plan in &plans {
        let name = format!("{}_params", plan.name());
        let mut own = structs.iter().filter(|text| text.contains(&format!("pub struct {name} {{")));
        let bound = squeeze(own.next().unwrap_or_else(|| panic!("{name} is not in\n{all}")));
        let lines = expected(&name, plan.params());
        for line in &lines {
            assert!(bound.contains(&squeeze(line)), "libclang does not say `{line}` but\n{bound}");
        }
        let offsets = format!("Offsetoffield:{name}::");
        assert_eq!(bound.matches(&offsets).count(), plan.params().fields().len(), "fields of {name}");
        // The comparison can fail: another offset is not found.
        let moved = lines.last().expect("fields").replace("usize]", "1usize]");
        assert!(!bound.contains(&squeeze(&moved)));
    }
}

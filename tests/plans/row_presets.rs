//! Contract: every preset of `rows` is a kernel for each type of elements, and its settings, printed, are the same recipe.

use cutemplate::arch::{Arch, Targets};
use cutemplate::dtype::DType;
use cutemplate::emit::render;
use cutemplate::recipe::rows::Preset;
use cutemplate::recipe::{Recipe, Rows};
use cutemplate::settings::Settings;
use cutemplate::verify::{self, Tensor};

#[test]
fn each_preset_is_a_kernel_that_its_settings_give_back() {
    for preset in Preset::ALL {
        for dtype in [DType::F16, DType::Bf16, DType::F32] {
            for columns in [1, 80, 4096, 8192] {
                let rows = Rows { columns, ..Rows::preset(*preset, dtype) };
                let plan = rows.plan(&Targets::default()).unwrap_or_else(|error| panic!("{preset}, {dtype}: {error}"));
                assert_eq!(plan.operands().len(), rows.inputs.len() + rows.outputs.len());
                assert_eq!(Rows::from_settings(&rows.settings()).as_ref(), Ok(&rows), "{preset}");
                let named = format!("preset={preset}\ndtype={dtype}\ncolumns={columns}");
                assert_eq!(Rows::from_settings(&Settings::parse_lines(&named)).as_ref(), Ok(&rows), "{named}");
            }
        }
    }
}

/// Rows that no CTA holds have clusters, where all targets have them.
#[test]
fn wide_rows_have_clusters() {
    let hopper = Targets::new([Arch::Sm90a]).expect("not empty");
    for (preset, dtype, columns, cluster) in [
        (Preset::Softmax, DType::F32, 262_144, 8),
        (Preset::Softmax, DType::Bf16, 131_072, 8),
        (Preset::LayerNorm, DType::F32, 131_072, 8),
        (Preset::RmsNorm, DType::Bf16, 65_536, 4),
        (Preset::RmsNorm, DType::Bf16, 32_768, 1),
    ] {
        let plan = Rows { columns, ..Rows::preset(preset, dtype) }.plan(&hopper).expect("legal");
        assert_eq!(plan.entries().iter().map(|entry| entry.cluster).collect::<Vec<_>>(), [cluster; 2]);
    }
}

/// Where columns are reduced, a CTA holds weights for all of its rows; those that registers do not hold are loaded chunk by chunk.
#[test]
fn weights_that_no_registers_hold_are_loaded_for_each_row() {
    for (columns, threads, is_held) in [(4096, 256, true), (8192, 512, true), (16_384, 512, false)] {
        let rows = Rows { columns, ..Rows::preset(Preset::LayerNormBackward, DType::Bf16) };
        let plan = rows.plan(&Targets::new([Arch::Sm90a]).expect("not empty")).expect("legal");
        let text: String = render(&plan).files().iter().map(|file| file.text.as_str()).collect();
        assert_eq!(plan.entries()[0].threads, threads, "{columns}");
        assert_eq!(text.contains("auto const& rW = columns.W;"), is_held, "{columns}");
        let loads = text.matches("move<Walk, typename Walk::LoadW>(inside, c, tW(_, _, _, tile), rW);").count();
        assert_eq!(loads, if is_held { 0 } else { 2 }, "{columns}: two traversals read weights");
    }
}

/// What a user sets replaces its part of a preset; without one, outputs follow inputs.
#[test]
fn settings_replace_parts_of_a_preset() {
    let read = |text: &str| Rows::from_settings(&Settings::parse_lines(text)).expect("settings");
    let norm = read("preset=layer_norm\ndtype=bf16\nout=f32:(?,1)");
    assert_eq!((norm.inputs[0].to_string(), norm.outputs[0].to_string()), ("bf16:(?,1)".into(), "f32:(?,1)".into()));
    let plain = read("in=f16:(?,1)");
    assert_eq!(plain.outputs[0].to_string(), "f16:(?,1)");
    let own = read("preset=softmax\nexpr=|x, w| (x * w, sum(x * w))\ndtype=f16");
    assert_eq!((own.inputs.len(), own.outputs[1].to_string()), (2, "f32:1".to_owned()));
}

/// An index that names no row is refused with its coordinate, before anything is compared.
#[test]
fn an_index_that_names_no_row_is_refused() {
    let settings = Settings::parse_lines("expr=|x| x\nin=f32:(?,1)\ngather=x\ncolumns=8");
    let plan = Rows::from_settings(&settings).expect("settings").plan(&Targets::default()).expect("legal");
    let x = Tensor::of(&[1.0_f32; 12], &[3, 4]).expect("a table");
    let y = Tensor::of(&[1.0_f32; 20], &[5, 4]).expect("its rows");
    let check = |index: [i32; 5]| {
        let index = Tensor::of(&index, &[5]).expect("an index");
        verify::check(&plan, &[&x, &index], &[], &[&y]).map_err(|error| error.to_string())
    };
    assert!(check([0, 1, 2, 2, 0]).expect("rows of the table").iter().all(verify::Verdict::is_right));
    for (index, named) in [([0, 1, -1, 2, 0], "Index(2) = -1, of 3 rows"), ([3, 1, 0, 2, 0], "Index(0) = 3, of 3 rows")]
    {
        let refused = check(index).expect_err("no such row");
        assert!(refused.contains(named), "{refused}");
    }
}

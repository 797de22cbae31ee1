//! Pictures: small ones byte for byte (those of `docs` among them), every kind as valid XML whose labels are the facts, and
//! refusals instead of huge files. `UPDATE_EXPECT=1` rewrites the goldens; look at them before they are committed.

use crate::ladder;

use std::collections::BTreeMap;

use cutemplate::atom::{CopyAtom, MmaAtom, make_tiled_copy};
use cutemplate::draw::{self, Bar, Bars, DrawError, Mark, Options, SharedAccess};
use cutemplate::layout::{
    ComposedLayout, Layout, Tiler, blocked_product, composition, make_layout_tv, raked_product, right_inverse,
    zipped_divide,
};
use cutemplate::model::{Request, SharedOp};
use cutemplate::recipe::product::{Major, Measured};
use cutemplate::recipe::{Gemm, Recipe};
use cutemplate::units::Bytes;
use expect_test::expect_file;
use ladder::Ladder;

fn layout(text: &str) -> Layout {
    text.parse().expect(text)
}

fn options() -> Options {
    Options::default()
}

fn composition_picture() -> String {
    let (a, b) = (layout("(6,2):(8,2)"), layout("(4,3):(3,1)"));
    let result = composition(&a, &b).expect("accepted");
    draw::operation("composition", &[("A", &a), ("B", &b)], &result, &options()).expect("drawn")
}

fn divide_picture() -> String {
    let a = layout("(6,(2,4)):(8,(1,2))");
    let tiler: Tiler = "[3:1,4:2]".parse().expect("a tiler");
    let result = zipped_divide(&a, &tiler).expect("accepted");
    draw::operation("zipped_divide", &[("A", &a)], &result, &options()).expect("drawn")
}

fn ldmatrix_picture() -> String {
    let atom = CopyAtom::named("SM75_U32x4_LDSM_N", 16).expect("an atom");
    // The reference is what each thread receives: rows of four threads, two neighbouring values in each, four matrices.
    let tv = layout("((4,8),(2,2,2)):((32,1),(16,8,128))");
    let copy = cutemplate::atom::TiledCopy::new(atom, tv, "(16,16)".parse().expect("a tile")).expect("a tiled copy");
    draw::tiled_copy(&copy, &options()).expect("drawn")
}

fn volta() -> MmaAtom {
    MmaAtom::named("SM70_8x8x4_F32F16F16F32_NT").expect("an atom")
}

fn swizzle_picture(swizzle: &str, tile: &str, vector: i64) -> String {
    let access = SharedAccess::new(4, vector).expect("an access");
    draw::swizzle(&composed(&format!("{swizzle} o 0 o {tile}")), access, &options()).expect("drawn")
}

/// The first load of a warp down paired columns of 16 x 32 floats.
fn request_picture(swizzle: &str) -> String {
    let tile = composed(&format!("{swizzle} o 0 o (16,32):(32,1)"));
    let addresses = (0..32).map(|lane| Some(4 * tile.at(lane).expect("an index"))).collect();
    draw::request(&Request::new(SharedOp::Load, Bytes(4), addresses), &options()).expect("drawn")
}

fn composed(text: &str) -> ComposedLayout {
    text.parse().expect("a composed layout")
}

#[test]
fn pictures_of_the_chapter() {
    let tile = "(8,8)".parse().expect("a shape");
    let nested = layout("((2,2),(4,2)):((1,8),(2,16))");
    let quadpair = layout("((2,2,2),(2,2,2)):((1,16,4),(8,2,32))");
    expect_file!["../../docs/pictures/layout_nested.svg"].assert_eq(&draw::layout(&nested, &options()).expect("drawn"));
    expect_file!["../../docs/pictures/tv_volta.svg"].assert_eq(&draw::tv(&quadpair, &tile, &options()).expect("drawn"));
    expect_file!["../../docs/pictures/mma_volta.svg"].assert_eq(&draw::mma(&volta(), &options()).expect("drawn"));
    expect_file!["../../docs/pictures/composition.svg"].assert_eq(&composition_picture());
    expect_file!["../../docs/pictures/swizzle.svg"].assert_eq(&swizzle_picture("Sw<3,2,3>", "(8,32):(32,1)", 4));
    expect_file!["../../docs/pictures/request.svg"].assert_eq(&request_picture("Sw<4,0,5>"));
    expect_file!["../../docs/pictures/copy_ldmatrix.svg"].assert_eq(&ldmatrix_picture());
}

#[test]
fn the_chart_of_the_ladder() {
    let ladder = ladder::data();
    let library = ladder::Other { name: "cuBLAS".into(), tflops: ladder.cublas() };
    let Ladder { device, problem, others, rungs } = ladder;
    let bar = |rung: ladder::Rung| Bar { label: rung.rung, value: rung.tflops, bound: Some(rung.predicted) };
    let mark = |other: ladder::Other| Mark { label: other.name, value: other.tflops };
    let chart = Bars {
        title: format!("sgemm, {problem}, f32, on one {device}"),
        unit: "TFLOP/s".into(),
        bars: rungs.into_iter().map(bar).collect(),
        marks: others.into_iter().chain([library]).map(mark).collect(),
        caption: vec![
            "Filled: measured, in turns with cuBLAS. Outlined: the most that the pipe allows which the plan finds to be the \
             busiest. CUTLASS and CuTe DSL were measured on the same kind of GPU on 2026-11-20."
                .into(),
        ],
    };
    let svg = draw::bars(&chart, &options()).expect("drawn");
    labels(&svg);
    expect_file!["../../docs/pictures/sgemm_ladder.svg"].assert_eq(&svg);
}

/// The rows of the crate's own record of f16 with both factors K-major.
#[test]
fn the_chart_of_tensor_core_products() {
    let record = Gemm::record().expect("it was measured on an H200");
    let is_f16 = |row: &&Measured| row.settings.get("dtype") == Some("f16");
    let rows =
        record.rows.iter().filter(|row| (row.problem.a, row.problem.b) == (Major::Row, Major::Col)).filter(is_f16);
    let bar = |row: &Measured| Bar {
        label: format!("{} x {} x {}", row.problem.m, row.problem.n, row.problem.k),
        value: row.ratio,
        bound: None,
    };
    let chart = Bars {
        title: format!("gemm, f16, on one {}", record.device),
        unit: "of cuBLASLt".into(),
        bars: rows.map(bar).collect(),
        marks: vec![Mark { label: "cuBLASLt at its best".into(), value: 1.0 }],
        caption: vec![
            "In turns with the fastest algorithm that cuBLASLt's heuristics propose.".into(),
            "A and B K-major; integers from -2 to 2, of 16384 N(0,1).".into(),
        ],
    };
    let svg = draw::bars(&chart, &options()).expect("drawn");
    labels(&svg);
    expect_file!["../../docs/pictures/gemm_record.svg"].assert_eq(&svg);
}

#[test]
fn a_chart_without_a_bar_or_of_no_number_is_refused() {
    let chart = |bars: &[f64]| Bars {
        title: "a chart".into(),
        unit: "s".into(),
        bars: bars.iter().map(|value| Bar { label: "one".into(), value: *value, bound: None }).collect(),
        marks: Vec::new(),
        caption: Vec::new(),
    };
    let svg = draw::bars(&chart(&[0.5, 0.0]), &options()).expect("drawn");
    assert!(svg.contains("measured") && !svg.contains("at most"), "without bounds there is no column for them");
    for bars in [&[][..], &[f64::NAN], &[-1.0], &[f64::INFINITY]] {
        assert!(matches!(draw::bars(&chart(bars), &options()), Err(DrawError::Refused { .. })), "{bars:?}");
    }
    let few = Options { most_cells: 1 };
    assert!(draw::bars(&chart(&[1.0, 1.0]), &few).is_err());
}

#[test]
fn pictures_of_the_other_kinds() {
    let draw = |text: &str| draw::layout(&layout(text), &options()).expect("drawn");
    expect_file!["../pictures/layout_vector.svg"].assert_eq(&draw("(8):(2)"));
    expect_file!["../pictures/layout_rank_3.svg"].assert_eq(&draw("(3,4,2):(1,3,12)"));
    expect_file!["../pictures/layout_basis.svg"].assert_eq(&draw("(2,3):(1@0,1@1)"));
    expect_file!["../pictures/swizzle.svg"].assert_eq(&swizzle_picture("Sw<2,0,3>", "(4,8):(8,1)", 1));
    expect_file!["../pictures/zipped_divide.svg"].assert_eq(&divide_picture());
    let (a, b) = (layout("(2,3):(3,1)"), layout("(3,2):(1,3)"));
    let blocked = blocked_product(&a, &b).expect("accepted");
    let raked = raked_product(&a, &b).expect("accepted");
    let product =
        |op: &str, result: &Layout| draw::operation(op, &[("A", &a), ("B", &b)], result, &options()).expect("drawn");
    expect_file!["../pictures/blocked_product.svg"].assert_eq(&product("blocked_product", &blocked));
    expect_file!["../pictures/raked_product.svg"].assert_eq(&product("raked_product", &raked));
    let rows = layout("(4,8):(8,1)");
    let inverse = right_inverse(&rows).expect("accepted");
    let picture = draw::operation("right_inverse", &[("A", &rows)], &inverse, &options()).expect("drawn");
    expect_file!["../pictures/right_inverse.svg"].assert_eq(&picture);
}

/// A label of a cell: its centre, its base line, its text, and whether it is the bold one of two.
struct Label {
    x: i64,
    y: i64,
    text: String,
    bold: bool,
}

/// The labels of cells, top to bottom and left to right; fails where the text is no XML or a label is outside.
fn labels(svg: &str) -> Vec<Label> {
    let document = roxmltree::Document::parse(svg).expect("valid XML");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    assert_eq!(root.tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
    let side = |name: &str| root.attribute(name).expect(name).parse::<i64>().expect("pixels");
    let (width, height) = (side("width"), side("height"));
    assert_eq!(root.attribute("viewBox"), Some(format!("0 0 {width} {height}").as_str()));
    let mut found = Vec::new();
    for text in document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text"))) {
        let group = text.parent_element().expect("a group");
        let at = |name: &str| text.attribute(name).expect(name).parse::<i64>().expect("pixels");
        let inside = (0..=width).contains(&at("x")) && (0..=height).contains(&at("y"));
        assert!(inside, "{:?} is outside of {width} x {height}", text.text());
        let cell = group.attribute("text-anchor") == Some("middle") && group.attribute("fill") != Some("#444444");
        if cell && group.attribute("font-size") != Some("15") {
            let bold = group.attribute("font-weight") == Some("bold");
            let text = text.text().unwrap_or_default().trim().to_owned();
            found.push(Label { x: at("x"), y: at("y"), text, bold });
        }
    }
    found.sort_by_key(|label| (label.y, label.x));
    found
}

#[test]
fn a_layout_s_labels_are_its_values() {
    let texts = [
        "(4,8):(8,1)",
        "((2,2),(4,2)):((1,8),(2,16))",
        "(3,5):(-1,0)",
        "(2,3,4):(100,7,1)",
        "7:3",
        "(1,1):(0,0)",
        "((8,4),(16,4)):((64,512),(1,16))",
        "(2,2):(4611686018427387904,-4611686018427387904)",
    ];
    for text in texts {
        let layout = layout(text);
        let svg = draw::layout(&layout, &options()).expect(text);
        assert_eq!(svg, draw::layout(&layout, &options()).expect(text), "the text is the same twice");
        let rows = if layout.rank() == 1 { 1 } else { layout.mode(0).expect("mode 0").size() };
        let columns = layout.size() / rows;
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| row + column * rows));
        let expected: Vec<String> = cells.map(|number| layout.at(number).expect("a value").to_string()).collect();
        let found: Vec<String> = labels(&svg).into_iter().map(|label| label.text).collect();
        assert_eq!(found, expected, "{text}");
    }
}

/// Pairs the bold label of each cell with the one below it.
fn pairs(labels: Vec<Label>) -> Vec<(String, String)> {
    let mut cells: BTreeMap<(i64, i64), (String, String)> = BTreeMap::new();
    for label in labels {
        // The second label's base line is 12 pixels below the first's.
        let cell = cells.entry((if label.bold { label.y } else { label.y - 12 }, label.x)).or_default();
        *(if label.bold { &mut cell.0 } else { &mut cell.1 }) = label.text;
    }
    cells.into_values().collect()
}

#[test]
fn a_tile_s_labels_lead_back_through_the_tv_layout() {
    let (tiler, seed) = make_layout_tv(&layout("(4,8):(8,1)"), &layout("(8,8):(8,1)")).expect("a TV layout");
    let mma = layout("((4,8),(2,2,2)):((32,1),(16,8,128))");
    for (tv, tile) in [(seed, tiler), (mma, "(16,16)".parse().expect("a shape"))] {
        let svg = draw::tv(&tv, &tile, &options()).expect("drawn");
        let (table, owners): (Vec<Label>, Vec<Label>) = labels(&svg).into_iter().partition(|l| l.text.contains(','));
        let (rows, columns) = (tile.mode(0).expect("rows"), tile.mode(1).expect("columns"));
        let (rows, columns) = (rows.size().expect("rows"), columns.size().expect("columns"));
        let threads = tv.mode(0).expect("threads").size();
        let owners = pairs(owners);
        assert_eq!((table.len() as i64, owners.len() as i64), (tv.size(), rows * columns), "{tv}");
        for (cell, (thread, value)) in owners.iter().enumerate() {
            let (row, column) = (cell as i64 / columns, cell as i64 % columns);
            let number = |text: &str| text[1..].parse::<i64>().expect("a number");
            let index = tv.at(number(thread) + threads * number(value)).expect("a value");
            assert_eq!(index, row + rows * column, "{thread}/{value} in {tv}");
        }
        // The table, row by row: a thread's values as row,column.
        for (cell, label) in table.iter().enumerate() {
            let (thread, value) = (cell as i64 / (tv.size() / threads), cell as i64 % (tv.size() / threads));
            let index = tv.at(thread + threads * value).expect("a value");
            assert_eq!(label.text, format!("{},{}", index % rows, index / rows));
        }
    }
}

#[test]
fn every_atom_is_drawn() {
    for name in MmaAtom::names() {
        let svg = draw::mma(&MmaAtom::named(&name).expect("a name of the table"), &options()).expect(&name);
        // The large ones of WGMMA are of the same kind, and slow to parse in a debug build.
        assert!(name.starts_with("SM90_64x") || !labels(&svg).is_empty());
        assert!(!svg.contains("held by no thread"), "{name} leaves elements out");
    }
    for name in ["UniversalCopy<uint64_t>", "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", "SM75_U16x8_LDSM_T"] {
        let atom = CopyAtom::named(name, 16).expect("an atom");
        let copy = make_tiled_copy(&atom, &layout("(8,4):(4,1)"), &layout("(1,8):(0,1)")).expect("a tiled copy");
        assert!(labels(&draw::tiled_copy(&copy, &options()).expect(name)).len() >= 512);
    }
}

#[test]
fn the_swizzle_s_caption_counts_conflicts() {
    let access = SharedAccess::new(4, 1).expect("an access");
    let svg = draw::swizzle(&composed("Sw<5,0,5> o 0 o (32,32):(32,1)"), access, &options());
    let svg = svg.expect("drawn");
    assert!(svg.contains("down the columns: 32-way before, 1-way after"));
    assert!(svg.contains("along the rows: 1-way before, 1-way after"));
    assert_eq!(pairs(labels(&svg)).len(), 2 * 1024);
    // Under ldmatrix, 16 bytes of each of eight rows: the 128-byte swizzle.
    let access = SharedAccess::new(2, 8).expect("an access");
    let svg = draw::swizzle(&composed("Sw<3,3,3> o 0 o (8,64):(64,1)"), access, &options());
    assert!(svg.expect("drawn").contains("down the columns: 8-way before, 1-way after"));
    // An offset counts before the swizzle: index 9 is sent to 8.
    let svg =
        draw::swizzle(&composed("Sw<1,0,3> o 9 o (1,2):(0,1)"), SharedAccess::new(4, 1).expect("floats"), &options());
    let svg = svg.expect("drawn");
    assert!(
        svg.contains("before: 9 + (1,2):(0,1)") && svg.contains("after: Sw&lt;1,0,3&gt; o 9 o (1,2):(0,1)"),
        "{svg}"
    );
    assert!(svg.contains(">9</text>") && svg.contains(">10</text>") && svg.contains(">8</text>"), "{svg}");
}

#[test]
fn a_request_s_labels_are_its_lanes_and_passes() {
    let passes = |svg: &str| {
        let cells = pairs(labels(svg));
        cells.iter().filter(|(lane, _)| !lane.is_empty()).map(|(_, pass)| pass.clone()).collect::<Vec<_>>()
    };
    let textbook = passes(&request_picture("Sw<4,0,5>"));
    assert_eq!(textbook.iter().filter(|pass| *pass == "pass 0").count(), 16);
    assert_eq!(textbook.iter().filter(|pass| *pass == "pass 1").count(), 16);
    assert!(passes(&request_picture("Sw<4,1,4>")).iter().all(|pass| pass == "pass 0"));
    // 16 bytes: the halves of a warp whose neighbours read the same, each in one pass.
    let addresses: Vec<Option<i64>> = (0..32).map(|lane| Some(16 * (lane / 8))).collect();
    let load = Request::new(SharedOp::Load, Bytes(16), addresses.clone());
    let svg = draw::request(&load, &options()).expect("drawn");
    assert!(svg.contains("lanes 0 to 15: 1 pass<") && svg.contains("lanes 16 to 31: 1 pass<"), "{svg}");
    assert!(pairs(labels(&svg)).iter().any(|(lanes, _)| lanes == "8-15"));
    assert!(refused(draw::request(&Request { op: SharedOp::Copy, ..load }, &options())).contains("exclusive or"));
    let nobody = Request::new(SharedOp::Load, Bytes(4), vec![None; 32]);
    assert!(refused(draw::request(&nobody, &options())).contains("0 lanes"));
}

fn refused<T: std::fmt::Debug>(result: Result<T, DrawError>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn what_is_no_picture_is_refused() {
    let huge = [
        "(129,128):(1,129)",
        "(1048576,1048576):(1,1048576)",
        "(4611686018427387904,1):(1,0)",
        "9223372036854775807:1",
    ];
    for text in huge {
        let error = refused(draw::layout(&layout(text), &options()));
        for part in ["found:", "required: at most 16384 cells", "because:", "help:"] {
            assert!(error.contains(part), "{error}");
        }
    }
    // The limit can be raised, and lowered, but not without bound.
    let all = Options { most_cells: i64::MAX };
    assert!(draw::layout(&layout("(129,128):(1,129)"), &all).is_ok());
    assert!(refused(draw::layout(&layout("(65537,1):(1,0)"), &all)).contains("at most 65536"));
    assert!(refused(draw::layout(&layout("1:0"), &Options { most_cells: -1 })).contains("at most 0"));

    let tile = "(4,4)".parse().expect("a shape");
    let outside = refused(draw::tv(&layout("(4,5):(1,4)"), &tile, &options()));
    assert!(outside.contains("T0/V4 is index 16") && outside.contains("0 to 15"), "{outside}");
    assert!(refused(draw::tv(&layout("(4,4):(-1,4)"), &tile, &options())).contains("index -1"));
    assert!(refused(draw::tv(&layout("16:1"), &tile, &options())).contains("rank 2"));
    assert!(refused(draw::tv(&layout("(4,4):(1@0,1@1)"), &tile, &options())).contains("integers"));
    let flat = "16".parse().expect("a shape");
    assert!(refused(draw::tv(&layout("(4,4):(1,4)"), &flat, &options())).contains("(rows,columns)"));
    let many = refused(draw::tv(&layout("(1048576,1048576):(0,0)"), &tile, &options()));
    assert!(many.contains("1048576 x 1048576"), "{many}");

    let unit = layout("4:1");
    let basis = layout("(2,2):(1@0,1@1)");
    assert!(refused(draw::operation("coalesce", &[("A", &basis)], &unit, &options())).contains("strides"));
    let gmma = MmaAtom::named("SM90_64x256x16_F32F16F16_SS").expect("an atom");
    assert!(refused(draw::mma(&gmma, &options())).contains("at most 16384 cells"));
    assert!(draw::mma(&gmma, &Options { most_cells: 1 << 15 }).is_ok());

    for (bytes, vector) in [(3, 1), (4, 0), (4, 8), (0, 1), (-4, 1), (i64::MAX, i64::MAX), (2, 3)] {
        assert!(SharedAccess::new(bytes, vector).is_err(), "{bytes} x {vector}");
    }
    let access = SharedAccess::new(2, 8).expect("an access");
    for (text, why) in [
        ("Sw<3,3,3> o 0 o (8,9):(9,1)", "whole vectors"),
        ("Sw<3,3,3> o 0 o (2,8):(4611686018427387904,1)", "Overflow"),
        ("Sw<3,3,3> o 9223372036854775807 o (8,8):(8,1)", "Overflow"),
        ("(4,8):(8,1) o 0 o (8,8):(8,1)", "a swizzle as the outer function"),
        ("Sw<3,3,3> o 0 o Sw<1,0,3>", "a layout as the inner function"),
    ] {
        assert!(refused(draw::swizzle(&composed(text), access, &options())).contains(why), "{text}");
    }
}

//! Contract: what is predicted of a launch is what a profiler counted on a GPU, and the naive kernel's loss is predicted
//! within a tenth. The counts are data; `data/h200_counters.txt` and `data/h200_times.txt` say how they were taken.

use cutemplate::arch::{Arch, Targets};
use cutemplate::diagnostic::Code;
use cutemplate::model::{H200, Limit, Prediction};
use cutemplate::plan::{Operand, Plan};
use cutemplate::recipe::{ElementwiseApply, Gemm, Recipe, Sgemm};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::view::{ViewLayout, ViewRef};

fn plan(settings: &str) -> Plan {
    let settings = Settings::parse_lines(&settings.replace(';', "\n"));
    let recipe = ElementwiseApply::from_settings(&settings).expect("settings");
    recipe.plan(&Targets::new([Arch::Sm90a]).expect("not empty")).expect("a recipe")
}

/// As `cutemplate check --problem` predicts: every tensor aligned, and apart.
fn predict(plan: &Plan, problem: &str, ld: Option<i64>) -> Prediction {
    let shape: Vec<i64> = problem.split('x').map(|e| e.parse().expect("an extent")).collect();
    let views = plan.operands().iter().zip(1_u64..).map(|(operand, k)| {
        let layout = operand.layout(&shape, ld).expect("a layout");
        let available = Elements(layout.span().expect("small"));
        ViewRef { dtype: operand.dtype, ptr: k << 48, available, layout, access: operand.access }
    });
    plan.predict(&views.collect::<Vec<_>>()).expect("views that fit").expect("the family has a model")
}

/// A line of data: settings, problem, leading dimension, numbers.
struct Row<'a> {
    settings: &'a str,
    problem: &'a str,
    ld: Option<i64>,
    numbers: Vec<f64>,
}

fn rows(data: &str) -> impl Iterator<Item = Row<'_>> {
    data.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).map(|line| {
        let [settings, problem, ld, numbers] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("four fields: {line}")
        };
        let numbers = numbers.split_whitespace().map(|n| n.parse().expect("a number")).collect();
        Row { settings, problem, ld: ld.parse().ok(), numbers }
    })
}

/// Requests and sectors of what is read, or of what is written.
fn total(prediction: &Prediction, written: bool) -> [f64; 2] {
    let traffic = || prediction.traffic.iter().filter(|t| t.written == written);
    [traffic().map(|t| t.requests).sum::<u64>() as f64, traffic().map(|t| t.sectors).sum::<u64>() as f64]
}

/// nvcc 13.0 stores 16 bytes of 2- or 4-byte elements as two halves, some or all of them: both halves touch every sector.
fn may_be_halved(settings: &str) -> bool {
    !settings.contains("naive") && !settings.contains("i8")
}

#[test]
fn requests_and_sectors_are_those_that_a_profiler_counts() {
    let mut checked = 0;
    for row in rows(include_str!("../data/h200_counters.txt")) {
        let prediction = predict(&plan(row.settings), row.problem, row.ld);
        let [loads, load_sectors, stores, store_sectors, ..] = row.numbers[..] else { panic!("eight numbers") };
        let what = format!("{} {} {:?}\n{prediction}", row.settings, row.problem, row.ld);
        assert_eq!(total(&prediction, false), [loads, load_sectors], "loads of {what}");
        let [requests, sectors] = total(&prediction, true);
        if may_be_halved(row.settings) {
            assert!((requests..=2.0 * requests).contains(&stores), "{stores} stores of {what}");
            assert!((sectors..=2.0 * sectors).contains(&store_sectors), "{store_sectors} sectors stored of {what}");
        } else {
            assert_eq!([requests, sectors], [stores, store_sectors], "stores of {what}");
        }
        checked += 1;
    }
    assert_eq!(checked, 36);
}

/// Where no warp lies across rows, a launch asks for what its rows ask for one by one, wherever each begins in a line of L1.
#[test]
fn requests_of_rows_add_up() {
    let of = [("expr=a + b;dtype=f32;variant=naive", 96, 97), ("expr=a + b;dtype=i8;variant=vectorized", 512, 528)];
    for (settings, columns, pitch) in of {
        let plan = plan(settings);
        let traffic = |first: i64, rows: i64| {
            let views = plan.operands().iter().zip(1_u64..).map(|(operand, k)| {
                let layout = ViewLayout::strided(&[rows, columns], &[pitch, 1]).expect("rank 2");
                let ptr = (k << 48) + (first * pitch) as u64 * operand.dtype.bytes().0;
                ViewRef { dtype: operand.dtype, ptr, available: Elements(1 << 20), layout, access: operand.access }
            });
            plan.predict(&views.collect::<Vec<_>>()).expect("views that fit").expect("a model").traffic
        };
        let counts = |t: &cutemplate::model::Traffic| [t.requests, t.sectors, t.lines, t.lane_bytes];
        let mut sums = vec![[0; 4]; plan.operands().len()];
        for row in 0..70 {
            for (sum, of) in sums.iter_mut().zip(&traffic(row, 1)) {
                sum.iter_mut().zip(counts(of)).for_each(|(sum, count)| *sum += count);
            }
        }
        assert_eq!(traffic(0, 70).iter().map(counts).collect::<Vec<_>>(), sums, "{settings}");
    }
}

/// A long row asks for what its warps ask for one by one, in vectors and where it begins beside them.
#[test]
fn requests_along_a_row_add_up() {
    let of = [
        ("expr=a + b;dtype=f32;variant=naive", 32, 1),
        ("expr=a + b;dtype=f16;variant=naive", 32, 0),
        ("expr=a + b;in=f16:(?,0), f16:(?,1);out=f16:(?,1);variant=naive", 32, 3),
        ("expr=a + b;dtype=i8;variant=vectorized", 512, 0),
        ("expr=a + b;in=f32:(?,0), f32:(?,1);out=f32:(?,1)", 128, 0),
    ];
    for (settings, warp, skipped) in of {
        let plan = plan(settings);
        let traffic = |first: i64, columns: i64| {
            let views = plan.operands().iter().zip(1_u64..).map(|(operand, k)| {
                let stride = i64::from(operand.strides.last() == Some(&cutemplate::plan::ModeStride::Unit));
                let layout = ViewLayout::strided(&[1, columns], &[columns, stride]).expect("rank 2");
                let ptr = (k << 48) + (skipped + first * stride) as u64 * operand.dtype.bytes().0;
                ViewRef { dtype: operand.dtype, ptr, available: Elements(1 << 20), layout, access: operand.access }
            });
            plan.predict(&views.collect::<Vec<_>>()).expect("views that fit").expect("a model").traffic
        };
        let counts = |t: &cutemplate::model::Traffic| [t.requests, t.sectors, t.lines, t.lane_bytes];
        for columns in [50 * warp, 63 * warp + 5] {
            let mut sums = vec![[0; 4]; plan.operands().len()];
            for first in (0..columns).step_by(warp as usize) {
                for (sum, of) in sums.iter_mut().zip(&traffic(first, warp.min(columns - first))) {
                    sum.iter_mut().zip(counts(of)).for_each(|(sum, count)| *sum += count);
                }
            }
            assert_eq!(traffic(0, columns).iter().map(counts).collect::<Vec<_>>(), sums, "{settings}, {columns}");
        }
    }
}

#[test]
fn the_loss_of_the_naive_kernel_is_predicted_within_a_tenth() {
    let mut checked = 0;
    for row in rows(include_str!("../data/h200_times.txt")) {
        let plan = plan(row.settings);
        let (seconds, limit) = predict(&plan, row.problem, row.ld).seconds(&H200);
        let measured = row.numbers[0] * 1e-6;
        let ratio = seconds / measured;
        assert!((0.9..1.1).contains(&ratio), "{}: predicted {seconds:e} s, measured {measured:e} s", row.settings);
        let wide = row.settings.contains("f64");
        assert_eq!(limit, if wide { Limit::Bandwidth } else { Limit::Latency }, "{}", row.settings);
        checked += 1;
    }
    assert_eq!(checked, 6);
}

/// Views of a product without gaps, far apart, whatever memory they take.
fn views(plan: &Plan, [m, n, k]: [i64; 3], batches: Option<i64>) -> Vec<ViewRef> {
    let view = |(operand, place): (&Operand, u64)| {
        let [rows, cols] = match operand.name {
            "A" => [m, k],
            "B" => [k, n],
            _ => [m, n],
        };
        let shape: Vec<i64> = [rows, cols].into_iter().chain(batches).collect();
        let layout = operand.layout(&shape, None).expect("a layout");
        let available = Elements(layout.span().expect("in an address space"));
        ViewRef { dtype: operand.dtype, ptr: place << 60, available, layout, access: operand.access }
    };
    plan.operands().iter().zip(1..).map(view).collect()
}

fn product(settings: &str, [m, n, k, l]: [i64; 4]) -> (Plan, Vec<ViewRef>) {
    let recipe = Sgemm::from_settings(&Settings::parse_lines(&settings.replace(';', "\n"))).expect("settings");
    let plan = recipe.plan(&Targets::default()).expect("a recipe");
    let views = views(&plan, [m, n, k], recipe.batched.then_some(l));
    (plan, views)
}

#[test]
fn counts_of_any_launch_that_binds_are_right_or_the_largest() {
    let huge = [
        ("variant=block_2d", [1 << 21, 1 << 21, 1 << 21, 1]),
        ("variant=naive;tile=16x16x1;thread=1x1", [1 << 19, 1 << 28, 1 << 28, 1]),
        ("variant=pipelined;batched=true", [1 << 20, 1 << 20, 1 << 20, 1 << 14]),
        ("variant=pipelined;split_k=64", [1 << 10, 1 << 20, 1 << 30, 1]),
        ("variant=pipelined;wave=264", [1 << 20, 1 << 20, 1 << 30, 1]),
    ];
    for (settings, extents) in huge {
        let (plan, views) = product(settings, extents);
        let prediction = plan.predict(&views).unwrap_or_else(|e| panic!("{settings}: {e}")).expect("a model");
        let work = prediction.work.as_ref().expect("a product works");
        let flop = extents.iter().fold(2_u128, |product, e| product * u128::try_from(*e).expect("positive"));
        assert_eq!(u128::from(work.flop), flop.min(u64::MAX.into()), "{settings}");
        let (seconds, _) = prediction.seconds(&H200);
        // No machine computes 2^64 operations in a day.
        assert!(seconds.is_finite() && seconds > 3600.0, "{settings}: {seconds} s");
        assert!(!prediction.to_string().is_empty());
    }
    // One row, far from the next: addresses of rows that are not there are looked at, and are no numbers of 64 bits.
    let (plan, mut views) = product("variant=vectorized", [1, 4, 4, 1]);
    for view in &mut views {
        let shape = view.layout.shape().to_vec();
        view.layout = ViewLayout::strided(&shape, &[i64::MAX / 16, 1]).expect("rank 2");
        view.available = Elements(view.layout.span().unwrap_or(4));
    }
    views[1].layout = ViewLayout::matrix([4, 4], i64::MAX / 64);
    views[1].available = Elements(views[1].layout.span().expect("fits"));
    views[1].ptr = 0;
    plan.predict(&views).expect("views that fit").expect("a model");
}

#[test]
fn the_workspace_of_parts_of_k_is_reached_by_64_bit_strides() {
    let settings = "variant=pipelined;split_k=2";
    let bind = |m: i64, n: i64| {
        let (plan, views) = product(settings, [m, n, 64, 1]);
        plan.bind_with(&views, &[1.0, 0.0])
    };
    // The second kernel numbers the elements of D by 32-bit integers, those of its last block past the end too.
    let (rows, columns) = (1 << 15, (1 << 16) - 1);
    let most = i64::from(i32::MAX) - 256;
    assert!(rows * columns <= most && (rows + 1) * columns > most);
    let binding = bind(rows, columns).expect("the most that fits");
    let bytes = u64::try_from(rows * columns * 2 * 4).expect("positive");
    assert_eq!(binding.workspace().map(|w| w.bytes.0), Some(bytes));
    let refused = bind(rows + 1, columns).expect_err("too many");
    assert_eq!(refused.diagnostics()[0].code, Code::ProblemTooLarge, "{refused}");
    // A row past the edge begins beyond 2^31 elements: the text multiplies in 64 bits.
    let (plan, _) = product(settings, [rows, columns, 64, 1]);
    let text = cutemplate::emit::render(&plan).header().text.clone();
    let strides: Vec<&str> =
        text.split("params.workspace").skip(1).filter_map(|t| t.split("make_stride(").nth(1)).collect();
    assert_eq!(strides.len(), 2, "the kernel and the second one");
    assert!(
        strides.iter().all(|s| s.starts_with("int64_t(params.n), _1{}, int64_t(params.m) * params.n")),
        "{strides:?}"
    );
}

/// A factor that stays in its stages is read once by each CTA: B where clusters have the same columns of tiles again, A where they have the
/// same rows.
#[test]
fn what_stays_in_its_stages_is_read_once() {
    let sectors = |settings: &str| {
        let settings = format!("schedule=pingpong\ntile=128x128x64\ncluster=1x2\n{settings}");
        let recipe = Gemm::from_settings(&Settings::parse_lines(&settings)).expect("settings");
        let plan = recipe.plan(&Targets::new([Arch::Sm90a]).expect("not empty")).expect("a recipe");
        let prediction =
            plan.predict(&views(&plan, [8192, 8192, 128], None)).expect("views that fit").expect("a model");
        let of = |name| prediction.traffic.iter().find(|t| t.operand == name).map_or(0, |t| t.sectors);
        [of("A"), of("B"), of("D")]
    };
    // 64 clusters have 32 tiles each; five stages are no multiple of two k-tiles.
    let [a, b, d] = sectors("stages=5");
    assert_eq!(sectors("stages=6\ngroup=1\nraster=m"), [a, b / 32, d]);
    assert_eq!(sectors("stages=6\ngroup=2\nraster=m"), [a / 32, b, d]);
    assert_eq!(sectors("stages=6\ngroup=1\nraster=n"), [a / 32, b, d]);
    assert_eq!(sectors("stages=6\ngroup=2\nraster=n"), [a, b / 32, d]);
    // With three rows in a group 66 of them are launched, and seven do not divide as many as are resident.
    assert_eq!(sectors("stages=6\ngroup=3\nraster=m"), [a * 132 / 4096, b, d]);
    assert_eq!(sectors("stages=6\ngroup=7\nraster=m"), [a, b, d]);
}

/// E lies as D does, and is stored as D is.
#[test]
fn a_second_output_is_written_as_the_first() {
    let recipe = Gemm::from_settings(&Settings::parse_lines("epilogue=relu(a), a")).expect("settings");
    let plan = recipe.plan(&Targets::new([Arch::Sm90a]).expect("not empty")).expect("a recipe");
    let prediction = plan.predict(&views(&plan, [1000, 520, 64], None)).expect("views that fit").expect("a model");
    let written: Vec<_> = prediction.traffic.iter().filter(|t| t.written).collect();
    assert_eq!(written.iter().map(|t| t.operand).collect::<Vec<_>>(), ["D", "E"]);
    let [d, e] = [written[0], written[1]].map(|t| (t.requests, t.sectors, t.lane_bytes, t.bytes));
    assert_eq!(d, e);
    assert_eq!(d.3, 2 * 1000 * 520);
}

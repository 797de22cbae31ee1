//! Contract: a product is checked before it is timed: what is wrong is reported as wrong, is not timed, and makes the tool fail;
//! what is right is timed in turn with cuBLAS.
//!
//! Driver and cuBLAS are stand-ins (`support/driver.c`, `support/cublas.c`) that multiply, so all of this runs without a GPU.
#![cfg(all(feature = "cli", target_os = "linux"))]

use crate::driver;

use cutemplate::arch::{Arch, Targets};
use cutemplate::dtype::DType;
use cutemplate::launch::{AnyKernel, Gpu, Protocol};
use cutemplate::plan::Plan;
use cutemplate::recipe::sgemm::Variant;
use cutemplate::recipe::{Gemm, Recipe, Sgemm};
use cutemplate::verify::{Fill, TensorLayout};
use driver::{fatbin, with_driver};
use expect_test::expect;

use crate::lab::{BenchError, How, ProductReport, products};

/// Kernels whose parameters the stand-in knows.
fn plans() -> Vec<Plan> {
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let plan = |(variant, name)| Sgemm::rung(variant).plan_as(name, &targets).expect("a right recipe");
    [(Variant::Naive, "first"), (Variant::Coalesced, "second"), (Variant::Naive, "third")].map(plan).into()
}

fn measure(scalars: &[f64], inputs: (Fill, u64), ld: Option<i64>) -> Result<ProductReport, BenchError> {
    let shapes = [[33, 20], [20, 17], [33, 17], [33, 17]];
    measure_all(plans(), &shapes, scalars, inputs, ld)
}

fn measure_all(
    plans: Vec<Plan>,
    shapes: &[[i64; 2]],
    scalars: &[f64],
    inputs: (Fill, u64),
    ld: Option<i64>,
) -> Result<ProductReport, BenchError> {
    let gpu = Gpu::find().expect("the stand-in");
    // SAFETY: the stand-in runs nothing.
    let load = |plan| unsafe { AnyKernel::load_unchecked(&gpu, plan, &fatbin()) }.expect("loads");
    let kernels: Vec<AnyKernel> = plans.into_iter().map(load).collect();
    let operands = kernels[0].plan().operands().iter().zip(shapes);
    let layouts: Vec<TensorLayout> = operands.map(|(o, shape)| o.layout(shape, ld).expect("small").into()).collect();
    let protocol = Protocol { warmup: 1, timings: 3, max_batch: 2, ..Protocol::default() };
    let kernels: Vec<&AnyKernel> = kernels.iter().collect();
    products(&gpu, &kernels, &layouts, scalars, inputs, How::default(), &protocol)
}

/// What a run with these settings of the stand-in says.
fn told(test: &str, settings: &[(&str, &str)], measure: impl FnOnce() -> Result<ProductReport, BenchError>) -> String {
    let size = plans()[0].params().size().to_string();
    let settings = [&[("STAND_IN_PRODUCTS", "1"), ("STAND_IN_PARAM_SIZE", &*size)], settings].concat();
    let done = with_driver(&format!("products::{test}"), &settings, || match measure() {
        Ok(report) => {
            let json = serde_json::to_string(&report).expect("text");
            assert_eq!(serde_json::from_str::<ProductReport>(&json).expect("the same"), report);
            report.to_string()
        }
        Err(error) => format!("{error}"),
    });
    done.told
}

#[test]
fn what_is_right_is_timed_in_turn_with_cublas() {
    let report =
        told("what_is_right_is_timed_in_turn_with_cublas", &[], || measure(&[1.0, 0.0], (Fill::Integers, 1), None));
    expect![[r#"
        33 x 17 x 20, integers inputs, alpha = 1, beta = 0, on Stand-in
          cuBLAS: A @ B
          baseline       0.00 TFLOP/s      25.00 us  twice: 1.0000
          ratio 1.0000   0.00 TFLOP/s      25.00 us (quartiles 25.00, 25.00)  40 registers  first
          ratio 1.0000   0.00 TFLOP/s      25.00 us (quartiles 25.00, 25.00)  40 registers  second
          ratio 1.0000   0.00 TFLOP/s      25.00 us (quartiles 25.00, 25.00)  40 registers  third
          3 right: every element of D equals cuBLAS's, up to the order of summation
          3 timings of each in turn, launched one by one, operands in L2 as far as they fit"#]]
    .assert_eq(&report);
}

#[test]
fn n01_inputs_scalars_and_padding_are_right_too() {
    let run = || measure(&[0.5, 2.0], (Fill::Normal, 3), Some(40));
    let report = told("n01_inputs_scalars_and_padding_are_right_too", &[], run);
    assert!(
        report.contains("normal inputs, alpha = 0.5, beta = 2, on") && report.contains("\n  3 right: "),
        "{report}"
    );
    assert!(!report.contains("WRONG"), "{report}");
}

#[test]
fn what_is_wrong_is_reported_and_not_timed() {
    for (test, fill) in [("integers", Fill::Integers), ("normal", Fill::Normal)] {
        let name = "what_is_wrong_is_reported_and_not_timed";
        let report = told(name, &[("STAND_IN_WRONG", "1"), ("FILL", test)], || {
            let fill = if std::env::var("FILL").is_ok_and(|f| f == "normal") { Fill::Normal } else { Fill::Integers };
            measure(&[1.0, 0.0], (fill, 1), None)
        });
        let wrong =
            "\n  WRONG, not timed: second: 1 of 561 elements wrong; 0 elements written outside\n    (32,16): found ";
        assert!(report.contains(wrong), "{fill}: {report}");
        assert!(report.contains("registers  first\n") && report.contains("registers  third\n"), "{report}");
        assert!(!report.contains("registers  second") && report.contains("\n  2 right: "), "{report}");
    }
}

/// A and B of f16, sums of f32: cuBLASLt's product of those types, and the bound of tensor cores.
#[test]
fn products_of_f16_are_checked_by_cublas_too() {
    let targets = Targets::new([Arch::Sm80]).expect("not empty");
    let recipe = Gemm { out: DType::F32, ..Default::default() };
    let plan = |name| recipe.plan_as(name, &targets).expect("a right recipe").texts()[0].clone();
    let plans = || vec![plan("first"), plan("second")];
    let size = plans()[0].params().size().to_string();
    let name = "products::products_of_f16_are_checked_by_cublas_too";
    let settings = [("STAND_IN_HALF_PRODUCTS", "1"), ("STAND_IN_PARAM_SIZE", &*size)];
    // Each kernel has two entries, of which the first packs rows of 23 elements.
    for (wrong, k) in [(None, "24"), (Some("3"), "24"), (None, "23")] {
        let settings = settings.into_iter().chain([("K", k)]);
        let settings: Vec<_> = settings.chain(wrong.map(|entry| ("STAND_IN_WRONG", entry))).collect();
        let done = with_driver(name, &settings, || {
            let k = std::env::var("K").ok().and_then(|k| k.parse().ok()).expect("set above");
            let shapes = [[33, k], [k, 17], [33, 17]];
            measure_all(plans(), &shapes, &[], (Fill::Normal, 1), None)
                .map_or_else(|error| error.to_string(), |report| report.to_string())
        });
        let judged = match wrong {
            None => done.told.contains("  2 right: every element of D equals cuBLAS's") && !done.told.contains("WRONG"),
            Some(_) => {
                done.told.contains("  1 right: ")
                    && done.told.contains("WRONG, not timed: second_sm80: 1 of 561 elements")
            }
        };
        let problem = format!("33 x 17 x {k}, normal inputs, on Stand-in");
        assert!(judged && done.told.starts_with(&problem), "{}", done.told);
        assert_eq!(done.log.contains("from the pool"), k == "23", "a workspace: {}", done.log);
    }
}

#[test]
fn what_writes_nothing_is_wrong() {
    let run = || measure(&[1.0, 0.0], (Fill::Normal, 1), None);
    let report = told("what_writes_nothing_is_wrong", &[("STAND_IN_IDLE", "2")], run);
    assert!(
        report.contains("WRONG, not timed: third: 561 of 561 elements wrong, 561 of them never written"),
        "{report}"
    );
}

#[test]
fn a_failure_names_its_kernel_or_cublas() {
    let name = "a_failure_names_its_kernel_or_cublas";
    let run = || measure(&[1.0, 0.0], (Fill::Normal, 1), None);
    let launch = told(name, &[("STAND_IN_LAUNCH", "700")], run);
    assert_eq!(launch, "kernel `first`: cuLaunchKernel: STAND_IN_ERROR_700 (as it was told to)");
    let cublas = told(name, &[("STAND_IN_CUBLAS", "13")], run);
    assert!(cublas.starts_with("cuBLAS: "), "{cublas}");
}

/// The tool on the stand-ins, with kernels that nvcc compiles: those of the catalogue, for the same architectures.
pub(crate) fn bench(arguments: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, Vec<serde_json::Value>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cutemplate"));
    command
        .args(["bench", "sgemm", "--arch", "sm_80", "--arch", "sm_90a", "--timings", "2", "--warm", "--json"])
        .args(arguments);
    let size = plans()[0].params().size().to_string();
    command.env("LD_LIBRARY_PATH", driver::library()).env("STAND_IN_PRODUCTS", "1").env("STAND_IN_PARAM_SIZE", size);
    let output = command.envs(settings.iter().copied()).output().expect("the tool runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let objects = text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    (output.status.code(), objects, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_tool_fails_where_a_kernel_is_wrong() {
    let rungs = ["--variant", "naive", "--variant", "smem_tiled", "--problem", "40x30x20", "--problem", "5x64x7"];
    for fill in ["integers", "normal"] {
        let arguments = [&rungs[..], &["--fill", fill]].concat();
        let (code, reports, said) = bench(&arguments, &[]);
        assert_eq!((code, reports.len()), (Some(0), 2), "{said}");
        for (report, problem) in reports.iter().map(|r| &r["bench"]).zip([[40, 30, 20, 1], [5, 64, 7, 1]]) {
            assert_eq!((&report["problem"], &report["wrong"]), (&problem.as_slice().into(), &serde_json::json!([])));
            let names = [&report["kernels"][0]["kernel"], &report["kernels"][1]["kernel"]];
            assert_eq!(names, ["sgemm_naive_tt", "sgemm_smem_tiled_tt"]);
        }
        let (code, reports, said) = bench(&arguments, &[("STAND_IN_WRONG", "0")]);
        assert_eq!((code, reports.len()), (Some(1), 2), "{said}");
        for report in reports.iter().map(|r| &r["bench"]) {
            assert_eq!(report["wrong"][0]["kernel"], "sgemm_naive_tt", "{report}");
            assert_eq!(report["kernels"].as_array().map(Vec::len), Some(1), "{report}");
        }
    }
}

//! Contract: products on tensor cores are compared with the fastest algorithm that cuBLASLt proposes, with the same epilogue where it has
//! one; on request for seconds on end, with clock and energy, and with what memory allows.
//!
//! Driver, cuBLASLt and NVML are stand-ins (`support/driver.c`, `support/cublaslt.c`, `support/nvml.c`), so all of this runs without a GPU.
#![cfg(all(feature = "cli", target_os = "linux"))]

use crate::driver;

use cutemplate::arch::{Arch, Targets};
use cutemplate::dtype::DType;
use cutemplate::launch::{AnyKernel, Gpu, Protocol};
use cutemplate::plan::{Operand, Plan};
use cutemplate::recipe::{Gemm, Recipe, TensorSpec};
use cutemplate::verify::Fill;
use driver::{fatbin, with_driver};

use crate::lab::{BenchError, How, ProductReport, products};

/// The kernel that the stand-in computes: f16 in, f32 out.
fn plan() -> Plan {
    let targets = Targets::new([Arch::Sm80]).expect("not empty");
    let recipe = Gemm { out: DType::F32, ..Default::default() };
    recipe.plan_as("gemm", &targets).expect("a right recipe").texts()[0].clone()
}

fn measure(plan: Plan, how: How) -> Result<ProductReport, BenchError> {
    let gpu = Gpu::find().expect("the stand-in");
    // SAFETY: the stand-in runs nothing.
    let kernel = unsafe { AnyKernel::load_unchecked(&gpu, plan, &fatbin()) }.expect("loads");
    let shapes = [&[[5, 8, 2], [8, 3, 2]][..], &[[5, 3, 2]; 3]].concat();
    let operands = kernel.plan().operands().iter().zip(&shapes);
    let layout = |(o, shape): (&Operand, &[i64; 3])| o.layout(&shape[..o.strides.len()], None).expect("small").into();
    let layouts: Vec<_> = operands.map(layout).collect();
    let protocol = Protocol { warmup: 1, timings: 3, max_batch: 2, ..Protocol::default() };
    let scalars: Vec<f64> = kernel.plan().scalars().iter().map(|_| 0.5).collect();
    products(&gpu, &[&kernel], &layouts, &scalars, (Fill::Small, 1), how, &protocol)
}

/// The report of a run with these settings of the stand-ins, or its error.
fn told(test: &str, settings: &[(&str, &str)], how: How) -> Result<ProductReport, String> {
    let size = plan().params().size().to_string();
    // No log: its lines take longer than the launches.
    let usual = [("STAND_IN_HALF_PRODUCTS", "1"), ("STAND_IN_PARAM_SIZE", &*size), ("STAND_IN_LOG", "")];
    let settings = [&usual, settings].concat();
    let done = with_driver(&format!("baseline::{test}"), &settings, || match measure(plan(), how) {
        Ok(report) => serde_json::to_string(&report).expect("text"),
        Err(error) => format!("failed: {error}"),
    });
    match done.told.strip_prefix("failed: ") {
        Some(error) => Err(error.to_owned()),
        None => Ok(serde_json::from_str(&done.told).unwrap_or_else(|e| panic!("{e}: {}", done.told))),
    }
}

#[test]
fn the_fastest_algorithm_of_all_that_are_proposed_is_the_baseline() {
    let name = "the_fastest_algorithm_of_all_that_are_proposed_is_the_baseline";
    let report = told(name, &[], How::default()).expect("it measures");
    let base = &report.baseline;
    // Of four one is refused by its state and one where it is launched. To the 50 us between any two events the third adds 100 and
    // is timed in batches of two; the first adds 300.
    assert_eq!((base.library.as_str(), base.algorithm, base.tried), ("cuBLASLt 13.0.2", 2, 2), "{report}");
    assert!((base.first_over_fastest - 350.0 / 125.0).abs() < 1e-6, "{report}");
    assert!((base.seconds - 125e-6).abs() < 1e-9, "{report}");
    assert!(
        report
            .to_string()
            .contains("\n  cuBLASLt 13.0.2: A @ B; algorithm 2 of 2 tried, the heuristics' first takes 2.800 of it\n")
    );
    assert_eq!((report.kernels.len(), report.wrong.len()), (1, 0), "{report}");
    assert_eq!((report.ceilings, base.sustained), (None, None));
}

#[test]
fn without_algorithms_there_is_no_baseline() {
    let name = "without_algorithms_there_is_no_baseline";
    for (has, why) in [("0", "its heuristics propose nothing for these operands"), ("9", "")] {
        let told = told(name, &[("STAND_IN_LT_ALGORITHMS", has)], How::default());
        match (told, why) {
            (Err(error), why) if !why.is_empty() => assert_eq!(error, format!("cuBLAS: cublasLt: {why}")),
            (Ok(report), "") => assert_eq!(report.baseline.tried, 7, "{report}"),
            (told, _) => panic!("{told:?}"),
        }
    }
}

#[test]
fn seconds_on_end_have_a_clock_and_an_energy() {
    let name = "seconds_on_end_have_a_clock_and_an_energy";
    let report = told(name, &[], How { sustained_seconds: 0.1, ..How::default() }).expect("it measures");
    for sustained in [report.baseline.sustained, report.kernels[0].sustained] {
        let sustained = sustained.expect("it was asked for");
        assert_eq!(sustained.sm_mhz, Some(1500));
        // By the clock of a machine that does other things as well, so nothing is said of how many.
        let watts = sustained.watts.expect("it counts");
        assert!(watts > 0.0, "{watts}");
        let joules = sustained.joules_per_tflop.expect("it counts");
        assert!((joules * sustained.tflop_per_s / watts - 1.0).abs() < 1e-9, "{joules}");
    }
    let text = report.to_string();
    assert!(text.contains("  sustained over 0.1 s: baseline ") && text.contains(" J/TFLOP"), "{text}");
    assert_eq!(report.no_meter, None);
}

#[test]
fn what_the_driver_does_not_tell_is_left_out() {
    let name = "what_the_driver_does_not_tell_is_left_out";
    for settings in [("STAND_IN_NVML", "9"), ("STAND_IN_NO_ENERGY", "1")] {
        let report = told(name, &[settings], How { sustained_seconds: 0.02, ..How::default() }).expect("it measures");
        let sustained = report.baseline.sustained.expect("it was asked for");
        assert_eq!((sustained.watts, sustained.joules_per_tflop), (None, None), "{report}");
        if settings.0 == "STAND_IN_NVML" {
            assert_eq!(sustained.sm_mhz, None);
            assert!(report.to_string().contains("    without clocks or energy: NVML: "), "{report}");
        } else {
            assert_eq!((sustained.sm_mhz, report.no_meter), (Some(1500), None));
        }
    }
}

#[test]
fn memory_is_timed_beside_the_kernels() {
    let name = "memory_is_timed_beside_the_kernels";
    let report = told(name, &[], How { ceilings: true, ..How::default() }).expect("it measures");
    let ceilings = report.ceilings.clone().expect("it was asked for");
    // 5 x 3 elements of f32; half of all bytes read, half written.
    let bytes = [60.0, (5.0 * 8.0 + 8.0 * 3.0) * 2.0 + 60.0];
    let rates = [ceilings.fill_tb_per_s * ceilings.fill_seconds, ceilings.copy_tb_per_s * ceilings.copy_seconds];
    for (bytes, rate) in bytes.into_iter().zip(rates) {
        assert!((rate * 1e12 - bytes).abs() < 1e-3, "{report}");
    }
    assert!(report.to_string().contains("\n  memset of D "), "{report}");
}

#[test]
fn the_epilogue_is_the_kernel_s_where_cublaslt_has_it() {
    let name = "baseline::the_epilogue_is_the_kernel_s_where_cublaslt_has_it";
    let targets = Targets::new([Arch::Sm80]).expect("not empty");
    let plan = |epilogue: &str, aux: &str| {
        let (epilogue, spec): (_, TensorSpec) = (epilogue.parse().expect("a function"), aux.parse().expect("a row"));
        // A vector for each matrix of a batch has a third stride.
        let (dtype, batched) = (spec.dtype, spec.strides.len() == 3);
        let recipe = Gemm { batched, ..Gemm::of(dtype).expect("a factor's type") }.with_epilogue(epilogue, vec![spec]);
        recipe.plan_as("gemm", &targets).expect("a right recipe").texts()[0].clone()
    };
    let own = "|a, b, c; alpha, beta| relu(alpha * a + beta * b + c)";
    for (epilogue, aux, plain, computes) in [
        (own, "f16:(0,1)", "0", "relu(alpha * A @ B + beta * C + bias)"),
        (own, "bf16:(0,1)", "0", "relu(alpha * A @ B + beta * C + bias)"),
        (own, "f16:(0,1,?)", "0", "relu(alpha * A @ B + beta * C + bias)"),
        (own, "f16:(0,1)", "1", "A @ B, since its heuristics propose nothing for the kernels' epilogue"),
        (
            "|a, b, c; alpha, beta| gelu(alpha * a + beta * b + c)",
            "f16:(0,1)",
            "0",
            "A @ B, since cuBLASLt's gelu is the approximation by tanh, which is gelu_tanh here",
        ),
    ] {
        let size = plan(epilogue, aux).params().size().to_string();
        let settings =
            [("STAND_IN_PARAM_SIZE", &*size), ("STAND_IN_LT_PLAIN", plain), ("EPILOGUE", epilogue), ("AUX", aux)];
        let done = with_driver(name, &settings, || {
            let [epilogue, aux] = ["EPILOGUE", "AUX"].map(|name| std::env::var(name).expect("set"));
            let report = measure(plan(&epilogue, &aux), How::default()).expect("measures");
            // The stand-in computes no kernel with an epilogue.
            assert_eq!((report.kernels.len(), report.wrong.len()), (0, 1));
            report.baseline.computes
        });
        assert_eq!(done.told, computes);
    }
}

/// The tool on the stand-ins, with a kernel that nvcc compiles.
#[test]
fn the_tool_draws_what_it_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let chart = folder.path().join("ratios.svg");
    let path = chart.to_str().expect("UTF-8");
    let kernel = ["--variant", "naive", "--problem", "5x4x3", "--problem", "4x4x4"];
    let arguments = [&kernel[..], &["--sustained", "0.01", "--ceilings", "--chart", path]].concat();
    let (code, reports, said) = crate::products::bench(&arguments, &[("STAND_IN_LOG", "")]);
    assert_eq!((code, reports.len()), (Some(0), 2), "{said}");
    for report in reports.iter().map(|report| &report["bench"]) {
        assert_eq!(report["baseline"]["library"], "cuBLAS");
        assert_eq!(report["kernels"][0]["sustained"]["sm_mhz"], 1500, "{report}");
        assert!(report["ceilings"]["fill_seconds"].is_f64(), "{report}");
    }
    let svg = std::fs::read_to_string(&chart).expect("it was drawn");
    for text in ["5x4x3", "4x4x4, sustained", "cuBLAS 1.00", "normal inputs, Stand-in"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
}

//! Contract: whatever the driver answers while a GPU is looked for and a kernel is loaded, the launcher says what is wrong
//! in words and never panics; what is damaged does not reach the driver.
//!
//! The driver is a stand-in (`support/driver.c`) in a child process, so all of this runs without a GPU.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use crate::driver::{Refusals, fatbin, parts, parts_with, plan, sha256, text, with_driver};
use cutemplate::arch::Arch;
use cutemplate::artifact::{Artifact, Code, Parts, Ptx, Text};
use cutemplate::launch::{AnyKernel, Gpu, Kernel};
use cutemplate::recipe::ElementwiseAdd;
use expect_test::{Expect, expect};

fn no_gpu(test: &str, settings: &[(&str, &str)], expected: Expect) {
    let done = with_driver(&format!("load::{test}"), settings, || Gpu::find().expect_err("no GPU").to_string());
    expected.assert_eq(&done.told);
}

#[test]
fn a_driver_that_is_too_old() {
    no_gpu(
        "a_driver_that_is_too_old",
        &[("STAND_IN_VERSION", "12040")],
        expect![[r#"
        no GPU: found a driver for CUDA 12.4, required one for CUDA 13.0 or later
          help: update NVIDIA's driver (580 or later)"#]],
    );
}

#[test]
fn a_driver_that_does_not_start() {
    no_gpu(
        "a_driver_that_does_not_start",
        &[("STAND_IN_INIT", "34")],
        expect![[r#"
        no GPU: cuInit: STAND_IN_ERROR_34 (as it was told to)
          help: the toolkit's stub of libcuda was found first: take it off LD_LIBRARY_PATH"#]],
    );
}

#[test]
fn a_driver_without_devices() {
    no_gpu(
        "a_driver_without_devices",
        &[("STAND_IN_DEVICES", "0")],
        expect![[r#"
            no GPU: the driver finds no device
              help: nvidia-smi lists what the driver sees; CUDA_VISIBLE_DEVICES can hide devices"#]],
    );
}

#[test]
fn a_device_that_is_taken() {
    no_gpu(
        "a_device_that_is_taken",
        &[("STAND_IN_CONTEXT", "46")],
        expect![[r#"
        no GPU: cuDevicePrimaryCtxRetain: STAND_IN_ERROR_46 (as it was told to)
          help: another process holds the device exclusively"#]],
    );
}

#[test]
fn a_gpu_tells_what_it_is() {
    let done = with_driver("load::a_gpu_tells_what_it_is", &[], || {
        let gpu = Gpu::find().expect("the stand-in");
        assert_eq!((gpu.capability(), gpu.sms(), gpu.l2().0, gpu.driver()), ((9, 0), 132, 60 << 20, (13, 0)));
        gpu.to_string()
    });
    expect!["Stand-in, compute capability 9.0, 132 SMs, driver for CUDA 13.0"].assert_eq(&done.told);
}

fn not_loaded(test: &str, settings: &[(&str, &str)], targets: &[Arch], expected: Expect) {
    let done = with_driver(&format!("load::{test}"), settings, || {
        let gpu = Gpu::find().expect("the stand-in");
        // SAFETY: the stand-in runs nothing.
        unsafe { AnyKernel::load_unchecked(&gpu, plan(targets), &fatbin()) }.expect_err("refused").to_string()
    });
    expected.assert_eq(&done.told);
}

const BOTH: &[Arch] = &[Arch::Sm80, Arch::Sm90a];

#[test]
fn a_fatbin_for_another_architecture() {
    let settings = [("STAND_IN_CAPABILITY", "89")];
    not_loaded(
        "a_fatbin_for_another_architecture",
        &settings,
        &[Arch::Sm90a],
        expect![[r#"
        kernel `add` has no code for this GPU
          found:    code for sm_90a
          required: code that runs on compute capability 8.9 (Stand-in)
          because:  SASS runs on its own major version only, and PTX on its own version and later ones
          help:     add sm_89 to the architectures of the build"#]],
    );
}

#[test]
fn a_device_that_is_newer_than_every_architecture() {
    let settings = [("STAND_IN_CAPABILITY", "130")];
    not_loaded(
        "a_device_that_is_newer_than_every_architecture",
        &settings,
        &[Arch::Sm90a],
        expect![[r#"
        kernel `add` has no code for this GPU
          found:    code for sm_90a
          required: code that runs on compute capability 13.0 (Stand-in)
          because:  SASS runs on its own major version only, and PTX on its own version and later ones
          help:     add sm_120 to the architectures of the build"#]],
    );
}

#[test]
fn a_device_that_is_older_than_every_architecture() {
    let settings = [("STAND_IN_CAPABILITY", "70")];
    not_loaded(
        "a_device_that_is_older_than_every_architecture",
        &settings,
        BOTH,
        expect![[r#"
        kernel `add` has no code for this GPU
          found:    code for sm_80, sm_90a
          required: code that runs on compute capability 7.0 (Stand-in)
          because:  SASS runs on its own major version only, and PTX on its own version and later ones
          help:     there is none: the oldest GPUs that kernels are built for are sm_75"#]],
    );
}

#[test]
fn a_fatbin_in_which_the_driver_finds_no_code() {
    let settings = [("STAND_IN_LOAD", "209")];
    not_loaded(
        "a_fatbin_in_which_the_driver_finds_no_code",
        &settings,
        BOTH,
        expect![[r#"
            kernel `add` has no code for this GPU
              found:    code for sm_80, sm_90a
              required: code that runs on compute capability 9.0 (Stand-in)
              because:  SASS runs on its own major version only, and PTX on its own version and later ones
              help:     the fatbin lacks code that its ABI promises; build it again"#]],
    );
}

#[test]
fn a_driver_that_is_older_than_the_ptx() {
    let settings = [("STAND_IN_LOAD", "222"), ("STAND_IN_CAPABILITY", "86")];
    not_loaded(
        "a_driver_that_is_older_than_the_ptx",
        &settings,
        BOTH,
        expect![[r#"
        kernel `add` has no code for this GPU
          found:    code for sm_80, sm_90a
          required: code that runs on compute capability 8.6 (Stand-in)
          because:  SASS runs on its own major version only, and PTX on its own version and later ones
          help:     the driver is too old for the PTX: update it, or add sm_86 to the architectures of the build for SASS"#]],
    );
}

#[test]
fn a_fatbin_that_the_driver_refuses() {
    not_loaded(
        "a_fatbin_that_the_driver_refuses",
        &[("STAND_IN_LOAD", "200")],
        BOTH,
        expect!["kernel `add`: cuModuleLoadData: STAND_IN_ERROR_200 (as it was told to)"],
    );
}

#[test]
fn a_fatbin_of_another_kernel() {
    not_loaded(
        "a_fatbin_of_another_kernel",
        &[("STAND_IN_ENTRY", "sub")],
        BOTH,
        expect!["kernel `add`: cuModuleGetFunction: STAND_IN_ERROR_500 (as it was told to)"],
    );
}

#[test]
fn a_kernel_with_other_parameters() {
    not_loaded(
        "a_kernel_with_other_parameters",
        &[("STAND_IN_PARAM_SIZE", "48")],
        BOTH,
        expect![[r#"
            kernel `add`: found a parameter of 48 bytes in the fatbin, required one of 64 bytes
              help: the fatbin is not of this plan; build it again"#]],
    );
}

#[test]
fn a_kernel_without_parameters() {
    not_loaded(
        "a_kernel_without_parameters",
        &[("STAND_IN_PARAMS", "0")],
        BOTH,
        expect![[r#"
            kernel `add`: found no parameter in the fatbin, required one of 64 bytes
              help: the fatbin is not of this plan; build it again"#]],
    );
}

#[test]
fn a_kernel_with_too_many_registers() {
    not_loaded(
        "a_kernel_with_too_many_registers",
        &[("STAND_IN_MAX_THREADS", "128")],
        BOTH,
        expect![[r#"
        kernel `add`: found room for 128 threads in a block with 40 registers each, required 256
          help: a smaller thread layout, or fewer values in each thread"#]],
    );
}

#[test]
fn damaged_fatbins_and_foreign_artifacts_do_not_reach_the_driver() {
    let done = with_driver("load::damaged_fatbins_and_foreign_artifacts_do_not_reach_the_driver", &[], || {
        let gpu = Gpu::find().expect("the stand-in");
        let mut refused = Refusals::default();
        let mut load = |parts| {
            // SAFETY: the stand-in runs nothing.
            let artifact = unsafe { Artifact::new(parts) };
            refused.add(Kernel::<ElementwiseAdd>::load(&gpu, &artifact));
        };
        let compiled_to = |code| parts_with(Text { code, ..text() });
        let mut changed = fatbin();
        changed[79] ^= 1;
        for bytes in [vec![], fatbin()[..79].to_vec(), b"not a fatbin".to_vec(), changed] {
            load(compiled_to(Code::Fatbin { bytes: bytes.leak(), sha256: sha256(), ptx: Ptx::Text("") }));
        }
        load(compiled_to(Code::Fatbin { bytes: fatbin().leak(), sha256: "none", ptx: Ptx::Text("") }));
        load(compiled_to(Code::Stub { why: "nvcc not found, and fetching is not allowed" }));
        load(Parts { family: "sgemm", ..parts() });
        load(parts_with(Text { digest: "none", ..text() }));
        load(parts_with(Text { abi: "{}", ..text() }));
        let other = text().abi.replace("\"threads\":256", "\"threads\":512").leak();
        load(parts_with(Text { abi: other, ..text() }));
        refused.0
    });
    assert!(!done.log.contains("load"), "the driver was asked");
    expect![[r#"
        kernel `add`: its fatbin is empty
          help: build it again
        kernel `add`: its fatbin has 79 bytes, and 80 by its header: it is truncated
          help: build it again
        kernel `add`: its fatbin begins with [6e, 6f, 74, 20], and each with [50, ed, 55, ba]
          help: build it again
        kernel `add`: its fatbin is not the one that was compiled
          found:    sha256 94b1ea82a7416d69f9a405477894c213c3ff45d607cf7c08068417713c0e4fce
          required: sha256 4995c14b0095b369c154f5831577374a8fc9a1781972dd346e52776584cb50f7, which the build script wrote down
          because:  the GPU runs whatever is loaded
          help:     build it again
        kernel `add`: its fatbin is not the one that was compiled
          found:    sha256 4995c14b0095b369c154f5831577374a8fc9a1781972dd346e52776584cb50f7
          required: sha256 none, which the build script wrote down
          because:  the GPU runs whatever is loaded
          help:     build it again
        kernel `add` is a stub: there is nothing that a GPU could run
          because:  nvcc not found, and fetching is not allowed
          help:     build it again without CUTEMPLATE_STUB, where nvcc is found or CUTEMPLATE_FETCH=1 fetches it
        the artifact is a kernel of family `sgemm`, the type asks for `elementwise_add`
        the digest of its ABI: found `none`, required the 64 hexadecimal digits of a sha256
        the ABI of a kernel cannot be read: missing field `family` at line 1 column 2
          because: it was written by another version of cutemplate, or is damaged
          help:    build the kernel again, with the version in [dependencies]
        kernel `add`: its ABI means something else here than where it was compiled
          found:    e5c0135675e19a3b087e1079ed4623a8246766eb4b5f8f2a36def0dc52492350
          required: 05e5493db621035b59557ab782eade240669fa88d31d6b46adbd6eda54fce7ad, which the build wrote down
          because:  a launch with other grids or parameters would touch other memory
          help:     build it again, or use the version of cutemplate that built it
    "#]]
    .assert_eq(&done.told);
}

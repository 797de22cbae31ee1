//! Buffers of a file pass from one launch to the next: their bytes, which of them are initialised, and their addresses.

use std::fs;

use ptx_exec::{Data, DeviceMemory, FindingKind, LaunchFile, Modes, Module, RunOptions};

use super::{elements, error_of, folder, npy, run};

/// `copy`: b[0] = a[0]. `store`: b[0] = the address of a. `follow`: b[0] = the element that a[0] is the address of.
const KERNELS: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n\
    .visible .entry copy(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [a];\n\
    ld.param.u64 %d2, [b];\nld.global.b32 %r1, [%d1];\nst.global.b32 [%d2], %r1;\nret;\n}\n\
    .visible .entry store(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %d<3>;\nld.param.u64 %d1, [a];\n\
    ld.param.u64 %d2, [b];\nst.global.b64 [%d2], %d1;\nret;\n}\n\
    .global .align 4 .b8 much[5000];\n\
    .visible .entry follow(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [a];\n\
    ld.param.u64 %d2, [b];\nld.global.b64 %d3, [%d1];\nld.global.b32 %r1, [%d3];\nst.global.b32 [%d2], %r1;\n\
    st.global.b32 [much], %r1;\nret;\n}\n";

fn with() -> tempfile::TempDir {
    let folder = folder("{}");
    fs::write(folder.path().join("p.ptx"), KERNELS).expect("writable");
    fs::write(folder.path().join("one.npy"), npy(&[0.0])).expect("writable");
    folder
}

fn launch(entry: &str, a: &str, b: &str) -> String {
    format!(
        r#"{{"ptx": "p.ptx", "entry": "{entry}", "grid": [1], "block": [1], "args": [{{{a}}}, {{{b}}}], "modes": ["all"]}}"#
    )
}

fn file(buffers: &str, launches: &[String]) -> String {
    format!(r#"{{"buffers": {{{buffers}}}, "launches": [{}]}}"#, launches.join(", "))
}

const X: &str = r#""npy": "x.npy", "byte": 20"#;
const OUT: &str = r#""npy": "one.npy", "out": "z.npy""#;

#[test]
fn what_one_launch_writes_the_next_reads() {
    let folder = with();
    let launches = [launch("copy", X, r#""of": "h", "byte": 4"#), launch("copy", r#""of": "h", "byte": 4"#, OUT)];
    let reports = run(&folder, &file(r#""h": {"scratch": 8, "out": "h.npy"}"#, &launches)).expect("it runs");
    assert!(reports.iter().all(|done| done.report.is_clean()), "{reports:?}");
    assert_eq!(reports.iter().map(|done| done.launch).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(elements(&folder, "z.npy"), 5_f32.to_le_bytes());
    // Written once, after the last launch.
    assert_eq!(elements(&folder, "h.npy"), [vec![0xcd; 4], 5_f32.to_le_bytes().to_vec()].concat());
    assert_eq!(reports.iter().map(|done| done.written.len()).collect::<Vec<_>>(), [0, 2]);
}

/// Bytes that no launch wrote are still uninitialised in the second launch, whose finding names it.
#[test]
fn what_no_launch_wrote_is_uninitialised_in_the_next() {
    let folder = with();
    let launches = |byte: u32| {
        let read = format!(r#""of": "h", "byte": {byte}"#);
        [launch("copy", X, r#""of": "h", "byte": 4"#), launch("copy", &read, OUT), launch("copy", X, OUT)]
    };
    let reports = run(&folder, &file(r#""h": {"scratch": 8, "out": "h.npy"}"#, &launches(0))).expect("it runs");
    // The launch with the finding is the last; the memory is written all the same.
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[1].report.findings[0].kind, FindingKind::Uninitialized);
    assert!(reports[1].report.to_string().contains(" of h[8 B]"), "{}", reports[1].report);
    assert_eq!((reports[1].launch, reports[1].written.len()), (2, 2));
    // Without mode `init`, a launch leaves all memory that it may write initialised.
    let plain = launches(0).map(|launch| launch.replacen("all", "plain", 1));
    let mixed = [plain[0].clone(), launches(0)[1].clone()];
    let reports = run(&folder, &file(r#""h": {"scratch": 8}"#, &mixed)).expect("it runs");
    assert!(reports.iter().all(|done| done.report.is_clean()), "{reports:?}");
}

#[test]
fn addresses_stay() {
    let folder = with();
    let buffers = r#""first": {"scratch": 300}, "x": {"npy": "x.npy"}, "p": {"scratch": 8}"#;
    for placement in ["driver", "exact"] {
        let placed =
            |launch: String| launch.replacen("\"modes\"", &format!("\"placement\": \"{placement}\", \"modes\""), 1);
        let launches = [
            launch("store", r#""of": "x", "byte": 28"#, r#""of": "p""#),
            launch("copy", X, r#""of": "first""#),
            // The module's variables and other buffers come after.
            launch("follow", r#""of": "p""#, OUT),
        ];
        let reports = run(&folder, &file(buffers, &launches.map(placed))).expect("it runs");
        assert!(reports.iter().all(|done| done.report.is_clean()), "{reports:?}");
        assert_eq!(elements(&folder, "z.npy"), 7_f32.to_le_bytes());
    }
    // Two placements have two addresses.
    let second = launch("copy", X, r#""of": "h""#).replacen("\"modes\"", "\"placement\": \"exact\", \"modes\"", 1);
    let e = error_of(&folder, &file(r#""h": {"scratch": 4}"#, &[launch("copy", X, r#""of": "h""#), second]));
    assert!(e.contains("`launches[1].placement`") && e.contains("\"exact\""), "{e}");
}

/// A map is made once, before the first launch.
#[test]
fn tensor_maps_are_kept() {
    let folder = with();
    let kernel = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 m, .param .u64 z)\n{\n.reg .pred %p;\n\
        .reg .b32 %r<9>;\n.reg .b64 %d<5>;\n\
        .shared .align 128 .b8 s[128];\n.shared .align 8 .b8 bar[8];\nmov.u32 %r1, s;\nmov.u32 %r2, bar;\nld.param.u64 %d1, [m];\n\
        ld.param.u64 %d2, [z];\nmov.u32 %r3, 0;\nmov.u32 %r4, 1;\nfence.proxy.tensormap::generic.acquire.sys [%d1], 128;\n\
        mbarrier.init.shared.b64 [%r2], 1;\nfence.mbarrier_init.release.cluster;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;\n\
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r3, %r4}], [%r2];\n\
        WAIT:\nmbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;\n@!%p bra WAIT;\nld.shared.b32 %r5, [%r1];\n\
        st.global.b32 [%d2], %r5;\nret;\n}\n";
    fs::write(folder.path().join("m.ptx"), kernel).expect("writable");
    let buffers = r#""x": {"npy": "x.npy"}, "maps": {"tensor_maps": [{"of": "x", "byte": 32, "dtype": "f32", "dims": [16, 2],
        "strides": [128], "box": [16, 1]}]}"#;
    let takes = launch("k", r#""of": "maps""#, OUT).replace("p.ptx", "m.ptx");
    let reports = run(&folder, &file(buffers, &[takes.clone(), takes.clone()])).expect("it runs");
    assert!(reports.iter().all(|done| done.report.is_clean()), "{reports:?}");
    assert_eq!(elements(&folder, "z.npy"), 40_f32.to_le_bytes());
    // Bytes of the map that an earlier launch overwrote are a finding of the launch that takes it.
    let spoils = launch("copy", X, r#""of": "maps", "byte": 8"#);
    let reports = run(&folder, &file(buffers, &[spoils, takes])).expect("it runs");
    assert_eq!(reports[1].report.findings[0].kind, FindingKind::TensorMap, "{:?}", reports[1].report);
}

#[test]
fn several_seeds_begin_with_one_memory() {
    let folder = with();
    let add = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry add(.param .u64 a)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n\
        ld.param.u64 %d1, [a];\nld.global.u32 %r1, [%d1];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%d1], %r1;\nret;\n}\n";
    fs::write(folder.path().join("add.ptx"), add).expect("writable");
    let one = r#"{"ptx": "add.ptx", "entry": "add", "grid": [1], "block": [1], "args": [{"of": "n"}]}"#.to_owned();
    let text = file(r#""n": {"bytes": "05000000", "out": "n.npy"}"#, &[one.clone(), one.clone(), one]);
    fs::write(folder.path().join("launch.json"), text).expect("writable");
    let read = LaunchFile::read(&folder.path().join("launch.json")).expect("it is one");
    assert_eq!(read.len(), 3);
    let options = RunOptions { seeds: 4, ..RunOptions::default() };
    let reports: Vec<_> = read.launches(&options).collect::<Result<_, _>>().expect("it runs");
    assert!(
        reports.iter().all(|done| done.seeds.as_ref().is_some_and(|seeds| seeds.differing.is_empty())),
        "{reports:?}"
    );
    assert_eq!(elements(&folder, "n.npy"), 8_u32.to_le_bytes());
    // Each run begins with what the file says.
    assert_eq!(read.launches(&options).filter_map(Result::ok).count(), 3);
    assert_eq!(elements(&folder, "n.npy"), 8_u32.to_le_bytes());
}

#[test]
fn memory_that_no_launch_uses_and_names_that_hide_are_refused() {
    let folder = with();
    let takes = launch("copy", X, r#""of": "h""#);
    let buffers = r#""h": {"scratch": 4}"#;
    for (text, words) in [
        (
            file(r#""h": {"scratch": 4}, "i": {"scratch": 4}"#, std::slice::from_ref(&takes)),
            "`buffers.i` is not used by an argument",
        ),
        (file(buffers, &[launch("copy", r#""of": "h""#, r#""of": "i""#)]), "does not refer to memory"),
        (file(buffers, &[]), "has no launch"),
        (
            file(buffers, &[takes.replacen("\"modes\"", "\"buffers\": {\"h\": {\"scratch\": 4}}, \"modes\"", 1)]),
            "`launches[0].buffers.h` hides",
        ),
        (file(r#""h": {"npy": "x.npy", "out": "x.npy"}"#, std::slice::from_ref(&takes)), "is written over an input"),
        (file(r#""h": {"scratch": 4, "out": "z.npy"}"#, &[takes.clone(), launch("copy", X, OUT)]), "are one file"),
        (file(r#""h": {"scratch": 4, "out": "nowhere/z.npy"}"#, std::slice::from_ref(&takes)), "cannot be written"),
        (r#"{"buffers": {"h": {"scratch": 4}}}"#.to_owned(), "the file has no `launches`"),
        (r#"{"lauches": []}"#.to_owned(), "the nearest key is `launches`"),
        (file(buffers, &[takes.replacen("\"grid\"", "\"gird\"", 1)]), "the launch `launches[0]` has an unknown key"),
    ] {
        let e = error_of(&folder, &text);
        assert!(e.contains(words), "{text}: {e}");
    }
}

/// The same from Rust.
#[test]
fn a_launch_of_rust_keeps_memory_too() {
    let module = Module::parse(KERNELS).expect("it is PTX");
    let mut memory = DeviceMemory::uninitialized(8);
    assert_eq!(memory.unwritten(), std::slice::from_ref(&(0..8)));
    let mut copy = |x: &[u8], byte: u64, from: u64, out: &mut [u8]| {
        let launch = module.launch("copy").expect("an entry").modes(Modes::ALL);
        let launch = launch.buffer(ptx_exec::Buffer::new("h", Data::Keep(&mut memory)));
        let launch = launch.buffer(ptx_exec::Buffer::new("x", Data::Read(x)));
        let launch = launch.buffer(ptx_exec::Buffer::new("out", Data::Write(out)));
        let launch = if x.is_empty() {
            launch.pointer(0, 0, from).pointer(8, 2, 0)
        } else {
            launch.pointer(0, 1, 0).pointer(8, 0, byte)
        };
        (launch.run().expect("it runs"), memory.unwritten().to_vec())
    };
    let (report, unwritten) = copy(&7_u32.to_le_bytes(), 4, 0, &mut []);
    assert!(report.is_clean(), "{report}");
    assert_eq!(unwritten, std::slice::from_ref(&(0..4)));
    let mut out = [0; 4];
    let (report, unwritten) = copy(&[], 0, 4, &mut out);
    assert!(report.is_clean() && out == 7_u32.to_le_bytes() && unwritten == std::slice::from_ref(&(0..4)), "{report}");
    assert_eq!(copy(&[], 0, 0, &mut out).0.findings[0].kind, FindingKind::Uninitialized);
    assert_eq!(memory.bytes()[4..], 7_u32.to_le_bytes());
    let all = DeviceMemory::new(vec![1, 2]);
    assert_eq!((all.bytes(), all.unwritten()), (&[1, 2][..], &[][..]));
}

//! Tensor maps in memory: made by `tensormap.replace` as Triton's descriptors are, given in buffers and structs, and changed on the way.

use ptx_exec::{Buffer, Data, Modes, Module};
use ptx_exec::{Report, Rule};
use ptx_exec::{TensorMap, Ty};

/// A launch of `k(out, in, descs)`; `descs` has room for 8 maps.
#[derive(Clone)]
struct Made {
    body: String,
    threads: u32,
    blocks: u32,
    cluster: u32,
    /// What `descs` holds before, as a map of `in`.
    given: Option<TensorMap>,
}

/// The threads of warp 0 make a map of `in` in shared memory and put it into `descs`, those of the block wait for it.
const MAKE: &str = "setp.lt.u32 %p3, %r1, 32;
@%p3 st.shared.b32 [%r8], 0;
bar.warp.sync 0xffffffff;
@%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r7], %d2;
@%p1 tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r7], 1;
@%p1 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r7], 0, 32;
@%p1 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r7], 1, 4;
@%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r7], 0, 32;
@%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r7], 1, 8;
@%p1 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r7], 0, 128;
@%p1 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r7], 0, 1;
@%p1 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r7], 1, 1;
@%p1 tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r7], 3;
@%p1 tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r7], 0;
@%p1 tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r7], 0;
@%p1 tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r7], 0;
";
const PUBLISH: &str =
    "@%p3 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d6], [%r7], 0x80;
";
const ACQUIRE: &str = "@%p3 fence.proxy.tensormap::generic.acquire.gpu [%d6], 0x80;
bar.sync 0;
";
/// Loads the rows 2 to 5 into shared memory, and writes them out.
const USE: &str = "@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
@!%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 512;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d6, {0, 2}], [%r6];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r9, [%r5];
st.global.u32 [%d4], %r9;
";

fn made(body: &str) -> Made {
    Made { body: body.to_owned(), threads: 64, blocks: 1, cluster: 1, given: None }
}

fn triton() -> Made {
    made(&[MAKE, PUBLISH, ACQUIRE, USE].concat())
}

impl Made {
    #[track_caller]
    fn with(&self, from: &str, to: &str) -> Made {
        assert!(self.body.contains(from), "`{from}` in\n{}", self.body);
        Made { body: self.body.replace(from, to), ..self.clone() }
    }

    fn text(&self) -> String {
        format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n\
             .visible .entry k(.param .u64 out, .param .u64 in, .param .u64 descs)\n{{\n\
             .reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %d<20>;\n\
             .shared .align 1024 .b8 s[4096];\n.shared .align 128 .b8 desc[128];\n.shared .align 8 .b8 bar[64];\n\
             ld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\nld.param.u64 %d6, [descs];\nmov.u32 %r1, %tid.x;\n\
             mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %d3, %r2, 128;\nadd.u64 %d6, %d6, %d3;\nmul.wide.u32 %d3, %r2, 256;\n\
             add.u64 %d4, %d1, %d3;\nmul.wide.u32 %d3, %r1, 4;\nadd.u64 %d4, %d4, %d3;\nshl.b32 %r3, %r1, 2;\nmov.u32 %r4, s;\n\
             add.u32 %r5, %r4, %r3;\nmov.u32 %r6, bar;\nmov.u32 %r7, desc;\nadd.u32 %r8, %r7, %r3;\nsetp.eq.u32 %p1, %r1, 0;\n\
             {}\nret;\n}}\n",
            self.body
        )
    }

    fn run(&self, modes: Modes, seed: u64) -> (Report, Vec<u32>) {
        let module = Module::parse(self.text()).expect("PTX");
        let input: Vec<u8> = (0..256_u32).flat_map(u32::to_le_bytes).collect();
        let mut out = vec![0xff_u8; 1024];
        let launch = module.launch("k").unwrap_or_else(|e| panic!("{e}\n{}", self.body));
        let launch = launch.grid(&[self.blocks]).block(&[self.threads]).cluster(&[self.cluster]);
        let mut launch = launch.output("out", &mut out).input("in", &input);
        launch = launch.arg_buffer(Buffer::new("descs", Data::Scratch(1024)));
        if let Some(spec) = self.given {
            launch = launch.tensor_map_in(2, 0, 1, 0, spec);
        }
        let report = launch.modes(modes).seed(seed).step_budget(3_000_000).run().unwrap_or_else(|e| panic!("{e}"));
        (report, out.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes"))).collect())
    }

    /// Right in all modes, whenever asynchronous work happens.
    #[track_caller]
    fn silent(&self) -> Vec<u32> {
        let mut result = None;
        for seed in 0..6 {
            for modes in [Modes::PLAIN, Modes::ALL] {
                let (report, out) = self.run(modes, seed);
                assert!(report.is_clean(), "seed {seed}: {report}\n{}", self.body);
                assert_eq!(*result.get_or_insert_with(|| out.clone()), out, "seed {seed}");
            }
        }
        result.expect("a result")
    }

    /// Breaks one rule, whenever asynchronous work happens.
    #[track_caller]
    fn breaks(&self, modes: Modes, rule: Rule, words: &str) {
        for seed in 0..6 {
            let (report, _) = self.run(modes, seed);
            let rules: Vec<Rule> = report.findings.iter().map(|f| f.rule).collect();
            assert_eq!(rules, [rule], "seed {seed}: {report}\n{}", self.body);
            let text = report.to_string();
            assert!(text.contains(words) && text.contains(rule.help()), "`{words}`: {report}");
        }
    }
}

const RACES: Modes = Modes { bounds: false, init: false, races: true };

#[test]
fn maps_made_on_the_device_are_used() {
    let rows: Vec<u32> = (64..128).collect();
    assert_eq!(triton().silent()[..64], rows);
    // In place, in global memory, from zeros.
    let zeros = "@%p1 st.global.v4.b32 [%d6+AT], {0, 0, 0, 0};\n";
    let zeros: String = (0..8).map(|i| zeros.replace("AT", &(16 * i).to_string())).collect();
    let fill = "@%p3 st.shared.b32 [%r8], 0;\nbar.warp.sync 0xffffffff;\n";
    for global in [".global", ""] {
        let make = MAKE.replace(fill, &zeros).replace(".shared::cta", global).replace("[%r7]", "[%d6]");
        let release = "@%p1 fence.proxy.tensormap::generic.release.gpu;\nbar.warp.sync 0xffffffff;\n";
        assert_eq!(made(&[&make, release, ACQUIRE, USE].concat()).silent()[..64], rows);
    }
    // By the thread that uses it alone, as well as each block a map of its own.
    let four = Made { blocks: 4, ..triton() };
    assert_eq!(four.silent(), rows.repeat(4));
    let prefetched = triton().with("@!%p1 bra WAIT;", "@!%p1 bra WAIT;\nprefetch.tensormap [%d6];");
    assert_eq!(prefetched.silent()[..64], rows);
    // Another box: one row of each two, of 64 bytes.
    let other = triton()
        .with("box_dim.shared::cta.b1024.b32 [%r7], 0, 32", "box_dim.shared::cta.b1024.b32 [%r7], 0, 16")
        .with("element_stride.shared::cta.b1024.b32 [%r7], 1, 1", "element_stride.shared::cta.b1024.b32 [%r7], 1, 2")
        .with("[%r6], 512;", "[%r6], 128;")
        .with(
            "ld.shared.u32 %r9, [%r5];",
            "mov.u32 %r9, 7;\nsetp.lt.u32 %p4, %r1, 32;\n@%p4 ld.shared.u32 %r9, [%r5];",
        );
    let found = other.silent();
    assert_eq!(found[..16], rows[..16]);
    assert_eq!(found[16..32], (128..144).collect::<Vec<u32>>());
    // NaN where a tensor of floats has nothing.
    let nan = triton()
        .with("fill_mode.shared::cta.b1024.b32 [%r7], 0", "fill_mode.shared::cta.b1024.b32 [%r7], 1")
        .with("elemtype.shared::cta.b1024.b32 [%r7], 3", "elemtype.shared::cta.b1024.b32 [%r7], 7")
        .with("{0, 2}", "{0, -1}");
    let found = nan.silent();
    assert!(found[..32].iter().all(|bits| f32::from_bits(*bits).is_nan()));
    assert_eq!(found[32..64], (0..32).collect::<Vec<u32>>());
}

#[test]
fn maps_of_the_launch_lie_in_buffers_and_are_changed() {
    let spec = TensorMap::new(Ty::S32, &[32, 8], &[128], &[32, 4]);
    let rows: Vec<u32> = (64..128).collect();
    let fence = "setp.lt.u32 %p3, %r1, 32;\n";
    let given = Made { given: Some(spec), ..made(&[fence, ACQUIRE, USE].concat()) };
    assert_eq!(given.silent()[..64], rows);
    // Each block has to acquire it before its first use: CUDA C++ Programming Guide, "Using TMA to transfer multi-dimensional arrays".
    given.with("@%p3 fence.proxy.tensormap::generic.acquire.gpu [%d6], 0x80;\n", "").breaks(
        RACES,
        Rule::MapAcquire,
        "the launch wrote it",
    );
    // Copied to shared memory as bytes, changed there, and published: grouped products do that.
    let copied: String = "setp.lt.u32 %p3, %r1, 32;\nadd.u64 %d7, %d6, 0;\ncvt.u64.u32 %d8, %r3;\nadd.u64 %d7, %d7, %d8;\n\
         @%p3 ld.global.b32 %r10, [%d7];\n@%p3 st.shared.b32 [%r8], %r10;\nbar.warp.sync 0xffffffff;\nadd.u64 %d9, %d2, 128;\n\
         @%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r7], %d9;\n\
         @%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r7], 1, 7;\nadd.u64 %d6, %d6, 512;\n"
        .to_owned();
    let changed = Made { given: Some(spec), ..made(&[&copied, PUBLISH, ACQUIRE, USE].concat()) };
    assert_eq!(changed.silent()[..64], (96..160).collect::<Vec<u32>>());
}

#[test]
fn uses_without_the_fences_of_the_tensormap_proxy_are_found() {
    let acquire = "@%p3 fence.proxy.tensormap::generic.acquire.gpu [%d6], 0x80;\n";
    let all = triton();
    all.with(acquire, "").breaks(RACES, Rule::MapAcquire, "tensormap.cp_fenceproxy");
    // An acquire of another map, and an acquire before the map is written.
    all.with("acquire.gpu [%d6], 0x80", "acquire.gpu [%d6+128], 0x80").breaks(RACES, Rule::MapAcquire, "");
    made(&["setp.lt.u32 %p3, %r1, 32;\n", acquire, MAKE, PUBLISH, "bar.sync 0;\n", USE].concat()).breaks(
        RACES,
        Rule::MapAcquire,
        "",
    );
    // The fence of the other proxy does not serve.
    all.with(acquire, "fence.proxy.async;\n").breaks(RACES, Rule::MapAcquire, "");
    // Copied by threads, which releases nothing.
    let plain = "cvt.u64.u32 %d8, %r3;\nadd.u64 %d7, %d6, %d8;\nbar.warp.sync 0xffffffff;\n@%p3 ld.shared.b32 %r10, [%r8];\n\
                 @%p3 st.global.b32 [%d7], %r10;\nbar.warp.sync 0xffffffff;\n";
    let copied = made(&[MAKE, plain, ACQUIRE, USE].concat());
    copied.breaks(RACES, Rule::MapRelease, "st.global");
    let released = made(&[MAKE, plain, "fence.proxy.tensormap::generic.release.gpu;\n", ACQUIRE, USE].concat());
    assert_eq!(released.silent()[..64], (64..128).collect::<Vec<u32>>());
    // Changed again, and not released again.
    let again = "@%p1 tensormap.replace.tile.global_dim.global.b1024.b32 [%d6], 1, 7;\nbar.warp.sync 0xffffffff;\n";
    made(&[MAKE, PUBLISH, again, ACQUIRE, USE].concat()).breaks(RACES, Rule::MapRelease, "tensormap.replace");
    made(&[MAKE, PUBLISH, ACQUIRE, again, USE].concat()).breaks(RACES, Rule::MapRelease, "tensormap.replace");
    // No barrier between the warp that acquires and the thread that uses it.
    let moved = all.with("bar.sync 0;\n@%p1 mbarrier", "@%p3 ret;\nsetp.eq.u32 %p1, %r1, 32;\n@%p1 mbarrier");
    for seed in 0..6 {
        let (report, _) = moved.run(RACES, seed);
        // By chance the map is there already.
        assert!(
            report.findings.iter().any(|f| matches!(f.rule, Rule::LeftEarly | Rule::BlockOrder | Rule::MapBytes)),
            "{report}"
        );
    }
}

/// Block 0 makes the map, block 1 uses it once a flag says so.
fn handed(release: &str, acquire: &str) -> Made {
    let publish = PUBLISH.replace(".gpu.", release);
    let fence = format!("fence.proxy.tensormap::generic.acquire{acquire} [%d6], 0x80;\n");
    let flag = "add.u64 %d10, %d1, 1000;\n";
    let of_0 = format!(
        "setp.ne.u32 %p5, %r2, 0;\n@%p5 bra OTHER;\n{MAKE}{publish}@%p1 st.release.gpu.global.u32 [%d10], 1;\nret;\n"
    );
    let of_1 = format!(
        "OTHER:\nsub.u64 %d6, %d6, 128;\nPOLL:\nld.acquire.gpu.global.u32 %r11, [%d10];\nsetp.ne.u32 %p6, %r11, 1;\n@%p6 bra POLL;\n{fence}bar.sync 0;\n"
    );
    Made { blocks: 2, ..made(&[flag, &of_0, &of_1, USE].concat()) }
}

#[test]
fn maps_are_handed_to_other_blocks_by_scopes_that_include_them() {
    let out = handed(".gpu.", ".gpu").silent();
    assert_eq!(out[64..128], (64..128).collect::<Vec<u32>>());
    assert_eq!(handed(".sys.", ".sys").silent(), out);
    handed(".cta.", ".gpu").breaks(RACES, Rule::Scope, "");
    handed(".gpu.", ".cta").breaks(RACES, Rule::Scope, "");
    handed(".cluster.", ".gpu").breaks(RACES, Rule::Scope, "");
    // In a cluster the smaller scope serves.
    let near = handed(".cluster.", ".cluster");
    Made { cluster: 2, ..near.clone() }.silent();
    near.breaks(RACES, Rule::Scope, "");
    // What the scope of the block orders within it.
    triton().with(".release.gpu.", ".release.cta.").with(".acquire.gpu", ".acquire.cta").silent();
    // Without a fence of block 1's own.
    let own = handed(".gpu.", ".gpu");
    own.with("fence.proxy.tensormap::generic.acquire.gpu [%d6], 0x80;\n", "").breaks(RACES, Rule::MapAcquire, "");
    own.with("ld.acquire.gpu.global.u32 %r11", "ld.relaxed.gpu.global.u32 %r11").silent();
}

#[test]
fn maps_in_use_are_not_changed() {
    let copy = "[%d6, {0, 2}], [%r6];\n";
    let replace = "tensormap.replace.tile.global_dim.global.b1024.b32 [%d6], 1, 7;\n";
    triton().with(copy, &format!("{copy}{replace}")).breaks(RACES, Rule::MapInUse, "cp.async.bulk.tensor");
    let again = triton().with("WAIT:\n", &format!("WAIT:\n{PUBLISH}"));
    again.breaks(RACES, Rule::MapInUse, "cp.async.bulk.tensor");
    // Behind the wait it may be.
    let later = triton().with("ld.shared.u32 %r9, [%r5];", &format!("ld.shared.u32 %r9, [%r5];\n@%p1 {replace}"));
    assert_eq!(later.silent()[..64], (64..128).collect::<Vec<u32>>());
}

#[test]
fn bytes_that_are_no_map_are_found() {
    let plain = Modes::PLAIN;
    let write = "bar.warp.sync 0xffffffff;\n@%p1 st.shared.b32 [%r7+8], 77;\n";
    made(&[MAKE, write, PUBLISH, ACQUIRE, USE].concat()).breaks(plain, Rule::MapBytes, "are not a tensor map");
    // Found where it is changed next, if it is.
    let next = "@%p1 tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r7], 1;\n";
    made(&[MAKE, write, next, PUBLISH, ACQUIRE, USE].concat()).breaks(plain, Rule::MapBytes, "tensormap.replace");
    // The same bytes again are no change; nor is a copy of all of them.
    let same = "bar.warp.sync 0xffffffff;\n@%p3 ld.shared.b32 %r10, [%r7+8];\nbar.warp.sync 0xffffffff;\n@%p1 st.shared.b32 [%r7+8], %r10;\n";
    made(&[MAKE, same, PUBLISH, ACQUIRE, USE].concat()).silent();
    // Fields that are not set.
    for field in ["rank", "elemtype", "swizzle_mode", "fill_mode", "interleave_layout", "global_address"] {
        let line = MAKE.lines().find(|l| l.contains(field)).expect("a line");
        triton().with(line, "").breaks(plain, Rule::MapField, field);
    }
    for (field, words) in
        [("box_dim", "box_dim 1"), ("global_dim", "global_dim 1"), ("element_stride", "element_stride 1")]
    {
        let line = MAKE.lines().find(|l| l.contains(field) && l.contains("[%r7], 1,")).expect("a line");
        triton().with(line, "").breaks(plain, Rule::MapField, words);
    }
    // Nobody has written what is changed.
    let fill = "@%p3 st.shared.b32 [%r8], 0;\n";
    triton().with(fill, "").breaks(Modes { init: true, ..plain }, Rule::Initialised, "tensor map");
    let partly = "@%p4 st.shared.b32 [%r8], 0;\n";
    triton().with(fill, &format!("setp.lt.u32 %p4, %r1, 31;\n{partly}")).breaks(
        Modes { init: true, ..plain },
        Rule::Initialised,
        "tensor map",
    );
    // Places that are none, or not aligned.
    let at = |from: &str, to: &str| triton().with(from, to);
    let odd = at("0x80;\n@%p3 fence", "0x80;\nadd.u64 %d6, %d6, 32;\n@%p3 fence");
    assert!(odd.run(plain, 0).0.findings.iter().any(|f| f.rule == Rule::TensorMap), "{}", odd.run(plain, 0).0);
}

#[test]
fn values_that_a_field_does_not_take_are_found() {
    let all = triton();
    let set = |field: &str, from: &str, to: &str| {
        let line = MAKE.lines().find(|l| l.contains(field) && l.ends_with(from)).expect("a line");
        all.with(line, &line.replace(from, to))
    };
    for (field, from, to, words) in [
        ("rank", "], 1;", "], 5;", "0 to 4"),
        ("box_dim", "1, 4;", "1, 0;", "1 to 256"),
        ("box_dim", "1, 4;", "1, 257;", "1 to 256"),
        ("global_dim", "1, 8;", "1, 0;", "1 to 2^32-1"),
        ("global_stride", "0, 128;", "0, 8;", "units of 16"),
        ("global_stride", "0, 128;", "0, 1099511627776;", "2^40"),
        ("global_stride", "0, 128;", "4, 128;", "0 to 3"),
        ("element_stride", "1, 1;", "1, 0;", "1 to 8"),
        ("element_stride", "1, 1;", "1, 9;", "1 to 8"),
    ] {
        let case = set(field, from, to);
        let (report, _) = case.run(Modes::PLAIN, 0);
        let found = report.findings.iter().find(|f| f.rule == Rule::MapField);
        let found = found.unwrap_or_else(|| panic!("{field} {to}: {report}")).to_string();
        assert!(found.contains(words) && found.contains("tensormap.replace"), "{found}");
    }
    // Values that are valid by themselves, but do not fit the box.
    for (field, from, to, words) in [
        ("interleave_layout", "], 0;", "], 1;", "interleave"),
        ("swizzle_mode", "], 0;", "], 1;", "swizzle"),
        ("fill_mode", "], 0;", "], 1;", "NaN"),
        ("box_dim", "0, 32;", "0, 3;", "16 bytes"),
    ] {
        let (report, _) = set(field, from, to).run(Modes::PLAIN, 0);
        let found = report.findings.iter().find(|f| f.rule == Rule::TensorMap);
        assert!(found.unwrap_or_else(|| panic!("{field}: {report}")).to_string().contains(words), "{report}");
    }
    let address = "add.u64 %d9, %d2, 8;\n";
    let moved = all
        .with("setp.lt.u32 %p3, %r1, 32;", &format!("{address}setp.lt.u32 %p3, %r1, 32;"))
        .with("[%r7], %d2;", "[%r7], %d9;");
    moved.run(Modes::PLAIN, 0).0.findings.iter().find(|f| f.rule == Rule::MapField).expect("an address of 8 bytes");
}

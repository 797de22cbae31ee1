//! Forms of instructions that ptxas 13.0 takes are taken here, and those that it refuses are refused.

use ptx_exec::{Buffer, Data, Modes, Module};

use crate::hopper::case;

const MAPS: &str = include_str!("maps_forms.txt");
const REGISTERS: &str = include_str!("register_forms.txt");

fn form(line: &str) -> String {
    format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.const .align 64 .b8 cm[128];\n\
         .visible .entry k(.param .u64 p, .param .align 64 .b8 map[128])\n{{\n.reg .b16 %h<9>;\n.reg .b32 %r<30>;\n\
         .reg .b64 %d<30>;\n.reg .f32 %f<9>;\n.reg .pred %p<4>;\n.reg .v4 .b32 %v;\n.reg .v2 .b32 %w;\n\
         .shared .align 128 .b8 sm[128];\nld.param.u64 %d1, [p];\ncvta.to.global.u64 %d2, %d1;\nmov.u32 %r1, sm;\n\
         mov.u32 %r2, %tid.x;\n{line}\nret;\n}}\n"
    )
}

/// Each line is a verdict of ptxas and a form.
fn forms() -> impl Iterator<Item = (bool, &'static str)> {
    let lines = [MAPS, REGISTERS].into_iter().flat_map(str::lines).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').expect("a verdict and a form"))
        .map(|(verdict, line)| (verdict == "takes", line))
}

#[test]
fn forms_are_taken_and_refused_as_ptxas_does() {
    let (mut seen, mut wrong) = ([0; 2], Vec::new());
    for (takes, line) in forms() {
        seen[usize::from(takes)] += 1;
        let result = Module::parse(form(line)).and_then(|module| module.launch("k").map(drop));
        if result.is_ok() != takes {
            wrong.push(format!("{line}: {}", result.err().map_or_else(|| "taken".to_owned(), |e| e.to_string())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.iter().all(|n| *n > 70), "{seen:?}");
}

#[test]
fn vectors_are_moved_whole() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.reg .pred %p;\n\
        .reg .b32 %r<9>;\n.reg .b64 %d<3>;\n.reg .v4 .b32 %v;\n.reg .v2 .b32 %w;\nld.param.u64 %d1, [out];\n\
        mov.v4.u32 %v, %ntid;\nst.global.v4.u32 [%d1], {%v.x, %v.y, %v.z, %v.w};\nmov.v4.u32 {%r1, %r2, %r3, %r4}, %tid;\n\
        st.global.v4.u32 [%d1+16], {%r1, %r2, %r3, %r4};\nmov.v2.b32 %w, {%v.x, %v.y};\nmov.v2.b32 {%r5, %r6}, %w;\n\
        mov.v2.b32 {%r5, %r6}, {%r6, %r5};\nst.global.v2.u32 [%d1+32], {%r5, %r6};\nmov.pred %p, %is_explicit_cluster;\n\
        selp.u32 %r7, 1, 0, %p;\nst.global.u32 [%d1+40], %r7;\nmembar.proxy.alias;\nret;\n}\n";
    let module = Module::parse(text).expect("PTX");
    for (cluster, is_one) in [(1, 0), (2, 1)] {
        let mut out = vec![0_u8; 44];
        let launch = module.launch("k").expect("an entry").grid(&[2]).block(&[1, 5, 7]).cluster(&[cluster]);
        let report =
            launch.arg_buffer(Buffer::new("out", Data::Write(&mut out))).modes(Modes::PLAIN).run().expect("it runs");
        assert!(report.is_clean(), "{report}");
        let words: Vec<u32> = out.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes"))).collect();
        assert_eq!((&words[..4], words[7]), (&[1, 5, 7, 0][..], 0));
        assert_eq!(words[8..], [5, 1, is_one]);
    }
}

/// 64 threads add to one word of shared memory, and a barrier is told of the bytes.
const REDUCE: &str = "mov.u32 %r8, 1000;
@%p1 st.shared.u32 [%r4], %r8;
@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
@%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 256;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], %r1, [%r6];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r9, [%r4];
st.global.u32 [%d4], %r9;";

#[test]
fn asynchronous_reductions_are_atomic_and_waited_for() {
    use ptx_exec::FindingKind::Race;
    assert_eq!(case(REDUCE).silent()[..64], [1000 + 63 * 32; 64]);
    let max = case(REDUCE).with(".add.u32", ".max.s32");
    assert_eq!(max.silent()[0], 1000);
    case(REDUCE).with("@!%p2 bra WAIT;", "").with("mbarrier.try_wait", "//").finds(Race, "red.async");
    case(REDUCE).with("WAIT:", "st.shared.u32 [%r4], %r1;\nWAIT:").finds(Race, "red.async");
}

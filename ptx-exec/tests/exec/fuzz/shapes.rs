//! Correct instructions of every form, in the registers of the generated programs, and replacements for each operand.

use crate::forms::forms;

/// Control, memory, asynchronous work and what threads do together; the forms bring arithmetic and products.
const OTHERS: &str = "
    @%p0 bra L1; bra.uni L2; brx.idx %t1, LIST; @!%p1 ret; exit; trap; nanosleep.u32 20;
    call (%w1), f0, (%w2); call (_), f0, (5); call (ret0), f0, (arg0); call (%d1), f1, (%d2); call (%h1), f2, (%h2); call f3, ();
    call (eight), f4, (eight); @%p0 call (%w1), f0, (%w2); call (%w1), vprintf, (%d29, %d29); call __assertfail, (%a4, %a4, %w1, %a4, %d2);
    ld.global.u32 %w1, [%a2]; ld.global.v2.u32 {%w1, _}, [%a2+8]; ld.global.v4.f32 {%w1, %w2, %w3, %w4}, [%a1+16]; ld.global.nc.u8 %h1, [%a2];
    ld.shared.b64 %d1, [%w20]; ld.shared.v2.b64 {%d1, %d2}, [room]; ld.local.s16 %w1, [own]; ld.const.u32 %w1, [fixed]; ld.param.u64 %d1, [out];
    ld.relaxed.gpu.global.u32 %w1, [%a4]; ld.acquire.sys.b64 %d1, [%a4]; ld.volatile.shared.u32 %w1, [%w20]; ldu.global.u32 %w1, [%a2]; ld.u16 %w1, [%a2];
    st.global.u32 [%a4], %w1; st.global.v4.u16 [%a4], {%h1, %h2, %h3, %h4}; st.shared.v2.u32 [%w20], {%w1, %w2}; st.local.u64 [own+8], %d1;
    st.release.gpu.global.u32 [%a4], 5; st.b8 [%a4], %d1; st.global.v2.f64 [%a3], {%d1, %d2};
    atom.global.add.u32 %w1, [%a4], %w2; atom.shared.cas.b64 %d1, [%w20], %d2, %d3; atom.global.v2.f32.add {%w1, %w2}, [%a3], {%w3, %w4};
    atom.acq_rel.gpu.global.exch.b32 _, [%a4], 3; red.global.max.s32 [%a4], %w2; red.shared.inc.u32 [%w20], %w2; atom.global.add.noftz.f16x2 %w1, [%a4], %w2;
    atom.global.min.u64 %d1, [%a4], %d2; atom.shared.and.b32 %w1, [room], %w2; atom.global.cas.b16 %h1, [%a4], %h2, %h3;
    cp.async.ca.shared.global [%w20], [%a2], 4; cp.async.cg.shared.global [room], [%a1], 16, %w1; cp.async.ca.shared.global [%w20], [%a2], 8, %p0;
    cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all; membar.gl; fence.acq_rel.gpu; fence.sc.cta; prefetch.global.L2 [%a2];
    cvta.to.global.u64 %d1, %a2; cvta.shared.u64 %d1, %d2; cvta.to.local.u64 %d1, %d2; isspacep.shared %p0, %d1; isspacep.global %p0, %a2;
    bar.sync 0; bar.sync 1, 64; barrier.arrive 2, 96; bar.red.popc.u32 %w1, 0, %p0; bar.red.and.pred %p0, 0, !%p1; barrier.red.or.pred %p0, %w1, %w2, %p1;
    bar.warp.sync -1; bar.warp.sync %w1; shfl.sync.idx.b32 %w1|%p0, %w2, %w3, 31, -1; shfl.sync.up.b32 %w1, %w2, 1, 0, %w3; shfl.sync.bfly.b32 %w1|_, %w2, 4, 31, -1;
    vote.sync.ballot.b32 %w1, %p0, -1; vote.sync.all.pred %p0, !%p1, -1; vote.sync.uni.pred %p0, %p1, %w1; match.any.sync.b32 %w1, %w2, -1;
    match.all.sync.b64 %w1|%p0, %d1, -1; redux.sync.add.u32 %w1, %w2, -1; redux.sync.xor.b32 %w1, %w2, %w3; elect.sync %w1|%p0, -1; activemask.b32 %w1;
    mov.u32 %w1, %tid.x; mov.u64 %d1, %clock64; mov.u32 %w1, room; mov.u64 %d1, glob; mov.b64 {%w1, %w2}, %d1; mov.b64 %d1, {%h1, %h2, %h3, %h4};
    mov.b32 {%h1, _}, %w1; mov.pred %p0, %p1; mov.u32 %w1, %cluster_ctarank; mov.b32 %w1, 0f3f800000; mov.f64 %d1, 0d3ff0000000000000;
    setp.lt.s32 %p0|%p1, %w1, %w2; setp.ge.and.f64 %p0, %d1, %d2, !%p1; set.lt.u32.f32 %w1, %w2, %w3; selp.b64 %d1, %d2, %d3, %p0; slct.f32.s32 %w1, %w2, %w3, %w4;
    and.pred %p0, %p1, 1; xor.pred %p0, %p0, !%p1; not.pred %p0, %p1; add.cc.u32 %w1, %w2, %w3; addc.cc.u64 %d1, %d2, %d3; subc.u32 %w1, %w2, %w3; madc.lo.cc.u32 %w1, %w2, %w3, %w4;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w1, %w2, %w3, %w4}, [%w21]; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%w1}, [room];
    stmatrix.sync.aligned.m8n8.x2.shared.b16 [%w21], {%w1, %w2}; movmatrix.sync.aligned.m8n8.trans.b16 %w1, %w2;
    mbarrier.init.shared.b64 [bar0], 2; mbarrier.inval.shared.b64 [bar0]; mbarrier.arrive.shared.b64 %d1, [bar0]; mbarrier.arrive.shared.b64 _, [%w22], 1;
    mbarrier.arrive.expect_tx.shared.b64 %d1, [%w22], 16; mbarrier.arrive_drop.shared.b64 %d1, [bar0]; mbarrier.test_wait.shared.b64 %p0, [bar0], %d1;
    mbarrier.try_wait.parity.shared.b64 %p0, [%w22], 0; mbarrier.pending_count.b64 %w1, %d1; mbarrier.expect_tx.relaxed.cta.shared.b64 [bar0], 16;
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar0]; cp.async.mbarrier.arrive.shared.b64 [%w22];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%a1], 32, [bar0];
    cp.async.bulk.global.shared::cta.bulk_group [%a3], [%w21], 16; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a3], [room], 16;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [room], [room], 16, [bar0]; cp.async.bulk.prefetch.L2.global [%a1], 16;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [room], [%a1, {%w1, %w2}], [bar0];
    tensormap.replace.tile.global_address.global.b1024.b64 [%a3], %d1; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [room], 0, %w1;
    tensormap.replace.tile.rank.b1024.b32 [%a4], 1; tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%w21], 3;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%a3], [room], 128; prefetch.tensormap [%a1];
    fence.proxy.tensormap::generic.acquire.gpu [%a3], 128; fence.proxy.tensormap::generic.release.cta;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; cp.async.bulk.wait_group.read 1; fence.proxy.async; fence.mbarrier_init.release.cluster;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%w21], {%w1, %w2}, [%w22]; barrier.cluster.arrive; barrier.cluster.wait; mapa.u64 %d1, %d2, %w1;
    mapa.shared::cluster.u32 %w1, %w21, 0; getctarank.u64 %w1, %d1; setmaxnreg.dec.sync.aligned.u32 40; griddepcontrol.wait; griddepcontrol.launch_dependents;
    wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%w1, %w2, %w3, %w4}, %d1, %d2, %p0, 1, 1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%w1, %w2, %w3, %w4}, {%w5, %w6, %w7, %w8}, %d2, %p0, 1, 1, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; lop3.b32 %w1, %w2, %w3, %w4, 0x96; bfi.b32 %w1, %w2, %w3, 4, 8; prmt.b32 %w1, %w2, %w3, 0x7531
";

/// Replacements for an operand.
pub(super) const KINDS: [&str; 78] = [
    "%p0",
    "%p1",
    "!%p0",
    "!!%p0",
    "%h1",
    "%h11",
    "%w1",
    "%w29",
    "%d1",
    "%d29",
    "%o0",
    "%a4",
    "%a2",
    "%v.x",
    "%v.w",
    "%v",
    "_",
    "!_",
    "0",
    "1",
    "-1",
    "4",
    "31",
    "32",
    "64",
    "255",
    "65535",
    "2147483648",
    "4294967295",
    "-9223372036854775808",
    "18446744073709551615",
    "0f3f800000",
    "0d7ff0000000000000",
    "{%w1}",
    "{%w1, %w2}",
    "{%w1, %w2, %w3}",
    "{%w1, %w2, %w3, %w4}",
    "{_, _}",
    "{_, %w1, _, %w2}",
    "{%d1, %d2}",
    "{%h1, %h2}",
    "{%h1, %h2, %h3, %h4}",
    "{%p0, %p1}",
    "{%w1, %d1}",
    "{%w1, 7}",
    "{%w1, %w2, %w3, %w4, %w5, %w6, %w7, %w8}",
    "{}",
    "{{%w1}, %w2}",
    "[%w21]",
    "[%w20+4]",
    "[%a4]",
    "[%a2-8]",
    "[%a3+9223372036854775807]",
    "[%p0]",
    "[%h1]",
    "[%o1]",
    "[0]",
    "[_]",
    "[room]",
    "[own+8]",
    "[out]",
    "[glob+4]",
    "[bar0]",
    "[%a1, {%w1, %w2}]",
    "[%a1, {%w1, %w2, %w3, %w4, %w5, %w6}]",
    "L1",
    "LIST",
    "f0",
    "%w1|%p0",
    "_|%p0",
    "%p0|_",
    "_|_",
    "(%w1)",
    "(_, %d1)",
    "%tid.x",
    "%clock64",
    "room",
    "room+4",
];

/// Words that an opcode may have in another's place.
pub(super) const WORDS: [&str; 40] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "f16",
    "f16x2",
    "bf16",
    "f32",
    "f64",
    "tf32",
    "e4m3",
    "pred",
    "v2",
    "v4",
    "v8",
    "global",
    "shared",
    "local",
    "const",
    "param",
    "shared::cluster",
    "cc",
    "sat",
    "wide",
    "lo",
    "x2",
    "x4",
    "trans",
    "cas",
    "add",
    "exch",
];

/// Instructions, each once: opcode, then operands.
pub(super) fn shapes() -> Vec<(String, Vec<String>)> {
    let bodies: Vec<String> = forms().into_iter().map(|form| form.body).collect();
    let lines =
        OTHERS.split(';').map(str::to_owned).chain(bodies.iter().flat_map(|body| body.split(';').map(str::to_owned)));
    let mut seen = std::collections::BTreeSet::new();
    let mut all = Vec::new();
    for line in lines {
        let line = line.split_whitespace().collect::<Vec<&str>>().join(" ");
        let (guard, rest) = match line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
            Some((guard, rest)) => (format!("@{guard} "), rest),
            None => (String::new(), line.as_str()),
        };
        let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_one = opcode.starts_with(|c: char| c.is_ascii_lowercase()) && !rest.contains(['\"', ':'])
            || opcode.contains("::");
        if is_one
            && seen.insert((
                guard.clone(),
                opcode.to_owned(),
                operands.chars().filter(|c| !c.is_ascii_digit()).collect::<String>(),
            ))
        {
            all.push((format!("{guard}{opcode}"), split(operands)));
        }
    }
    all
}

/// Splits operands at commas outside brackets.
fn split(operands: &str) -> Vec<String> {
    let (mut all, mut depth) = (vec![String::new()], 0);
    for c in operands.chars() {
        depth += i32::from(matches!(c, '{' | '[' | '(')) - i32::from(matches!(c, '}' | ']' | ')'));
        match all.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => all.push(String::new()),
        }
    }
    all.into_iter().map(|o| o.trim().to_owned()).filter(|o| !o.is_empty()).collect()
}

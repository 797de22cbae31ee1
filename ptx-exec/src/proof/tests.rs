//! Makes every operand of every operation wrong, one at a time. The proof must fail each time.

use std::collections::BTreeSet;

use super::{Code, RowKind};
use crate::code::{Inst, NONE, Op};
use crate::error::ErrorKind;
use crate::parse;

/// Instructions that together are lowered to each operation, with guards, constants and registers of every class.
const BODY: &str = "
    add.s32 %r1, %r2, 3; sub.s32 %r1, %r2, %r3; mul.lo.s32 %r1, %r2, %r3; mad.lo.s32 %r1, %r2, %r3, %r4;
    and.b32 %r1, %r2, %r3; or.b32 %r1, %r2, %r3; xor.b32 %r1, %r2, %r3; not.b32 %r1, %r2; shl.b32 %r1, %r2, %r3;
    shr.u32 %r1, %r2, %r3; shr.s32 %r1, %r2, %r3; min.s32 %r1, %r2, %r3; max.s32 %r1, %r2, %r3; min.u32 %r1, %r2, %r3;
    max.u32 %r1, %r2, %r3; mov.b32 %r1, %r2; selp.b32 %r1, %r2, %r3, %p1; add.f32 %r1, %r2, %r3; sub.f32 %r1, %r2, %r3;
    mul.f32 %r1, %r2, %r3; fma.rn.f32 %r1, %r2, %r3, %r4; lop3.b32 %r1, %r2, %r3, %r4, 5; mov.b64 %d1, %d2;
    add.s64 %d1, %d2, 7; sub.s64 %d1, %d2, %d3; mul.lo.s64 %d1, %d2, %d3; and.b64 %d1, %d2, %d3; or.b64 %d1, %d2, %d3;
    xor.b64 %d1, %d2, %d3; shl.b64 %d1, %d2, %r3; shr.u64 %d1, %d2, %r3; shr.s64 %d1, %d2, %r3;
    selp.b64 %d1, %d2, %d3, !%p1; mul.wide.u32 %d1, %r2, %r3; mul.wide.s32 %d1, %r2, %r3; mad.wide.u32 %d1, %r2, %r3, %d4;
    mad.wide.s32 %d1, %r2, %r3, %d4; cvt.u64.u32 %d1, %r2; cvt.s64.s32 %d1, %r2; cvt.u32.u64 %r1, %d2;
    mov.b64 %d1, {%r2, %r3}; mov.b64 {%r1, _}, %d2; setp.lt.s32 %p1, %r2, %r3; setp.lt.and.u32 %p1|%p2, %r2, %r3, %p3;
    setp.lt.s64 %p1, %d2, %d3; setp.lt.u64 _|%p2, %d2, %d3; setp.lt.f32 %p1, %r2, %r3; setp.lt.f64 %p1, %d2, %d3;
    mov.pred %p1, %p2; and.pred %p1, %p2, 1; or.pred %p1, %p2, %p3; xor.pred %p1, %p2, %p3; not.pred %p1, %p2;
    div.u64 %d1, %d2, %d3; bfe.u32 %r1, %r2, %r3, %r4; bfi.b64 %d1, %d2, %d3, %r4, %r5; div.u32 %r1, %r2, %r3;
    add.cc.u32 %r1, %r2, %r3; addc.cc.u64 %d1, %d2, %d3; mov.u32 %r1, %tid.x; mov.u64 %d1, %clock64;
    @%p1 ld.global.v4.u32 {%r1, _, %r3, %r4}, [%d1]; ld.shared.u8 %d1, [%r1]; st.global.v2.b64 [%d1], {%d2, %d3};
    ld.param.u64 %d4, [out]; atom.global.add.u32 %r1, [%d1], %r2; atom.global.cas.b64 %d1, [%d2], %d3, %d4;
    red.shared.add.u32 [%r1], %r2; atom.global.add.u32 _, [%d1], %r2; cp.async.ca.shared.global [%r1], [%d1], 4, %r2;
    cp.async.cg.shared.global [%d2], [%d1], 16, %p1; cp.async.commit_group; cp.async.wait_group 1; fence.sc.gpu;
    barrier.sync %r1, %r2; bar.arrive 1, 64; bar.red.popc.u32 %r1, 0, %p1; barrier.red.or.pred %p2, 0, 64, !%p1;
    bar.warp.sync %r1; shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1; shfl.sync.up.b32 %r1|_, %r2, %r3, 31, -1;
    vote.sync.ballot.b32 %r1, %p1, -1; vote.sync.any.pred %p2, %p1, -1; match.any.sync.b64 %r1, %d1, -1;
    match.all.sync.b32 _|%p1, %r2, -1; redux.sync.add.s32 %r1, %r2, -1; elect.sync _|%p1, -1; activemask.b32 %r1;
    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3]; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%d3], {%r1};
    movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, _, %r4}, {%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4};
    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d3}, {%d4}, {%d1, %d2}; isspacep.shared %p1, %d1;
    discard.global.L2 [%d1], 128; wmma.load.a.sync.aligned.col.m8n8k4.f64 {%d1}, [%d2], %r1;
    nanosleep.u32 4; griddepcontrol.wait; griddepcontrol.launch_dependents; mbarrier.init.shared.b64 [%r1], 4;
    mbarrier.inval.shared.b64 [%d1]; mbarrier.arrive.shared.b64 %d1, [%r1], 2; mbarrier.arrive.shared.b64 _, [%r1];
    mbarrier.arrive.expect_tx.shared.b64 %d1, [%r1], %r2; mbarrier.test_wait.shared.b64 %p1, [%r1], %d2;
    mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 1; mbarrier.pending_count.b64 %r1, %d1;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r1]; mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1], 8;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 16, [%r2];
    cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], %r2; cp.async.bulk.prefetch.L2.global [%d1], 16;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r3], 16, [%r2];
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
        [%r1], [%d1, {%r2, %r3}], [%r4], %h1;
    tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 0, %r2;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%r1], 128;
    prefetch.tensormap [%d1]; fence.proxy.tensormap::generic.acquire.gpu [%d1], 128; fence.proxy.tensormap::generic.release.cta;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; fence.proxy.async; fence.mbarrier_init.release.cluster;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r1], {%d1, %d2}, [%r2];
    barrier.cluster.arrive; barrier.cluster.wait; mapa.u64 %d1, %d2, %r1; getctarank.shared::cluster.u32 %r1, %r2;
    setmaxnreg.inc.sync.aligned.u32 64; wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, %d1, %d2, %p1, 1, 1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, %d2, %p1, 1, 1, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; call (%r1), vprintf, (%d1, %d2);
    call __assertfail, (%d1, %d2, %r1, %d3, %d4); @%p1 bra END;
TARGETS: .branchtargets END, NEXT;
    brx.idx %r1, TARGETS;
NEXT:
    @!%p2 trap;
END:
    ret;
";

fn code() -> Code {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n\
         .visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>;\n.reg .b16 %h<2>;\n.reg .b32 %r<9>;\n.reg .b64 %d<5>;\n{BODY}\n}}\n"
    );
    let module = parse::parse(&text).expect("PTX");
    let entry = module.functions.iter().find(|f| f.is_entry).expect("an entry");
    crate::lower::lower(&module, entry).unwrap_or_else(|e| panic!("{e}"))
}

/// Fields that an operation may do without.
fn is_optional(inst: &Inst, field: usize) -> bool {
    match inst.op {
        Op::SetpS32 | Op::SetpU32 | Op::SetpS64 | Op::SetpU64 | Op::SetpF32 | Op::SetpLane | Op::Shfl | Op::Match => {
            field == 1
        }
        Op::Carry => matches!(field, 1 | 4),
        Op::Bar | Op::BarRed => field == 3,
        Op::CpAsync | Op::Wgmma => field == 4,
        Op::Mbarrier => matches!(field, 0 | 3),
        Op::Lane => field >= 2,
        _ => false,
    }
}

fn field(inst: &mut Inst, n: usize) -> &mut u32 {
    [&mut inst.d, &mut inst.e, &mut inst.a, &mut inst.b, &mut inst.c].into_iter().nth(n).expect("five fields")
}

/// Asserts that the entry with one change is refused as a bug of this crate.
fn refused(code: &Code, what: &str, change: impl FnOnce(&mut Code)) {
    let mut changed = code.clone();
    change(&mut changed);
    let error = changed.proved().map(drop).expect_err(what);
    assert_eq!(error.kind, ErrorKind::Defect, "{what}: {error}");
    assert!(!error.found.is_empty() && !error.required.is_empty() && !error.help.is_empty(), "{what}: {error}");
}

#[test]
fn every_operation_is_here_and_is_proved() {
    let code = code();
    let seen: BTreeSet<u32> = code.insts.iter().map(|inst| inst.op as u32).collect();
    let missing: Vec<u32> = (0..=Op::Converge as u32).filter(|op| !seen.contains(op)).collect();
    assert!(missing.is_empty(), "operations without an instruction, by number: {missing:?}");
    code.proved().unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_wrong_operand_is_found() {
    let code = code();
    let of_kind = |kind: RowKind| code.1.iter().position(|k| *k == kind).expect("one") as u32;
    let constant = code.constants.iter().map(|c| c.row).min().expect("constants");
    let wrong = [code.rows.max(code.preds), code.rows.max(code.preds) + 1, u32::MAX - 1, of_kind(RowKind::Second)];
    let mut tried = 0;
    for (pc, inst) in code.insts.iter().enumerate() {
        for n in 0..5 {
            let at = *field(&mut inst.clone(), n);
            let what = format!("{inst:?}, field {n}");
            let mut put = |value: u32| {
                tried += 1;
                refused(&code, &format!("{what} is {value}"), |c| *field(&mut c.0.insts[pc], n) = value);
            };
            if at == NONE {
                // An operand too many, or one that is wrong.
                put(code.rows.max(code.preds));
                continue;
            }
            // The last is a row, and no predicate's number says that it is none.
            let is_row = at < code.rows && matches!(code.1.get(at as usize), Some(RowKind::Single | RowKind::First));
            wrong[..if is_row && at >= code.preds { 4 } else { 3 }].iter().for_each(|value| put(*value));
            if !is_optional(inst, n) {
                put(NONE);
            }
            if n < 2 && at >= code.preds {
                put(constant);
            }
        }
        for i in 0..usize::from(inst.len) {
            for value in wrong.into_iter().chain([NONE]) {
                tried += 1;
                refused(&code, &format!("{inst:?}, register {i} is {value}"), |c| {
                    c.0.list[inst.list as usize + i] = value
                });
            }
        }
        for (defs, len) in [(1, 0), (0, 1), (0, 200)] {
            // As many stores as `st.async` may have.
            if !(inst.op == Op::StAsync && (defs, len) == (0, 2)) {
                refused(&code, &format!("{inst:?} with {defs} and {len} more"), |c| {
                    c.0.insts[pc].defs += defs;
                    c.0.insts[pc].len = c.0.insts[pc].len.saturating_add(len);
                });
            }
        }
        if inst.len > 0 {
            refused(&code, &format!("{inst:?} beyond the list"), |c| c.0.insts[pc].list = u32::MAX - 300);
        }
        refused(&code, &format!("{inst:?} with a guard"), |c| c.0.insts[pc].guard = code.preds << 1);
    }
    assert!(tried > 1500, "{tried} tried");
}

#[test]
fn every_wrong_table_entry_is_found() {
    let code = code();
    for (pc, inst) in code.insts.iter().enumerate() {
        use Op::*;
        let has_table = matches!(
            inst.op,
            Bra | Brx
                | SetpS32
                | SetpU32
                | SetpS64
                | SetpU64
                | SetpF32
                | SetpLane
                | Lane
                | Ld
                | St
                | Discard
                | LdParam
                | Atom
                | CpAsync
                | Bar
                | BarArrive
                | BarRed
                | LdMatrix
                | StMatrix
                | Mma
                | Mbarrier
                | Bulk
                | StAsync
                | Map
                | Wgmma
                | Sreg
        );
        if has_table {
            refused(&code, &format!("{inst:?} beyond its table"), |c| c.0.insts[pc].x = u32::MAX);
        }
    }
    let end = code.insts.len() as u32;
    refused(&code, "a target beyond the end", |c| c.0.tables[0][1] = end);
    refused(&code, "an entry that goes on", |c| c.0.insts[end as usize - 1].op = Op::Nop);
    refused(&code, "an exit with a guard", |c| c.0.insts[end as usize - 1].guard = 0);
    refused(&code, "no instruction", |c| c.0.insts.clear());
    refused(&code, "elements of 3 bytes", |c| c.0.mems[0].bytes = 3);
    refused(&code, "elements of 8 bytes in 32 bits", |c| {
        let narrow = c.0.mems.iter_mut().find(|m| !m.wide).expect("one");
        (narrow.bytes, narrow.elements) = (8, 1);
    });
    refused(&code, "parameters beyond the last", |c| c.0.param_bytes = 4);
    refused(&code, "a copy of 32 bytes", |c| c.0.copies[0].bytes = 32);
    refused(&code, "three matrices", |c| c.0.matrices[0].count = 3);
    refused(&code, "a product of another shape", |c| c.0.mmas[0].k = 32);
    refused(&code, "a product of more columns", |c| c.0.asyncs.wgmmas[0].n = 512);
    refused(&code, "a copy of six modes", |c| c.0.asyncs.bulks[0].modes = 6);
    refused(&code, "a register of 40 bits", |c| {
        c.0.lanes.iter_mut().filter(|l| l.d == crate::code::Class::W32).for_each(|l| l.bits = 40);
    });
    refused(&code, "a row too many", |c| c.0.rows += 1);
    refused(&code, "half a value", |c| {
        let at = c.1.iter().position(|k| *k == RowKind::Second).expect("one");
        c.1[at] = RowKind::Single;
    });
    refused(&code, "an instruction without a place", |c| c.0.places.truncate(1));
    refused(&code, "an opcode without a name", |c| c.0.opcodes[0] = u32::MAX);
    refused(&code, "a constant without a row", |c| c.0.constants[0].row = NONE);
}

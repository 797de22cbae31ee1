//! Hostile texts: cut, changed, spliced, and random bytes. Reading and running them never panics, hangs or exhausts memory.

use ptx_exec::{Modes, Module};

mod shapes;
mod structure;

use crate::forms::{Compare, Form, Inputs, forms, module};
use crate::variables;

/// Default number of texts. `PTX_EXEC_FUZZ_RUNS` sets another number, and `PTX_EXEC_FUZZ_SEED` the first seed.
const RUNS: u64 = 2000;

fn mix(z: &mut u64) -> u64 {
    *z = z.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *z >> 33
}

/// Pieces that a reader may trip over.
const ODD: [&str; 26] = [
    "{",
    "}",
    ";",
    "[",
    "%r1",
    "0x",
    "-",
    "0f",
    ".v4",
    "<4000000000>",
    "18446744073709551615",
    "\u{0}",
    "@!",
    "\"",
    ".reg .b64 %q<16000000>;",
    "call f0, (%r1);",
    ".shared .b8 x[99999999999999];",
    "LOOP: bra LOOP;",
    "bar.sync 0;",
    "@%p0 bar.sync 1, 64;",
    "st.global.b64 [%d1], %d1;",
    "ld.local.u32 %w1, [%w2];",
    "atom.global.add.u32 %w1, [%a4], 1;",
    "mbarrier.init.shared.b64 [%w1], 1;",
    "shfl.sync.idx.b32 %w1, %w2, %w3, 31, -1;",
    "brx.idx %w1, LIST;",
];

/// Runs an accepted text within a budget, with findings or without.
fn run(module: &Module, ran: &mut usize) {
    for entry in module.entries().flatten().take(2) {
        let bytes: u64 = entry.params.last().map_or(0, |p| p.offset + p.bytes);
        if bytes > 4096 {
            continue;
        }
        let launch = module.launch(&entry.name).expect("it is listed").params(&vec![0; bytes as usize]);
        let launch = launch.grid(&[2]).block(&[48]).modes(Modes::ALL).workers(1).step_budget(20_000).profile(true);
        if launch.run().is_ok() {
            *ran += 1;
        }
    }
}

/// Control flow, memory and what lanes and threads do together, in the registers of the forms.
const BODIES: [&str; 12] = [
    "mov.u32 %w1, 0;\nL1:\nadd.u32 %w1, %w1, 1;\nsetp.lt.u32 %p0, %w1, %t1;\n@%p0 bra L1;\ncvt.u64.u32 %o0, %w1;",
    "setp.lt.u32 %p0, %t1, 5;\n@%p0 bra L2;\nbar.sync 0;\nbra.uni L3;\nL2:\nbar.sync 0;\nL3:\nmov.u64 %o0, %d1;",
    ".shared .align 16 .b8 room[512];\nmov.u32 %w1, room;\nshl.b32 %w2, %t1, 2;\nadd.u32 %w1, %w1, %w2;\nst.shared.u32 [%w1], %w3;\nbar.sync 0;\nld.shared.u32 %w4, [%w1];\ncvt.u64.u32 %o0, %w4;",
    ".shared .align 16 .b8 stage[2048];\nmov.u32 %w1, stage;\nshl.b32 %w2, %t1, 4;\nadd.u32 %w1, %w1, %w2;\nand.b64 %d2, %a2, -16;\ncp.async.ca.shared.global [%w1], [%d2], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\nld.shared.v4.u32 {%w3, %w4, %w5, %w6}, [%w1];\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%w7}, [%w1];\ncvt.u64.u32 %o0, %w3;",
    "shfl.sync.bfly.b32 %w1|%p0, %w2, 1, 31, -1;\nvote.sync.ballot.b32 %w3, %p0, -1;\nredux.sync.add.s32 %w4, %w3, -1;\nmatch.any.sync.b32 %w5, %w4, -1;\nactivemask.b32 %w6;\ncvt.u64.u32 %o0, %w5;",
    "atom.global.add.u32 %w1, [%a4], %w2;\nred.relaxed.gpu.global.max.s32 [%a4], %w2;\natom.acq_rel.gpu.global.cas.b64 %d3, [%a4], %d1, %d2;\nfence.acq_rel.gpu;\nmov.u64 %o0, %d3;",
    ".local .align 8 .b8 own[64];\nmov.u32 %w1, own;\nand.b32 %w2, %t1, 15;\nshl.b32 %w2, %w2, 2;\nadd.u32 %w1, %w1, %w2;\nst.local.u32 [%w1], %w3;\nld.local.u16 %h1, [%w1+2];\ncvt.u64.u16 %o0, %h1;",
    "bar.red.popc.u32 %w1, 1, %p0;\nbarrier.sync 2, 64;\nbar.arrive 3, 96;\nbar.warp.sync -1;\nmembar.gl;\ncvt.u64.u32 %o0, %w1;",
    "LIST: .branchtargets L4, L5;\nand.b32 %w1, %t1, 1;\nbrx.idx %w1, LIST;\nL4:\nadd.u32 %w2, %w2, 1;\nL5:\ncvt.u64.u32 %o0, %w2;",
    "{\n.reg .b32 %w<3>;\nmov.u32 %w1, %laneid;\nmov.u32 %w2, %clock;\n}\nmov.u64 %d3, %globaltimer;\nisspacep.shared %p0, %d3;\n@%p0 trap;\nmov.u64 %o0, %d3;",
    "add.cc.u32 %w1, %w2, %w3;\naddc.u32 %w4, %w5, %w6;\nlop3.b32 %w7, %w1, %w2, %w3, 0x96;\nmov.b64 {%w8, %w9}, %d1;\nmov.b32 {%h1, %h2}, %w8;\nselp.b64 %o0, %d1, %d2, %p0;",
    "setp.ne.u32 %p0, %t1, 3;\n@%p0 ret;\nnanosleep.u32 20;\nL6:\nld.relaxed.gpu.global.u32 %w1, [%a4];\nsetp.eq.u32 %p1, %w1, 77;\n@%p1 bra L6;\nmov.u64 %o0, 1;",
];

/// Entries by their lines, and the lines ahead of all of them.
fn seeds() -> (String, Vec<Vec<String>>) {
    let mut all = forms();
    let body = |(i, body): (usize, &&str)| {
        let name = format!("body {i}");
        Form { name, inputs: Inputs::Integers, results: 1, compare: Compare::Exact, body: format!("{body}\n") }
    };
    // As often as a fourth of the forms.
    for _ in 0..all.len() / (4 * BODIES.len()) {
        all.extend(BODIES.iter().enumerate().map(body));
    }
    let text = module(&all);
    let (head, rest) = text.split_once("//").expect("a comment ahead of each entry");
    (head.to_owned(), rest.split("\n//").map(|entry| entry.lines().skip(1).map(str::to_owned).collect()).collect())
}

/// Changes a text line by line, so that most lines are still PTX.
fn mutate_lines(lines: &mut Vec<String>, others: &[Vec<String>], state: &mut u64) {
    let at = mix(state) as usize % lines.len();
    let other = &others[mix(state) as usize % others.len()];
    match mix(state) % 8 {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let to = mix(state) as usize % lines.len();
            lines.swap(at, to);
        }
        3 | 4 => lines.insert(at, other[mix(state) as usize % other.len()].clone()),
        5 => lines.insert(at, ODD[mix(state) as usize % ODD.len()].to_owned()),
        _ => {
            // Another register, number or modifier.
            let digits: Vec<usize> = lines[at].match_indices(|c: char| c.is_ascii_digit()).map(|(i, _)| i).collect();
            let Some(i) = digits.get(mix(state) as usize % digits.len().max(1)) else { return };
            let with = ["0", "1", "2", "7", "16", "31", "64", "-1"][mix(state) as usize % 8];
            lines[at].replace_range(*i..*i + 1, with);
        }
    }
}

fn mutate_bytes(text: &mut Vec<u8>, state: &mut u64) {
    let at = mix(state) as usize % text.len().max(1);
    match mix(state) % 4 {
        _ if text.is_empty() => {}
        0 => text.truncate(at),
        1 => text[at] = mix(state) as u8,
        2 => drop(text.splice(at..at, ODD[mix(state) as usize % ODD.len()].bytes())),
        _ => drop(text.drain(at..(at + mix(state) as usize % 40).min(text.len()))),
    }
}

#[test]
fn no_text_panics_or_hangs() {
    let runs = variables::number("PTX_EXEC_FUZZ_RUNS").unwrap_or(RUNS);
    let (head, entries) = seeds();
    let mut state = variables::number("PTX_EXEC_FUZZ_SEED").unwrap_or(7);
    let (mut read, mut refused, mut ran) = (0_u64, 0_u64, 0);
    for number in 0..runs {
        let mut lines = entries[mix(&mut state) as usize % entries.len()].clone();
        for _ in 0..mix(&mut state) % 4 {
            mutate_lines(&mut lines, &entries, &mut state);
        }
        let mut text = format!("{head}{}\n", lines.join("\n")).into_bytes();
        if number.is_multiple_of(64) {
            text = (0..mix(&mut state) % 400).map(|_| mix(&mut state) as u8).collect();
        }
        if number.is_multiple_of(4) {
            mutate_bytes(&mut text, &mut state);
        }
        match Module::parse(String::from_utf8_lossy(&text).into_owned()) {
            Ok(module) => {
                read += 1;
                run(&module, &mut ran);
            }
            Err(error) => {
                refused += 1;
                assert!(!error.what.is_empty());
            }
        }
    }
    println!("{read} read, {ran} ran, {refused} refused");
    // Half of them get as far as the machine.
    assert!(2 * read > runs && 4 * ran as u64 > runs && refused > 0, "{read} read, {ran} ran, {refused} refused");
}

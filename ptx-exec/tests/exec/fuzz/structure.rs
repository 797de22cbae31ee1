//! Structured fuzzing: every instruction form, with every operand replaced by every kind of operand in turn, among correct instructions.
//! Accepted programs run, and the lowering has no internal error.

use ptx_exec::{Buffer, Data, ErrorKind, Modes, Module, Placement, TensorCores};

use super::mix;
use super::shapes::{KINDS, WORDS, shapes};
use crate::variables;

/// Programs of each shape that the suite runs; `PTX_EXEC_FUZZ_PROGRAMS` sets how many in all, for a longer run.
const PROGRAMS: u64 = 11;

const HEAD: &str = ".version 8.6
.target sm_90a
.address_size 64
.const .align 8 .b32 fixed[4] = {1, 2, 3, 4};
.global .align 8 .b8 glob[64];
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.func (.param .b32 r) f0(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; st.param.b32 [r], %x; ret; }
.func (.param .b64 r) f1(.param .b64 a) { .reg .b64 %x; ld.param.b64 %x, [a]; st.param.b64 [r], %x; ret; }
.func (.param .b16 r) f2(.param .b16 a) { ret; }
.func f3() { ret; }
.func (.param .align 8 .b8 r[8]) f4(.param .align 8 .b8 a[8]) { ret; }
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .pred %p<2>; .reg .b16 %h<12>; .reg .b32 %w<30>; .reg .b64 %d<30>, %o<8>, %a<8>; .reg .b32 %t<4>; .reg .v4 .b32 %v;
.shared .align 128 .b8 room[1024]; .shared .align 8 .b64 bar0; .local .align 8 .b8 own[64];
.param .b32 ret0; .param .b32 arg0; .param .align 8 .b8 eight[8];
mov.u32 %t1, %tid.x;
ld.param.u64 %a3, [out];
ld.param.u64 %a1, [in];
mul.wide.u32 %a0, %t1, 8;
add.u64 %a2, %a1, %a0;
add.u64 %a4, %a3, %a0;
mov.u32 %w21, room;
shl.b32 %t2, %t1, 3;
add.u32 %w20, %w21, %t2;
mov.u32 %w22, bar0;
";

/// The kind of operand that stands in each operand of each shape in turn: the number of a program says which.
fn mutate(number: u64, opcode: &mut String, operands: &mut Vec<String>, state: &mut u64) {
    let pick = |state: &mut u64, n: usize| mix(state) as usize % n.max(1);
    match mix(state) % 8 {
        0 if !operands.is_empty() => drop(operands.remove(pick(state, operands.len()))),
        1 => operands.insert(pick(state, operands.len() + 1), KINDS[pick(state, KINDS.len())].to_owned()),
        2 => {
            let mut words: Vec<&str> = opcode.split('.').collect();
            let at = 1 + pick(state, words.len() - 1);
            if at < words.len() {
                words[at] = WORDS[pick(state, WORDS.len())];
            }
            *opcode = words.join(".");
        }
        3 => *opcode = format!("@{} {opcode}", KINDS[pick(state, 18)]),
        _ if operands.is_empty() => {}
        _ => {
            let at = number as usize % (operands.len() * KINDS.len());
            operands[at / KINDS.len()] = KINDS[at % KINDS.len()].to_owned();
        }
    }
}

fn program(number: u64, seed: u64, all: &[(String, Vec<String>)]) -> (String, u64) {
    // Any program can be made again from its number.
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed;
    mix(&mut state);
    let mut text = HEAD.to_owned();
    let lines = 1 + mix(&mut state) % 4;
    let wrong = mix(&mut state) % lines;
    let labels = [mix(&mut state) % (lines + 1), mix(&mut state) % (lines + 1)];
    text.push_str("LIST: .branchtargets L1, L2;\n");
    for line in 0..=lines {
        for (name, at) in ["L1", "L2"].iter().zip(labels) {
            if at == line {
                text.push_str(&format!("{name}:\n"));
            }
        }
        if line == lines {
            break;
        }
        let is_wrong = line == wrong && !mix(&mut state).is_multiple_of(4);
        let at = if line == wrong { number } else { mix(&mut state) };
        let (mut opcode, mut operands) = all[at as usize % all.len()].clone();
        if is_wrong {
            mutate(number / all.len() as u64, &mut opcode, &mut operands, &mut state);
        }
        text.push_str(&format!("{opcode} {};\n", operands.join(", ")));
    }
    text.push_str("st.global.b64 [%a4], %o0;\nret;\n}\n");
    (text, state)
}

/// Runs what was accepted; whether it ran.
fn run(module: &Module, text: &str, mut state: u64) -> bool {
    let mut next = |n: u64| mix(&mut state) % n;
    let modes = Modes { bounds: next(2) == 0, init: next(2) == 0, races: next(3) == 0 };
    let threads = [1, 31, 32, 33, 64, 128][next(6) as usize];
    let placement = if next(2) == 0 { Placement::Exact } else { Placement::Driver };
    let cores = [TensorCores::Fast, TensorCores::Hopper, TensorCores::Ampere][next(3) as usize];
    let (mut out, input) = ([0_u8; 1040], [7_u8; 1040]);
    let mut buffer = Buffer::new("out", Data::Write(&mut out));
    (buffer.align, buffer.offset) = (1 << next(12), 0);
    buffer.offset = [0, 1, buffer.align / 2, buffer.align][next(4) as usize];
    let tensor = |offset, item, extent, stride| ptx_exec::Tensor {
        name: "t".to_owned(),
        offset,
        item,
        shape: vec![extent, 2],
        stride: vec![stride, 1],
    };
    buffer.tensors = match next(5) {
        0 => vec![tensor(0, 1, 520, 2)],
        1 => vec![tensor(16, 4, 20, 6), tensor(0, 1, 9, 100)],
        2 => vec![tensor(0, 8, 100, 1)],
        3 => vec![tensor(next(u64::MAX), next(17), next(u64::MAX), next(u64::MAX) as i64)],
        _ => Vec::new(),
    };
    let Ok(launch) = module.launch("k") else { return false };
    let launch = launch.arg_buffer(buffer).input("in", &input).block(&[threads]).grid(&[1 + next(2) as u32]).workers(1);
    let launch = launch
        .cluster(&[1 + next(8) as u32 / 7])
        .seed(next(9))
        .step_budget(400)
        .profile(next(8) == 0)
        .paths(next(8) == 0);
    match launch.modes(modes).placement(placement).tensor_cores(cores).run() {
        Ok(_) => true,
        Err(error) => {
            assert_ne!(error.kind, ErrorKind::Defect, "{error}\n{text}");
            false
        }
    }
}

#[test]
fn no_operand_of_any_form_goes_wrong() {
    let asked = variables::number("PTX_EXEC_FUZZ_PROGRAMS");
    let first = variables::number("PTX_EXEC_FUZZ_FIRST").unwrap_or(0);
    let seed = variables::number("PTX_EXEC_FUZZ_SEED").unwrap_or(7);
    let all = shapes();
    let sample = PROGRAMS * all.len() as u64;
    let programs = asked.unwrap_or(sample);
    assert!(all.len() > 400, "{} shapes", all.len());
    let (mut accepted, mut ran) = (0_u64, 0_u64);
    let mut right = vec![false; all.len()];
    for number in first..first + programs {
        if asked.is_some() && number.is_multiple_of(1000) {
            println!("at {number} of seed {seed}");
        }
        let (text, state) = program(number, seed, &all);
        let Ok(module) = Module::parse(text.as_str()) else { continue };
        let refusal = module.entries().find_map(Result::err).map(|(_, e)| e.kind);
        assert_ne!(refusal, Some(ErrorKind::Defect), "program {number}:\n{text}");
        if refusal.is_none() {
            accepted += 1;
            right[number as usize % all.len()] = true;
            ran += u64::from(run(&module, &text, state));
        }
    }
    let missing: Vec<&String> =
        right.iter().zip(&all).filter(|(right, _)| !**right).map(|(_, (opcode, _))| opcode).collect();
    println!(
        "{programs} programs of {} shapes, {accepted} accepted, {ran} ran, never accepted: {missing:?}",
        all.len()
    );
    assert!(4 * accepted > programs && 3 * ran > accepted, "{accepted} accepted, {ran} ran of {programs}");
    assert!(programs < sample || missing.len() * 50 < all.len(), "{missing:?}");
}

//! Texts that nobody means well with: cut, changed, spliced, and of random bytes. Nothing panics, hangs or fills the memory, neither
//! when they are read nor when what was accepted runs.

use cutemplate::exec::ptx::{Modes, Module};

use crate::forms::{forms, module};

/// How many, else; `CUTEMPLATE_FUZZ_RUNS` sets it for a longer run.
const RUNS: u64 = 4000;

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

/// A text that was accepted runs, whatever it does: within its budget, and with findings or without.
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

#[test]
fn no_text_panics_or_hangs() {
    let runs = std::env::var("CUTEMPLATE_FUZZ_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(RUNS);
    let all = forms();
    let seeds: Vec<String> = all.chunks(120).map(module).collect();
    let seeds: Vec<Vec<&str>> = seeds.iter().map(|text| text.lines().collect()).collect();
    let mut state = 7;
    let (mut read, mut refused, mut ran) = (0, 0, 0);
    for number in 0..runs {
        let lines = &seeds[mix(&mut state) as usize % seeds.len()];
        let start = mix(&mut state) as usize % lines.len();
        // Most begin where an entry does, so that it is whole.
        let begins = (start..lines.len()).find(|i| lines[*i].starts_with("//")).filter(|_| number % 4 != 0);
        let start = begins.unwrap_or(start);
        let mut text: Vec<u8> = lines[..3].join("\n").into_bytes();
        text.push(b'\n');
        text.extend(lines[start..(start + 60).min(lines.len())].join("\n").bytes());
        if number.is_multiple_of(64) {
            text = (0..mix(&mut state) % 400).map(|_| mix(&mut state) as u8).collect();
        }
        for _ in 0..mix(&mut state) % 4 {
            if text.is_empty() {
                break;
            }
            let at = mix(&mut state) as usize % text.len();
            match mix(&mut state) % 5 {
                0 => text.truncate(at),
                1 => text[at] = mix(&mut state) as u8,
                2 | 3 => {
                    // Pieces stand between statements as often as anywhere.
                    let end = text[at..].iter().position(|b| *b == b'\n').map_or(at, |n| at + n + 1);
                    let at = if mix(&mut state).is_multiple_of(2) { end } else { at };
                    let with = ODD[mix(&mut state) as usize % ODD.len()];
                    text.splice(at..at, with.bytes());
                }
                _ => {
                    let end = (at + mix(&mut state) as usize % 40).min(text.len());
                    text.drain(at..end);
                }
            }
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
    assert!(read > 0 && ran > 0 && refused > 0, "{read} read, {ran} ran, {refused} refused");
}

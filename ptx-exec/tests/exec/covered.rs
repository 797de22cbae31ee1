//! The opcode forms that the lowering accepts, and their coverage by results of an H200. A form without such a result has a reason.
//!
//! `data/ptx_forms.txt` lists the forms that ptxas accepts for sm_90a. `PTX_EXEC_PTXAS=ptxas` runs ptxas again and writes the file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::process::Command;

use ptx_exec::Module;

use crate::forms::{Form, Inputs, form, forms, module};

const TAKEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ptx_forms.txt");

const INTEGERS: [&str; 6] = ["u16", "s16", "u32", "s32", "u64", "s64"];
const BITS: [&str; 3] = ["b16", "b32", "b64"];
const FLOATS: [&str; 6] = ["f16", "f16x2", "bf16", "bf16x2", "f32", "f64"];
const ROUNDINGS: [&str; 5] = ["", ".rn", ".rz", ".rm", ".rp"];
const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", "lo", "ls", "hi", "hs",
];

/// An instruction with operands of these types.
#[derive(Default)]
struct Candidates(Vec<Form>);

impl Candidates {
    fn add(&mut self, op: String, to: &str, from: &[&str]) {
        self.0.push(form(&op, to, from, Inputs::Integers));
    }

    fn integers(&mut self) {
        for t in INTEGERS.into_iter().chain(BITS).chain(["u16x2", "s16x2"]) {
            for op in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max", "and", "or", "xor"] {
                for flag in ["", ".sat", ".relu"] {
                    self.add(format!("{op}{flag}.{t}"), t, &[t, t]);
                }
            }
            for op in ["mad.lo", "mad.hi", "mad.hi.sat", "sad"] {
                self.add(format!("{op}.{t}"), t, &[t; 3]);
            }
            for op in ["abs", "neg", "not", "cnot", "brev"] {
                self.add(format!("{op}.{t}"), t, &[t]);
            }
            for op in ["popc", "clz", "bfind", "bfind.shiftamt"] {
                self.add(format!("{op}.{t}"), "u32", &[t]);
            }
            for op in ["shl", "shr", "szext.clamp", "szext.wrap"] {
                self.add(format!("{op}.{t}"), t, &[t, "u32"]);
            }
            self.add(format!("bfe.{t}"), t, &[t, "u32", "u32"]);
            for op in ["bmsk.clamp", "bmsk.wrap"] {
                self.add(format!("{op}.{t}"), t, &[t, t]);
            }
            self.add(format!("fns.{t}"), "b32", &["b32"; 3]);
            for cmp in COMPARISONS {
                self.add(format!("setp.{cmp}.{t}"), "pred", &[t, t]);
                self.add(format!("set.{cmp}.u32.{t}"), "u32", &[t, t]);
            }
            for by in ["s32", "f32"] {
                self.add(format!("slct.{t}.{by}"), t, &[t, t, by]);
            }
        }
        for (t, wide) in [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")] {
            self.add(format!("mul.wide.{t}"), wide, &[t, t]);
            self.add(format!("mad.wide.{t}"), wide, &[t, t, wide]);
        }
        for half in ["lo", "hi"] {
            for t in ["u32", "s32"] {
                self.add(format!("mul24.{half}.{t}"), t, &[t, t]);
                self.add(format!("mad24.{half}.{t}"), t, &[t; 3]);
                for u in ["u32", "s32"] {
                    self.add(format!("dp4a.{t}.{u}"), "b32", &["b32"; 3]);
                    self.add(format!("dp2a.{half}.{t}.{u}"), "b32", &["b32"; 3]);
                }
            }
        }
        for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
            self.add(format!("prmt.b32{mode}"), "b32", &["b32"; 3]);
        }
        for mode in ["l.clamp", "l.wrap", "r.clamp", "r.wrap"] {
            self.add(format!("shf.{mode}.b32"), "b32", &["b32", "b32", "u32"]);
        }
    }

    fn floats(&mut self) {
        for t in FLOATS {
            for rounding in ROUNDINGS {
                for flag in ["", ".ftz", ".sat", ".ftz.sat", ".relu"] {
                    for op in ["add", "sub", "mul", "div"] {
                        self.add(format!("{op}{rounding}{flag}.{t}"), t, &[t, t]);
                    }
                    self.add(format!("fma{rounding}{flag}.{t}"), t, &[t; 3]);
                    for op in ["rcp", "sqrt"] {
                        self.add(format!("{op}{rounding}{flag}.{t}"), t, &[t]);
                    }
                }
            }
            for flags in ["", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz.NaN.xorsign.abs"] {
                self.add(format!("min{flags}.{t}"), t, &[t, t]);
                self.add(format!("max{flags}.{t}"), t, &[t, t]);
            }
            for ftz in ["", ".ftz"] {
                for op in ["abs", "neg", "copysign", "ex2.approx", "lg2.approx", "sin.approx", "cos.approx"] {
                    let n = if op == "copysign" { 2 } else { 1 };
                    self.add(format!("{op}{ftz}.{t}"), t, &vec![t; n]);
                }
                for op in ["tanh.approx", "rcp.approx", "sqrt.approx", "rsqrt.approx"] {
                    self.add(format!("{op}{ftz}.{t}"), t, &[t]);
                }
                for op in ["div.approx", "div.full"] {
                    self.add(format!("{op}{ftz}.{t}"), t, &[t, t]);
                }
                for cmp in COMPARISONS {
                    self.add(format!("setp.{cmp}{ftz}.{t}"), "pred", &[t, t]);
                    self.add(format!("set.{cmp}{ftz}.u32.{t}"), "u32", &[t, t]);
                }
            }
            for p in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
                self.add(format!("testp.{p}.{t}"), "pred", &[t]);
            }
            for by in ["s32", "f32"] {
                self.add(format!("slct.{t}.{by}"), t, &[t, t, by]);
            }
        }
    }

    fn conversions(&mut self) {
        let scalars = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64"];
        let register = |t: &'static str| if t.ends_with('8') { "b32" } else { t };
        for to in scalars {
            for from in scalars {
                for rounding in ["", ".rn", ".rz", ".rm", ".rp", ".rni", ".rzi", ".rmi", ".rpi"] {
                    for flag in ["", ".ftz", ".sat", ".ftz.sat", ".relu"] {
                        self.add(format!("cvt{rounding}{flag}.{to}.{from}"), register(to), &[register(from)]);
                    }
                }
            }
        }
        for rounding in ["rn", "rz", "rna"] {
            for flag in ["", ".relu", ".satfinite", ".satfinite.relu"] {
                self.add(format!("cvt.{rounding}{flag}.tf32.f32"), "b32", &["f32"]);
                for pair in ["f16x2", "bf16x2"] {
                    self.add(format!("cvt.{rounding}{flag}.{pair}.f32"), "b32", &["f32"; 2]);
                }
                for pair in ["e4m3x2", "e5m2x2"] {
                    self.add(format!("cvt.{rounding}{flag}.{pair}.f32"), "b16", &["f32"; 2]);
                    self.add(format!("cvt.{rounding}{flag}.{pair}.f16x2"), "b16", &["f16x2"]);
                    self.add(format!("cvt.{rounding}{flag}.f16x2.{pair}"), "f16x2", &["b16"]);
                }
            }
        }
    }
}

/// The candidates that ptxas accepts. All are in one text; lines with errors are removed until none has one.
fn taken(ptxas: &OsStr, candidates: &[Form]) -> BTreeSet<String> {
    let head = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry f()\n{\n.reg .pred %p<2>;\n.reg .b16 %h<12>;\n\
                .reg .b32 %w<30>;\n.reg .b64 %d<30>;";
    let mut lines: Vec<&str> = head.lines().collect();
    let first = lines.len();
    lines.extend(candidates.iter().map(|c| c.body.lines().next().expect("an instruction").trim()));
    lines.extend(["ret;", "}"]);
    let path = std::env::temp_dir().join(format!("candidates-{}.ptx", std::process::id()));
    loop {
        std::fs::write(&path, lines.join("\n")).expect("writable");
        let output = Command::new(ptxas).args(["-arch=sm_90a", "-o", "/dev/null"]).arg(&path).output().expect("ptxas");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let numbers = said.split(", line ").skip(1).filter_map(|rest| rest.split(';').next()?.parse::<usize>().ok());
        let named: BTreeSet<usize> = numbers.filter(|n| !lines[n - 1].is_empty()).collect();
        if named.is_empty() {
            std::fs::remove_file(&path).expect("it is there");
            assert!(output.status.success(), "{said}");
            break;
        }
        named.into_iter().for_each(|n| lines[n - 1] = "");
    }
    let kept = candidates.iter().zip(&lines[first..]).filter(|(_, line)| !line.is_empty());
    kept.map(|(candidate, _)| candidate.name.clone()).collect()
}

/// The name that `forms` uses for the same instruction.
fn plain(name: &str) -> String {
    let words: Vec<&str> = name.split('.').collect();
    let ty = words[words.len() - 1];
    match words[0] {
        // Forms of f16 omit `.rn`, and other forms have it.
        "add" | "sub" | "mul" if ty.contains("f16") => name.replacen(".rn", "", 1),
        "add" | "sub" | "mul"
            if matches!(ty, "f32" | "f64") && !ROUNDINGS[1..].contains(&&*format!(".{}", words[1])) =>
        {
            name.replacen('.', ".rn.", 1)
        }
        _ => name.to_owned(),
    }
}

/// The reason why a form has no result of an H200; `None` without a reason.
fn reason(name: &str, computed: &BTreeSet<String>, words: &BTreeSet<(String, String)>) -> Option<&'static str> {
    let all: Vec<&str> = name.split('.').collect();
    let (op, ty) = (all[0], all[all.len() - 1]);
    let unsigned =
        [("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge"), ("b16", "u16"), ("b32", "u32"), ("b64", "u64")];
    let other = |word: &str| {
        unsigned.iter().find(|(w, _)| *w == word).map_or(word.to_owned(), |(_, other)| (*other).to_owned())
    };
    let renamed: Vec<String> = all.iter().map(|w| other(w)).collect();
    // `set` is a comparison, as in `setp`, and a selection.
    let compared = || {
        let of = |ty: &str| {
            let kept = all.iter().filter(|w| !matches!(**w, "u32") || ty == "u32").map(|w| other(w));
            kept.collect::<Vec<_>>()
        };
        let mut words = of(ty);
        words[0] = "setp".to_owned();
        words.dedup();
        computed.contains(&words.join("."))
    };
    let same_op = |all: &[String]| all[1..].iter().all(|w| words.contains(&(op.to_owned(), w.clone())));
    let written: Vec<String> = all.iter().map(|w| (*w).to_owned()).collect();
    match op {
        _ if all.contains(&"approx") || all.contains(&"full") => Some("approximate: bounded, and computed to nearest"),
        "setp" | "set" | "shr" if computed.contains(&renamed.join(".")) => Some("another name of one that is computed"),
        "set" if compared() => Some("a comparison that `setp` computes, and a selection"),
        "slct" => Some("moves registers, whatever their type; both selectors are computed"),
        "cvt" if all.len() == 3 && all[1] == all[2] => Some("moves a register"),
        _ if same_op(&written) => Some("each of its words is computed with this instruction"),
        "setp" | "set" if matches!(ty, "f16" | "bf16") => {
            Some("a half is an f32, of which all comparisons are computed")
        }
        _ => None,
    }
}

#[test]
fn what_is_accepted_was_computed_by_an_h200_or_has_a_reason() {
    let mut candidates = Candidates::default();
    candidates.integers();
    candidates.floats();
    candidates.conversions();
    if let Some(ptxas) = std::env::var_os("PTX_EXEC_PTXAS") {
        let taken = taken(&ptxas, &candidates.0);
        let text: String = taken.iter().map(|name| format!("{name}\n")).collect();
        std::fs::write(TAKEN, text).expect("writable");
    }
    let taken = std::fs::read_to_string(TAKEN).expect("data/ptx_forms.txt");
    let taken: BTreeSet<&str> = taken.lines().collect();
    let computed: BTreeSet<String> = forms().iter().map(|f| plain(&f.name)).collect();
    let of = |name: &String| {
        let (op, rest) = name.split_once('.').unwrap_or((name, ""));
        rest.split('.').map(|w| (op.to_owned(), w.to_owned())).collect::<Vec<_>>()
    };
    let words: BTreeSet<(String, String)> = computed.iter().flat_map(of).collect();
    let (mut missing, mut refused) = (Vec::new(), Vec::new());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for some in candidates.0.chunks(400) {
        let module = Module::parse(module(some)).expect("PTX");
        for (form, entry) in some.iter().zip(module.entries()) {
            let kind = match (taken.contains(&*form.name), entry.is_ok()) {
                (false, true) => "run here, and refused by ptxas",
                (false, false) => "refused by both",
                (true, false) => {
                    refused.push(&*form.name);
                    "not run here"
                }
                _ if computed.contains(&plain(&form.name)) => "computed by an H200",
                _ => reason(&form.name, &computed, &words).unwrap_or_else(|| {
                    missing.push(&*form.name);
                    "without a reason"
                }),
            };
            *counts.entry(kind).or_default() += 1;
        }
    }
    counts.iter().for_each(|(kind, count)| println!("{count} forms: {kind}"));
    assert!(missing.is_empty(), "{} without a result: {}", missing.len(), missing.join(" "));
    assert!(refused.is_empty(), "ptxas takes them: {refused:?}");
    assert!(counts["computed by an H200"] > 700, "{counts:?}");
}

#[test]
fn a_form_without_a_result_is_noticed() {
    let computed: BTreeSet<String> = ["add.rn.f32".to_owned()].into();
    let words: BTreeSet<(String, String)> = [("add", "rn"), ("add", "f32")].map(|(o, w)| (o.into(), w.into())).into();
    assert_eq!(reason("add.rn.f64", &computed, &words), None);
    assert!(reason("add.f32.rn", &computed, &words).is_some());
}

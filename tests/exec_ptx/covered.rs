//! Which opcode forms lowering accepts, of all that their words allow, and which of them the H200's results cover: one that they do
//! not cover has a reason.

use std::collections::{BTreeMap, BTreeSet};

use cutemplate::exec::ptx::Module;

use crate::forms::{Form, Inputs, form, forms, module};

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

/// The same instruction under the name that the forms have: the rounding that is meant where none is written.
fn plain(name: &str) -> String {
    let words: Vec<&str> = name.split('.').collect();
    let is = |i: usize, word: &str| words.get(i) == Some(&word);
    let without_rn =
        matches!(words[0], "add" | "sub" | "mul") && is(1, "rn") && !name.ends_with(".f32") && !name.ends_with(".f64");
    let kept = words.iter().enumerate().filter(|(i, w)| !(without_rn && *i == 1 && **w == "rn"));
    kept.map(|(_, w)| *w).collect::<Vec<_>>().join(".")
}

/// Why a form has no result of an H200. `None` where there is no reason.
fn reason(name: &str) -> Option<&'static str> {
    let has = |word: &str| name.split('.').any(|w| w == word);
    let op = name.split('.').next().unwrap_or_default();
    let ty = name.rsplit('.').next().unwrap_or_default();
    let _ = (op, ty, has);
    None
}

#[test]
fn what_is_accepted_was_computed_by_an_h200_or_has_a_reason() {
    let mut candidates = Candidates::default();
    candidates.integers();
    candidates.floats();
    candidates.conversions();
    let computed: BTreeSet<String> = forms().iter().map(|f| plain(&f.name)).collect();
    let (mut accepted, mut missing) = (0, BTreeSet::new());
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for some in candidates.0.chunks(400) {
        let module = Module::parse(module(some)).expect("PTX");
        for (form, entry) in some.iter().zip(module.entries()) {
            if entry.is_err() {
                continue;
            }
            accepted += 1;
            if computed.contains(&plain(&form.name)) {
                continue;
            }
            match reason(&form.name) {
                Some(reason) => *reasons.entry(reason).or_default() += 1,
                None => drop(missing.insert(form.name.clone())),
            }
        }
    }
    for (reason, count) in &reasons {
        println!("{count} forms: {reason}");
    }
    println!("{accepted} accepted of {}", candidates.0.len());
    let missing: Vec<String> = missing.into_iter().collect();
    assert!(missing.is_empty(), "{} without a result: {}", missing.len(), missing.join(" "));
}

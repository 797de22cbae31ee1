//! From the declaration of an entry to the plan of its kernel: the ABI that a launch is checked and made by.

mod geometry;
mod operands;

use std::sync::Arc;

use super::entry::{Entry, Operand as Tensor, Param};
use super::expr::Scope;
use super::params::{Flat, Source};
use super::text::OwnKernel;
use super::{Cuda, FAMILY};
use crate::arch::Targets;
use crate::diagnostic::{Code, PlanError};
use crate::plan::Own;
use crate::plan::checks::{self, Checks};
use crate::plan::{
    self, Abi, Call, Demand, DemandKind, Given, Int, Operand, ParamStruct, ParamType, Plan, Reach, Rule,
};
use crate::units::Bytes;

/// Dynamic shared memory that every GPU grants without being asked for more.
const USUAL_SHARED: u64 = 48 << 10;

/// The plan of an entry.
pub(super) fn plan(
    cuda: &Cuda,
    name: &str,
    index: usize,
    text: &Arc<str>,
    targets: &Targets,
) -> Result<Plan, PlanError> {
    let names = cuda.names(name);
    let (Some(entry), Some(kernel)) = (cuda.entries.get(index), names.get(index)) else {
        let mut checks = Checks::new(name, targets);
        refuse(&mut checks, format!("`{name}` has no entry"), "at least one entry: Cuda::entry");
        return checks.finish(None);
    };
    let mut checks = Checks::new(&one_line(entry), targets);
    checks::kernel_name(&mut checks, name);
    if kernel != name {
        checks::kernel_name(&mut checks, kernel);
    }
    if names.iter().filter(|other| *other == kernel).count() > 1 {
        let why = "the module and the compiled function of a kernel have its name";
        let help = format!("name the other: Entry::new(\"{}\").named(\"...\")", entry.function);
        checks.push(Code::Name, format!("two kernels are called `{kernel}`"), "a name for each".into(), why, help);
    }
    for (constant, value) in &cuda.constants {
        if let Err(why) = value {
            let found = format!("constant `{constant}`: {why}");
            refuse(&mut checks, found, "a value that C++ has a constant for");
        }
    }
    if let Some(then) = entry.vouched.as_ref().filter(|then| **then != one_line(entry)) {
        let (found, why) =
            ("a declaration that is not the one that was vouched for", "nobody vouches for its launches");
        let help = "call Entry::vouched behind all that declares the kernel".to_owned();
        checks.push(Code::Declaration, found.to_owned(), then.clone(), why, help);
    }
    let abi = abi(cuda, [name, kernel], index, text, targets, &mut checks);
    let abi = checks.finish(Some(abi))?;
    let own = Own::new(cuda, name, &names, text.clone());
    let kernel = OwnKernel { own: Arc::new(own), spills_denied: entry.deny_spills, max_registers: entry.max_registers };
    Ok(Plan {
        abi,
        shared: Vec::new(),
        warnings: Vec::new(),
        facts: Vec::new(),
        kernel: Arc::new(kernel),
        texts: Vec::new(),
    })
}

/// The declaration in a line, for messages.
pub(super) fn one_line(entry: &Entry) -> String {
    let param = |param: &Param| -> String { param_line(param) };
    let params: Vec<String> = entry.params.iter().map(param).collect();
    let mut text = format!("{}({})", entry.function, params.join(", "));
    let three = |of: [String; 3]| if of[1..] == ["1", "1"] { of[0].clone() } else { of.join(" x ") };
    let block = match &entry.threads {
        Some(threads) => format!("{} at most {}", three(threads.clone()), entry.block[0]),
        None => three(entry.block.map(|n| n.to_string())),
    };
    text += &format!(" grid {} block {block}", three(entry.grid.clone()));
    if entry.cluster > 1 {
        text += &format!(" cluster {}", entry.cluster);
    }
    if let Some((bytes, most)) = &entry.shared {
        text += &format!(" shared {bytes}{}", most.map_or(String::new(), |most| format!(" at most {most}")));
    }
    for (name, of) in &entry.values {
        text += &format!(" where {name} = {of}");
    }
    for (condition, _) in &entry.demands {
        text += &format!(" requires {condition}");
    }
    text.replace(|c: char| c.is_control(), " ")
}

fn param_line(param: &Param) -> String {
    match param {
        Param::Operand(Tensor { name, dtype, access, layout, align, in_place }) => {
            let align = if *align > 0 { format!(" at {align}") } else { String::new() };
            let place = if *in_place { " in place" } else { "" };
            format!("{name}: {dtype} {layout}{align} {}{place}", plan::access_verb(*access))
        }
        Param::Value { name, ty, of } => format!("{name}: {} = {of}", ty.c()),
        Param::Scalar { name, ty } => format!("{name}: {}", ty.c()),
        Param::Null { name } => format!("{name}: null"),
        Param::Workspace { bytes } => format!("workspace of {bytes}"),
        Param::Struct { name, fields } => {
            let fields: Vec<String> = fields.iter().map(param_line).collect();
            format!("{name}: {{{}}}", fields.join(", "))
        }
    }
}

const BECAUSE: &str = "a launch is checked and made by the declaration";

fn refuse(checks: &mut Checks, found: String, required: &str) {
    let help = "cutemplate::cuda::Entry says what a declaration can say".to_owned();
    checks.push(Code::Declaration, found, required.to_owned(), BECAUSE, help);
}

/// What a declaration comes to.
struct Draft<'a> {
    entry: &'a Entry,
    flat: Flat<'a>,
    scope: Scope,
    demands: Vec<Demand>,
}

/// The integers of a type that a scalar may have.
fn integers(ty: ParamType) -> Option<[i64; 2]> {
    match ty {
        ParamType::I32 => Some([i64::from(i32::MIN), i64::from(i32::MAX)]),
        ParamType::U8 => Some([0, i64::from(u8::MAX)]),
        ParamType::U16 => Some([0, i64::from(u16::MAX)]),
        _ => None,
    }
}

fn within(value: &Int, [least, most]: [i64; 2]) -> Int {
    Int::from(least).at_most(value.clone()).and(value.clone().at_most(most))
}

impl<'a> Draft<'a> {
    /// Reads layouts, then parameters and named values, in their order.
    fn of(entry: &'a Entry, kernel: &str, checks: &mut Checks) -> (Self, Vec<Operand>, Rule) {
        let flat = Flat::of(&entry.params);
        let mut draft = Self { entry, flat, scope: Scope::default(), demands: Vec::new() };
        draft.names(checks);
        let operands = draft.operands(checks);
        let params = ParamStruct::new(draft.flat.fields.clone());
        let reach = Reach {
            required: "extents and strides whose grid and parameters are in the range of their types".into(),
            because: "the grid, the shared memory or a parameter overflows".into(),
            help: format!("launch `{kernel}` on parts of the tensors, or declare wider parameters"),
        };
        let mut rule = Rule::new(&params, reach);
        draft.values(&mut rule, checks);
        draft.geometry(&mut rule, checks);
        draft.required(checks);
        rule.inputs = core::mem::take(&mut draft.scope.inputs);
        // Behind the parameters, where expressions find them.
        for number in 0..rule.inputs.len() {
            rule.steps.input(&format!("input_{number}"));
        }
        rule.demands = core::mem::take(&mut draft.demands);
        (draft, operands, rule)
    }

    /// Every name once, of letters.
    fn names(&mut self, checks: &mut Checks) {
        let fields = self.flat.fields.iter().map(|(name, ..)| name.as_str());
        let mut seen: Vec<&str> = Vec::new();
        for name in fields.chain(self.entry.values.iter().map(|(name, _)| name.as_str())) {
            let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.len() <= 64
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !is_word {
                let required = "a letter, then letters, digits and underscores, at most 64";
                refuse(checks, format!("a parameter called `{}`", name.escape_debug()), required);
            }
            if seen.contains(&name) {
                refuse(checks, format!("two parameters are called `{name}`"), "a name for each parameter and value");
            }
            seen.push(name);
        }
        self.scope.fields = self.flat.fields.len();
        let scalars = self.flat.fields.iter().filter_map(|(name, ty, _, given)| match given {
            Given::Scalar(number) => Some((name.clone(), *number, integers(*ty).is_some())),
            _ => None,
        });
        self.scope.scalars = scalars.collect();
        // Expressions have the number that the parameter has.
        for (name, ty, _, given) in &self.flat.fields {
            let (Given::Scalar(_), Some([least, most])) = (given, integers(*ty)) else { continue };
            let value = self.scope.input(*given);
            let (condition, required) = (within(&value, [least, most]), format!("{least} <= {name} <= {most}"));
            let (because, found) = (format!("the function gets `{name}` as {}", ty.c()), vec![(name.clone(), value)]);
            self.demands.push(Demand { kind: DemandKind::Launch, condition, required, because, found });
        }
        for (name, ty) in &self.flat.scalars {
            if matches!(ty, ParamType::ConstPtr | ParamType::MutPtr | ParamType::TensorMap) {
                refuse(checks, format!("scalar `{name}` of type {}", ty.c()), "an integer or a float");
            }
        }
    }

    fn demand(&mut self, kind: DemandKind, condition: Int, required: String, because: &str, found: Vec<(String, Int)>) {
        self.demands.push(Demand { kind, condition, required, because: because.to_owned(), found });
    }

    fn read(&mut self, what: &str, text: &str, checks: &mut Checks) -> Int {
        self.scope.read(text).unwrap_or_else(|why| {
            refuse(checks, format!("{what}: {why}"), "an integer expression of what the declaration names");
            Int::Const(0)
        })
    }

    /// The value of each field that follows, and of each name.
    fn values(&mut self, rule: &mut Rule, checks: &mut Checks) {
        let sources: Vec<Source> = self.flat.sources.clone();
        for (index, source) in sources.iter().enumerate() {
            match source {
                Source::Value(name, of) => {
                    let ty = self.flat.fields[index].1;
                    if !matches!(ty, ParamType::I32 | ParamType::I64) {
                        refuse(checks, format!("value `{name}` of type {}", ty.c()), "I32 or I64");
                    }
                    let value = self.read(&format!("parameter `{name}`"), of, checks);
                    self.name(name, &value);
                    rule.derived[index] = Some(value);
                }
                Source::Workspace(bytes) => rule.workspace = self.read("workspace", bytes, checks),
                Source::Gap => rule.derived[index] = Some(Int::Const(0)),
                Source::Given => {}
            }
        }
        for (name, of) in &self.entry.values {
            let value = self.read(&format!("value `{name}`"), of, checks);
            self.name(name, &value);
        }
    }

    /// Names a value. One that a layout names, too, has to be the same.
    fn name(&mut self, name: &str, value: &Int) {
        match self.scope.names.get(name) {
            Some(known) if known != value => {
                let found = vec![(name.to_owned(), known.clone()), ("the parameter".to_owned(), value.clone())];
                let because = "a layout and a parameter of the declaration have this name";
                let condition = known.clone().is(value.clone());
                self.demand(DemandKind::Extent, condition, format!("one value for `{name}`"), because, found);
            }
            Some(_) => {}
            None => {
                self.scope.names.insert(name.to_owned(), value.clone());
            }
        }
    }

    /// What build.rs demands.
    fn required(&mut self, checks: &mut Checks) {
        for (text, because) in &self.entry.demands {
            let condition = self.read("requirement", text, checks);
            let found = self.scope.inputs_of(&condition);
            self.demand(DemandKind::Launch, condition, text.clone(), because, found);
        }
    }
}

/// The ABI of a draft.
fn abi(
    cuda: &Cuda,
    [name, kernel]: [&str; 2],
    index: usize,
    text: &str,
    targets: &Targets,
    checks: &mut Checks,
) -> Abi {
    let entry = &cuda.entries[index];
    let (draft, operands, rule) = Draft::of(entry, kernel, checks);
    let shared = match (rule.grids.last().and_then(|grid| grid.shared.as_ref()), &entry.shared) {
        (Some(Int::Const(bytes)), _) => u64::try_from(*bytes).unwrap_or_else(|_| {
            refuse(checks, format!("{bytes} bytes of shared memory"), "0 or more");
            0
        }),
        (Some(_), Some((_, most))) => most.unwrap_or(USUAL_SHARED),
        _ => 0,
    };
    let least = targets.archs().iter().min_by_key(|arch| arch.smem_per_block());
    if let Some(arch) = least.filter(|arch| shared > arch.smem_per_block().0) {
        let found = format!("{shared} bytes of dynamic shared memory");
        refuse(checks, found, &format!("at most {} on {arch}", arch.smem_per_block()));
    }
    if !(1..=8).contains(&entry.cluster) {
        refuse(checks, format!("a cluster of {} blocks", entry.cluster), "1 to 8 blocks");
    }
    let threads = entry.block.iter().fold(1_u32, |all, n| all.saturating_mul(*n));
    let made = plan::Entry {
        dynamic_smem: Bytes(shared),
        cluster: entry.cluster,
        shape: (entry.block[1..] != [1, 1]).then_some(entry.block),
        params: draft.flat.params.clone(),
        ..plan::Entry::new(kernel, threads, Bytes(0))
    };
    let call = Call {
        views: format!(
            "{kernel}::args({})",
            operands.iter().map(|operand| operand.name).collect::<Vec<_>>().join(", ")
        ),
        scalars: format!("the last of {kernel}::args: {}", draft.flat.scalar_values.join(", ")),
    };
    // Its launch is no safe call unless somebody vouches for it: see `Abi::is_vouched`.
    Abi::new(plan::Draft {
        family: FAMILY,
        rust_type: "Cuda",
        name: kernel.to_owned(),
        recipe: one_line(entry),
        settings: cuda.settings(name, index, text),
        targets: targets.clone(),
        operands,
        params: ParamStruct::new(draft.flat.fields),
        entries: vec![made],
        scalars: draft.flat.scalar_values,
        problem: None,
        call,
        rule,
    })
}

//! Text from the grammar of layouts and expressions: what an operation takes, and now and then what it does not.

use crate::random::Random;
use cute_layout::algebra_tool::Op;

/// The parentheses of a tuple.
#[derive(Clone)]
enum Profile {
    Leaf,
    Tuple(Vec<Profile>),
}

const SMALL: &[i64] = &[1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24, 32, 64];
const ODD: &[i64] = &[0, -1, -2, -3, -8, 5, 7, 9, 25, 100, 127, 255, 1000, 4095, 65536, 65537];
const HUGE: &[i64] = &[
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    1 << 62,
    (1 << 62) - 1,
    -(1 << 62),
    1 << 32,
    (1 << 32) - 1,
    1 << 31,
    3_037_000_500,
    -4_294_967_296,
];
const ILL: &[&str] =
    &["", "-", "1.5", "99999999999999999999", "x y", "1e3", "0x10", "+1", "--1", "'", "1@", "@0", "()"];
const SYMBOLS: &[&str] =
    &["M", "N{div=8}", "4*K", "lda", "M*N", "ceil_div(M,8)", "2*ceil_div(3*N{div=4},8)", "M{div=64}", "0*M", "-2*K"];
const BASES: &[&str] = &["1@0", "1@1", "2@0@1", "-1@1@0", "3@2", "1@0@0", "0@1", "1@255", "9223372036854775807@0"];

/// Generates text; remembers the profile of the last layout, so that coordinates often fit it.
pub(crate) struct Grammar {
    last: Profile,
}

impl Grammar {
    pub(crate) fn new() -> Grammar {
        Grammar { last: Profile::Leaf }
    }

    /// An integer; seldom one that is none.
    pub(crate) fn integer(&mut self, random: &mut Random) -> String {
        match random.below(20) {
            0..=13 => random.number(SMALL).to_string(),
            14..=16 => random.number(ODD).to_string(),
            17 => random.number(HUGE).to_string(),
            18 => random.below(1 << 20).to_string(),
            _ if random.once_in(4) => random.pick(ILL).to_owned(),
            _ => "0".to_owned(),
        }
    }

    fn profile(&mut self, random: &mut Random, depth: usize) -> Profile {
        if depth == 0 || random.below(8) < 3 {
            return Profile::Leaf;
        }
        let rank =
            if random.once_in(40) { 1 + random.below(20) } else { random.number(&[1, 2, 2, 2, 3, 3, 4]) as usize };
        Profile::Tuple((0..rank).map(|_| self.profile(random, depth - 1)).collect())
    }

    fn depth(&mut self, random: &mut Random) -> usize {
        if random.once_in(200) { 8 } else { random.number(&[1, 1, 2, 2, 3]) as usize }
    }

    fn extent(&mut self, random: &mut Random) -> String {
        match random.below(60) {
            0 => random.pick(SYMBOLS).to_owned(),
            1 | 2 => self.integer(random),
            _ => random.number(SMALL).to_string(),
        }
    }

    fn stride(&mut self, random: &mut Random) -> String {
        match random.below(40) {
            0..=3 => "0".to_owned(),
            4..=7 => (-random.number(SMALL)).to_string(),
            8 | 9 => random.pick(BASES).to_owned(),
            10 => random.pick(SYMBOLS).to_owned(),
            11 | 12 => self.integer(random),
            13 => (random.number(SMALL) * random.number(SMALL) + random.number(ODD)).to_string(),
            _ => (random.number(SMALL) * random.number(SMALL)).to_string(),
        }
    }

    pub(crate) fn shape(&mut self, random: &mut Random) -> String {
        let depth = self.depth(random);
        let profile = self.profile(random, depth);
        let text = written(&profile, &mut || self.extent(random));
        self.last = profile;
        text
    }

    /// A layout: compact in some order, with strides of all kinds, or with a stride of another profile.
    pub(crate) fn layout(&mut self, random: &mut Random) -> String {
        let depth = self.depth(random);
        let profile = self.profile(random, depth);
        let leaves = count(&profile);
        let extents: Vec<String> = (0..leaves).map(|_| self.extent(random)).collect();
        let strides = match random.below(5) {
            0 | 1 => compact(&extents, random),
            _ => (0..leaves).map(|_| self.stride(random)).collect(),
        };
        let mut extents = extents.into_iter();
        let shape = written(&profile, &mut || extents.next().unwrap_or_default());
        let stride = if random.once_in(40) {
            let depth = self.depth(random);
            let other = self.profile(random, depth);
            written(&other, &mut || self.stride(random))
        } else {
            let mut strides = strides.into_iter();
            written(&profile, &mut || strides.next().unwrap_or_default())
        };
        self.last = profile;
        format!("{shape}:{stride}")
    }

    pub(crate) fn swizzle(&mut self, random: &mut Random) -> String {
        if random.once_in(16) {
            return format!("Sw<{},{},{}>", self.integer(random), self.integer(random), self.integer(random));
        }
        let bits = random.below(4);
        let shift = bits + random.below(3);
        let sign = if random.once_in(4) { "-" } else { "" };
        format!("{}<{bits},{},{sign}{shift}>", random.pick(&["Sw", "Sw", "S"]), random.below(5))
    }

    /// A layout, a composed layout or a swizzle.
    pub(crate) fn any(&mut self, random: &mut Random) -> String {
        match random.below(12) {
            0..=7 => self.layout(random),
            8..=9 => {
                let offset = if random.once_in(2) { "0".to_owned() } else { self.integer(random) };
                format!("{} o {offset} o {}", self.swizzle(random), self.layout(random))
            }
            10 => {
                let inner = if random.once_in(2) { self.swizzle(random) } else { self.layout(random) };
                format!("{} o {} o {inner}", self.layout(random), self.integer(random))
            }
            _ => self.swizzle(random),
        }
    }

    pub(crate) fn tiler(&mut self, random: &mut Random, depth: usize) -> String {
        match random.below(if depth == 0 { 6 } else { 8 }) {
            0..=1 => self.layout(random),
            2..=3 => self.shape(random),
            4 => "_".to_owned(),
            5 => format!("({},_)", self.integer(random)),
            _ => {
                let entries: Vec<String> = (0..1 + random.below(3)).map(|_| self.tiler(random, depth - 1)).collect();
                let entries = entries.join(",");
                if random.once_in(8) { format!("<{entries}>") } else { format!("[{entries}]") }
            }
        }
    }

    /// A coordinate, mostly for the last layout, with `_` here and there.
    fn coordinate(&mut self, random: &mut Random) -> String {
        let depth = self.depth(random);
        let profile = if random.once_in(4) { self.profile(random, depth) } else { pruned(&self.last, random) };
        written(&profile, &mut || match random.below(8) {
            0..=2 => "_".to_owned(),
            3 => self.integer(random),
            _ => random.below(8).to_string(),
        })
    }

    /// An argument as a usage text describes it: one of the alternatives, or something else.
    fn argument(&mut self, usage: &str, random: &mut Random) -> String {
        if random.once_in(24) {
            return match random.below(4) {
                0 => self.integer(random),
                1 => self.tiler(random, 2),
                2 => self.any(random),
                _ => random.pick(ILL).to_owned(),
            };
        }
        let alternatives: Vec<&str> = usage.split(" or ").collect();
        let wanted = random.pick(&alternatives);
        match wanted {
            _ if wanted.contains("static") || wanted.contains("dynamic") => wanted.to_owned(),
            _ if wanted.contains("coordinate") => self.coordinate(random),
            _ if wanted.contains("layout") => self.any(random),
            _ if wanted.contains("swizzle") => self.swizzle(random),
            _ if wanted.contains("tiler") => self.tiler(random, 2),
            _ if wanted.contains("shape") => self.shape(random),
            _ if wanted.contains("mask") || wanted.contains("0b") => {
                let bits = 1 + random.below(12);
                format!("0b{:b}", random.below(1 << bits))
            }
            _ if wanted.contains("profile") || wanted.contains("order") => {
                let profile = pruned(&self.last, random);
                written(&profile, &mut || random.number(&[0, 1, 2, 3, 7, 7, -1]).to_string())
            }
            _ => self.integer(random),
        }
    }

    /// The arguments of an operation, by its usage; sometimes too many or too few.
    pub(crate) fn arguments(&mut self, op: &Op, random: &mut Random) -> Vec<String> {
        let usage = op.usage.replace(" [", "").replace(']', "");
        let kinds: Vec<&str> = usage.split(", ").collect();
        let mut many = op.least + random.below((op.most - op.least).min(4) + 1);
        if random.once_in(40) {
            many = random.below(6);
        }
        (0..many).map(|i| self.argument(kinds[i.min(kinds.len() - 1)], random)).collect()
    }

    /// A call; a layout among the arguments may be a call itself.
    pub(crate) fn call(&mut self, ops: &[&Op], random: &mut Random, depth: usize) -> String {
        let op = random.pick(ops);
        let mut arguments = self.arguments(op, random);
        if depth > 0
            && random.once_in(3)
            && let Some(first) = arguments.first_mut()
        {
            *first = self.call(ops, random, depth - 1);
        }
        format!("{}({})", op.name, arguments.join(", "))
    }

    /// A program: bindings and a call.
    pub(crate) fn program(&mut self, ops: &[&Op], random: &mut Random) -> String {
        let mut text = String::new();
        if random.once_in(6) {
            let bound = if random.once_in(2) { self.any(random) } else { self.call(ops, random, 1) };
            let op = random.pick(ops);
            let mut arguments = self.arguments(op, random);
            if let Some(any) = arguments.first_mut() {
                *any = "a".to_owned();
            }
            text.push_str(&format!("let a = {bound}; {}({})", op.name, arguments.join(", ")));
            return text;
        }
        self.call(ops, random, 3)
    }
}

fn written(profile: &Profile, leaf: &mut impl FnMut() -> String) -> String {
    match profile {
        Profile::Leaf => leaf(),
        Profile::Tuple(modes) => {
            let modes: Vec<String> = modes.iter().map(|mode| written(mode, leaf)).collect();
            format!("({})", modes.join(","))
        }
    }
}

fn count(profile: &Profile) -> usize {
    match profile {
        Profile::Leaf => 1,
        Profile::Tuple(modes) => modes.iter().map(count).sum(),
    }
}

/// The profile with some of its tuples folded into leaves.
fn pruned(profile: &Profile, random: &mut Random) -> Profile {
    match profile {
        Profile::Tuple(modes) if !random.once_in(5) => {
            Profile::Tuple(modes.iter().map(|mode| pruned(mode, random)).collect())
        }
        _ => Profile::Leaf,
    }
}

/// Prefix products of the extents in a random order, perhaps scaled.
fn compact(extents: &[String], random: &mut Random) -> Vec<String> {
    let mut order: Vec<usize> = (0..extents.len()).collect();
    for i in (1..order.len()).rev() {
        let other = random.below(i + 1);
        if random.once_in(2) {
            order.swap(i, other);
        }
    }
    let mut next = if random.once_in(4) { random.number(SMALL) } else { 1 };
    let mut strides = vec![0i64; extents.len()];
    for i in order {
        strides[i] = next;
        next = next.saturating_mul(extents[i].parse::<i64>().unwrap_or(1));
        if random.once_in(8) {
            next = next.saturating_mul(random.number(SMALL));
        }
    }
    strides.iter().map(i64::to_string).collect()
}

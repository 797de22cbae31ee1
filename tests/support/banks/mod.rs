//! Accesses of one warp to shared memory whose cost was counted on a GPU. `cuda` writes the program that makes them.

pub(crate) mod cuda;

/// What a warp does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// `ld.shared`.
    Load,
    /// `st.shared`.
    Store,
    /// `cp.async`.
    Copy,
}

/// One access: what, how many bytes for each thread, the address of each that takes part, and of a copy the address in
/// global memory that each reads.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    /// What it is, with its addresses in bytes for lane `l`.
    pub(crate) name: String,
    pub(crate) op: Op,
    pub(crate) bytes: i64,
    pub(crate) addresses: Vec<Option<i64>>,
    pub(crate) sources: Vec<i64>,
}

/// Bytes of shared memory that the addresses lie in.
pub(crate) const SPAN: i64 = 32 << 10;
/// Bytes of global memory that the sources of copies lie in.
pub(crate) const SOURCE: i64 = 64 << 10;

/// A generator of numbers that are the same everywhere (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as i64
    }
}

struct List(Vec<Experiment>);

impl List {
    /// Lane `l` touches element `element(l)`, of as many bytes as it moves; or takes no part.
    fn add(&mut self, op: Op, bytes: i64, name: &str, element: impl Fn(i64) -> Option<i64>) {
        let addresses: Vec<Option<i64>> = (0..32).map(|lane| element(lane).map(|index| index * bytes)).collect();
        let verb = format!("{op:?}").to_lowercase();
        let name = format!("{verb} {bytes} B at {bytes} * ({name})");
        let sources = (0..32).map(|lane| bytes * lane).collect();
        self.0.push(Experiment { name, op, bytes, addresses, sources });
    }

    fn all(&mut self, op: Op, bytes: i64, name: &str, element: impl Fn(i64) -> i64) {
        self.add(op, bytes, name, |lane| Some(element(lane)));
    }

    /// Random elements: `distinct` of them, in a span of `span`.
    fn random(&mut self, op: Op, bytes: i64, seed: u64, distinct: i64, span: i64) {
        let mut random = Random(seed);
        let pool: Vec<i64> = (0..distinct).map(|_| random.below(span)).collect();
        let lanes: Vec<i64> = (0..32).map(|_| pool[random.below(distinct) as usize]).collect();
        self.all(op, bytes, &format!("random {seed}: {distinct} of {span}"), |lane| lanes[lane as usize]);
    }

    /// What every width is asked.
    fn common(&mut self, op: Op, bytes: i64) {
        let words = bytes / 4;
        self.all(op, bytes, "l", |l| l);
        self.all(op, bytes, "0", |_| 0);
        self.all(op, bytes, "2 * l", |l| 2 * l);
        self.all(op, bytes, "128 bytes * l", |l| 32 / words.max(1) * l);
        self.all(op, bytes, "31 - l", |l| 31 - l);
        self.all(op, bytes, "l / 8", |l| l / 8);
        self.all(op, bytes, "l % 8", |l| l % 8);
        self.all(op, bytes, "l / 4", |l| l / 4);
        self.all(op, bytes, "l % 16", |l| l % 16);
        self.all(op, bytes, "l / 2", |l| l / 2);
        self.random(op, bytes, 1, 32, 512);
        self.random(op, bytes, 2, 8, 512);
        self.add(op, bytes, "l where l < 16", |l| (l < 16).then_some(l));
        self.add(op, bytes, "l where l is even", |l| (l % 2 == 0).then_some(l));
    }

    /// Lanes that read the same in every arrangement: those that differ in the bits of `mask`.
    fn merged(&mut self, op: Op, bytes: i64, mask: i64) {
        // The bits that stay, side by side, so that the elements that are read are neighbours.
        let dense = move |lane: i64| {
            let kept = (0..5).filter(|bit| mask >> bit & 1 == 0);
            kept.enumerate().map(|(to, from)| (lane >> from & 1) << to).sum()
        };
        self.all(op, bytes, &format!("bits of l without {mask:#07b}"), dense);
    }

    /// Accesses of more than one word, which are served in parts.
    fn wide(&mut self, op: Op, bytes: i64) {
        for mask in 1..31_i64 {
            if mask.count_ones() <= if bytes == 16 { 2 } else { 1 } {
                self.merged(op, bytes, mask);
            }
        }
        for (seed, distinct, span) in [(3, 4, 64), (4, 16, 64), (5, 12, 2048), (6, 32, 32), (7, 32, 2048)] {
            self.random(op, bytes, seed, distinct, span);
        }
        let row = 128 / bytes;
        // One half of the warp, or of each half, could merge; the other could not.
        self.all(op, bytes, "l < 16 ? l / 2 : l", |l| if l < 16 { l / 2 } else { l });
        self.all(op, bytes, "l < 16 ? l : l / 2", |l| if l < 16 { l } else { l / 2 });
        self.all(op, bytes, "l < 16 ? l / 2 : l % 2", |l| if l < 16 { l / 2 } else { l % 2 });
        self.all(op, bytes, "l % 16 < 8 ? 0 : l", |l| if l % 16 < 8 { 0 } else { l });
        self.all(op, bytes, "l % 16 < 8 ? l / 2 : l", |l| if l % 16 < 8 { l / 2 } else { l });
        // Pairs that read the same, in one group of banks: the passes of a half are more than its parts'.
        self.all(op, bytes, "128 bytes * (l / 2)", move |l| row * (l / 2));
        self.all(op, bytes, "128 bytes * (l % 8 / 2) + l / 8", move |l| row * (l % 8 / 2) + l / 8);
        self.all(op, bytes, "128 bytes * (l / 8) + l % 8 / 2", move |l| row * (l / 8) + l % 8 / 2);
        self.all(op, bytes, "128 bytes * (l / 4) + l % 4", move |l| row * (l / 4) + l % 4);
        self.all(op, bytes, "128 bytes * (l % 8) + l / 8", move |l| row * (l % 8) + l / 8);
        self.all(op, bytes, "(128 bytes + 1) * (l % 8) + 1024 bytes * (l / 8)", move |l| {
            (row + 1) * (l % 8) + 8 * row * (l / 8)
        });
        // Lanes that take no part.
        self.add(op, bytes, "l where l = 5", |l| (l == 5).then_some(l));
        self.add(op, bytes, "l where l < 8", |l| (l < 8).then_some(l));
        self.add(op, bytes, "l where l % 16 < 8", |l| (l % 16 < 8).then_some(l));
        self.add(op, bytes, "l / 2 where l % 4 < 2", |l| (l % 4 < 2).then_some(l / 2));
        self.add(op, bytes, "l where l % 4 = 0", |l| (l % 4 == 0).then_some(l));
        self.add(op, bytes, "l / 4 where l % 4 < 2", |l| (l % 4 < 2).then_some(l / 4));
        self.add(op, bytes, "128 bytes * l where l is even", move |l| (l % 2 == 0).then_some(row * l));
        self.add(op, bytes, "l where l / 4 is even", |l| (l / 4 % 2 == 0).then_some(l));
    }
}

/// All of them, in the order of their numbers.
pub(crate) fn experiments() -> Vec<Experiment> {
    let mut list = List(Vec::new());
    for op in [Op::Load, Op::Store] {
        for bytes in [4, 8, 16] {
            list.common(op, bytes);
            if bytes > 4 {
                list.wide(op, bytes);
            }
        }
        narrow(&mut list, op);
    }
    fragments(&mut list);
    for bytes in [4, 8, 16] {
        list.common(Op::Copy, bytes);
        list.random(Op::Copy, bytes, 7, 32, 2048);
    }
    list.0
}

/// Bytes and half words; columns of tiles, swizzled and not.
fn narrow(list: &mut List, op: Op) {
    for bytes in [1, 2] {
        list.all(op, bytes, "l", |l| l);
        list.all(op, bytes, "128 bytes * l", |l| 128 / bytes * l);
        list.all(op, bytes, "2 * l", |l| 2 * l);
        list.random(op, bytes, 8, 32, 4096);
    }
    list.all(op, 4, "33 * l", |l| 33 * l);
    list.all(op, 4, "3 * l", |l| 3 * l);
    list.all(op, 4, "32 * (l / 8)", |l| 32 * (l / 8));
    list.all(op, 4, "32 * (l / 8) + l % 4", |l| 32 * (l / 8) + l % 4);
    list.add(op, 4, "32 * l where l is odd", |l| (l % 2 == 1).then_some(32 * l));
    list.all(op, 4, "Sw<5,0,5>(32 * l)", |l| (32 * l) ^ l);
    list.all(op, 4, "Sw<4,0,5>(32 * (l % 16) + l / 16)", |l| (32 * (l % 16) + l / 16) ^ (l % 16));
    list.all(op, 4, "Sw<4,1,4>(32 * (l % 16) + l / 16)", |l| (32 * (l % 16) + l / 16) ^ (l % 16 * 2));
    list.random(op, 4, 9, 16, 4096);
    list.random(op, 4, 10, 32, 4096);
}

/// What the threads of a warp of a matrix product read, 8 x 4 and 4 x 8 of them.
fn fragments(list: &mut List) {
    for bytes in [4, 8, 16] {
        let words = bytes / 4;
        list.all(Op::Load, bytes, "l / 8 + 32 bytes", move |l| l / 8 + 8 / words);
        list.all(Op::Load, bytes, "l % 8 + 64 bytes", move |l| l % 8 + 16 / words);
        list.all(Op::Load, bytes, "l % 4", |l| l % 4);
        list.all(Op::Load, bytes, "l / 2 % 8", |l| l / 2 % 8);
        list.all(Op::Load, bytes, "l / 16", |l| l / 16);
        list.all(Op::Load, bytes, "l / 16 * 2 + l % 2", |l| l / 16 * 2 + l % 2);
        list.all(Op::Load, bytes, "l / 16 * 8 + l % 8", |l| l / 16 * 8 + l % 8);
        list.all(Op::Load, bytes, "l / 16 * 4 + l % 8 / 2", |l| l / 16 * 4 + l % 8 / 2);
        list.all(Op::Load, bytes, "2 * (l / 8)", |l| 2 * (l / 8));
        list.all(Op::Load, bytes, "128 bytes * (l / 8)", move |l| 32 / words * (l / 8));
    }
}

//! CUB's primitives of blocks and warps: every algorithm, several types, blocks of whole warps and others.

use super::{Arg, Draws, Program, compiled};

/// A type of elements: as C++ names it, its bytes, and whether it is signed or a float.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ty {
    U8,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

impl Ty {
    fn cuda(self) -> &'static str {
        match self {
            Ty::U8 => "unsigned char",
            Ty::I16 => "short",
            Ty::U32 => "unsigned int",
            Ty::I32 => "int",
            Ty::U64 => "unsigned long long",
            Ty::I64 => "long long",
            Ty::F32 => "float",
            Ty::F64 => "double",
        }
    }

    fn size(self) -> usize {
        match self {
            Ty::U8 => 1,
            Ty::I16 => 2,
            Ty::U32 | Ty::I32 | Ty::F32 => 4,
            Ty::U64 | Ty::I64 | Ty::F64 => 8,
        }
    }

    fn write(self, v: i64) -> Vec<u8> {
        match self {
            Ty::F32 => (v as f32).to_le_bytes().to_vec(),
            Ty::F64 => (v as f64).to_le_bytes().to_vec(),
            _ => v.to_le_bytes()[..self.size()].to_vec(),
        }
    }

    /// An integer, of unsigned types none below zero, whose sums over a tile are exact.
    fn draw(self, draws: &mut Draws) -> i64 {
        let number = draws.next();
        match self {
            Ty::U8 => (number % 60) as i64,
            Ty::I16 => (number % 101) as i64 - 50,
            Ty::U32 | Ty::U64 => (number % 4001) as i64,
            Ty::I32 | Ty::I64 | Ty::F32 | Ty::F64 => (number % 4001) as i64 - 2000,
        }
    }
}

/// What every block of a kernel makes of its tile: parts of its output, one behind the other for all blocks, `None` where it writes
/// nothing.
type Parts = Vec<Vec<Option<i64>>>;

type Expected = Box<dyn Fn(&[i64]) -> Parts>;

struct Case {
    ty: Ty,
    threads: usize,
    items: usize,
    call: String,
    expected: Expected,
}

const BLOCKS: usize = 3;

fn some(values: impl IntoIterator<Item = i64>) -> Vec<Option<i64>> {
    values.into_iter().map(Some).collect()
}

/// The running result of an operation, with the element or before it.
fn scanned(tile: &[i64], first: i64, inclusive: bool, of: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    let mut total = first;
    let step = |v: &i64| {
        let before = total;
        total = of(total, *v);
        if inclusive { total } else { before }
    };
    tile.iter().map(step).collect()
}

fn sorted(tile: &[i64], descending: bool) -> Parts {
    let mut places: Vec<i64> = (0..tile.len() as i64).collect();
    places.sort_by_key(|p| if descending { -tile[*p as usize] } else { tile[*p as usize] });
    vec![some(places.iter().map(|p| tile[*p as usize])), some(places.iter().copied())]
}

fn block_cases(all: &mut Vec<Case>) {
    let mut add = |ty: Ty, threads: usize, items: usize, what: &str, rest: &str, expected: Expected| {
        all.push(Case {
            ty,
            threads,
            items,
            call: format!("{what}<{}, {threads}, {items}{rest}>", ty.cuda()),
            expected,
        });
    };
    for (n, ty) in [Ty::I32, Ty::F32, Ty::U64, Ty::F64, Ty::I16, Ty::I64].into_iter().enumerate() {
        for algorithm in ["RAKING_COMMUTATIVE_ONLY", "RAKING", "WARP_REDUCTIONS"] {
            let (threads, items) = [(128, 4), (96, 1), (72, 3)][n % 3];
            let expected = move |tile: &[i64]| {
                let some_of = tile.iter().step_by(items).take(threads - 5).sum();
                vec![some([tile.iter().sum()]), some(tile.iter().max().copied()), some([some_of])]
            };
            add(ty, threads, items, "reduce", &format!(", cub::BLOCK_REDUCE_{algorithm}"), Box::new(expected));
        }
        for algorithm in ["RAKING", "RAKING_MEMOIZE", "WARP_SCANS"] {
            let (threads, items) = [(128, 3), (64, 1), (96, 2)][n % 3];
            let expected = |tile: &[i64]| {
                let most = scanned(tile, 7, false, i64::max);
                vec![some(scanned(tile, 1, true, |a, b| a + b)), some(most)]
            };
            add(ty, threads, items, "scan", &format!(", cub::BLOCK_SCAN_{algorithm}"), Box::new(expected));
        }
    }
    for ty in [Ty::U8, Ty::I16, Ty::U32, Ty::I32, Ty::U64, Ty::I64, Ty::F32, Ty::F64] {
        let (threads, items) = if ty == Ty::U8 { (64, 3) } else { (128, 5) };
        for descending in [false, true] {
            add(ty, threads, items, "radix_sort", &format!(", {descending}"), Box::new(move |t| sorted(t, descending)));
        }
    }
    for (ty, threads) in [(Ty::I32, 128), (Ty::F64, 64), (Ty::I16, 256)] {
        add(ty, threads, 3, "merge_sort", "", Box::new(|t| sorted(t, false)));
    }
    for (ty, threads, items) in [(Ty::I32, 128, 4), (Ty::F64, 96, 3), (Ty::U8, 64, 8), (Ty::I64, 64, 5)] {
        for slices in [false, true] {
            let expected = move |tile: &[i64]| {
                let n = tile.len();
                let striped = (0..n).map(|at| tile[at / items + at % items * threads]);
                let blocked = (0..n).map(|at| tile[at % threads * items + at / threads]);
                vec![some(striped), some(blocked), some(tile.iter().rev().copied()), some(tile.iter().copied())]
            };
            add(ty, threads, items, "exchange", &format!(", {slices}"), Box::new(expected));
        }
    }
    for algorithm in ["SORT", "ATOMIC"] {
        let expected =
            |tile: &[i64]| vec![some((0..64).map(|bin| tile.iter().filter(|v| **v % 64 == bin).count() as i64))];
        add(Ty::U32, 128, 4, "histogram", &format!(", cub::BLOCK_HISTO_{algorithm}"), Box::new(expected));
    }
    for (ty, items) in [(Ty::F32, 4), (Ty::F64, 3), (Ty::U8, 4), (Ty::I16, 2)] {
        for algorithm in ["DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE", "WARP_TRANSPOSE", "WARP_TRANSPOSE_TIMESLICED"]
        {
            let expected = move |tile: &[i64]| {
                let valid = tile.len() - 5;
                let part = (0..tile.len()).map(|at| match at {
                    at if at < valid => Some(tile[at]),
                    at if at < valid + 2 => Some(9),
                    _ => None,
                });
                vec![some(tile.iter().copied()), part.collect()]
            };
            let rest = format!(", cub::BLOCK_LOAD_{algorithm}, cub::BLOCK_STORE_{algorithm}");
            add(ty, 64, items, "load_store", &rest, Box::new(expected));
        }
    }
    for (ty, threads, items) in [(Ty::I32, 128, 4), (Ty::F32, 72, 1), (Ty::I64, 32, 2)] {
        let expected = move |tile: &[i64]| {
            let before = |at: usize| (at > 0).then(|| tile[at - 1]);
            let heads = (0..tile.len()).map(|at| i64::from(before(at) != Some(tile[at])));
            let differences = (0..tile.len()).map(|at| tile[at] - before(at).unwrap_or(0));
            let rotated = (0..tile.len()).map(|at| tile[(at / items + 3) % threads * items + at % items]);
            vec![some(heads), some(differences), some(rotated)]
        };
        add(ty, threads, items, "neighbours", "", Box::new(expected));
    }
}

fn warp_cases(all: &mut Vec<Case>) {
    let each = |tile: &[i64], width: usize, of: &dyn Fn(&[i64]) -> Vec<i64>| -> Vec<Option<i64>> {
        some(tile.chunks(width).flat_map(of))
    };
    for (ty, width) in
        [(Ty::I32, 32), (Ty::F32, 16), (Ty::F64, 8), (Ty::U64, 32), (Ty::I16, 4), (Ty::I32, 12), (Ty::F64, 24)]
    {
        // Of other widths than powers of two CUB has one logical warp alone: its mask names the first lanes (`WarpMask`).
        let threads = if 32 % width == 0 { 96 } else { width };
        let reduced = move |tile: &[i64]| {
            let sum = |at: usize| at.is_multiple_of(width).then(|| tile[at..at + width].iter().sum());
            // A segment ends before the next head, and where its warp ends.
            let end = |at: usize| {
                (at + 1..at / width * width + width).find(|t| t.is_multiple_of(3)).unwrap_or(at / width * width + width)
            };
            let part =
                |at: usize| (at.is_multiple_of(width) || at.is_multiple_of(3)).then(|| tile[at..end(at)].iter().sum());
            vec![(0..threads).map(sum).collect(), (0..threads).map(part).collect()]
        };
        let call = format!("warp_reduce<{}, {threads}, {width}>", ty.cuda());
        all.push(Case { ty, threads, items: 1, call, expected: Box::new(reduced) });
        let scans = move |tile: &[i64]| {
            vec![
                each(tile, width, &|w| scanned(w, 0, true, |a, b| a + b)),
                each(tile, width, &|w| scanned(w, 7, false, i64::max)),
                each(tile, width, &|w| vec![w[width - 1]; width]),
            ]
        };
        let call = format!("warp_scan<{}, {threads}, {width}>", ty.cuda());
        all.push(Case { ty, threads, items: 1, call, expected: Box::new(scans) });
    }
    for (ty, items, width) in [(Ty::I32, 4, 32), (Ty::F64, 2, 16), (Ty::I16, 4, 8)] {
        let expected = move |tile: &[i64]| {
            let sorted = |w: &[i64]| {
                let mut w = w.to_vec();
                w.sort_unstable();
                w
            };
            let striped = |w: &[i64]| {
                let w = sorted(w);
                (0..w.len()).map(|at| w[at / items + at % items * width]).collect()
            };
            vec![each(tile, width * items, &sorted), each(tile, width * items, &striped)]
        };
        let call = format!("warp_sort<{}, 96, {items}, {width}>", ty.cuda());
        all.push(Case { ty, threads: 96, items, call, expected: Box::new(expected) });
    }
}

impl Case {
    fn program<'a>(&self, module: &'a cutemplate::exec::ptx::Module, name: &'a str) -> (Program<'a>, Vec<u8>) {
        let mut draws = Draws(self.call.len() as u64);
        let tile = self.threads * self.items;
        let is_histogram = self.call.starts_with("histogram");
        let draw = |_| self.ty.draw(&mut draws) % if is_histogram { 64 } else { i64::MAX };
        let input: Vec<i64> = (0..tile * BLOCKS).map(draw).collect();
        let tiles: Vec<Parts> = input.chunks(tile).map(|tile| (self.expected)(tile)).collect();
        // What nobody writes keeps its bytes.
        let parts = (0..tiles[0].len()).flat_map(|part| tiles.iter().flat_map(move |tile| tile[part].iter()));
        let untouched = vec![0xa5; self.ty.size()];
        let expected: Vec<u8> = parts.flat_map(|v| v.map_or_else(|| untouched.clone(), |v| self.ty.write(v))).collect();
        let input = Arg::In(input.iter().flat_map(|v| self.ty.write(*v)).collect());
        let args = vec![input, Arg::Out(vec![0xa5; expected.len()])];
        (Program::new(module, name, BLOCKS as u32, self.threads as u32, args), expected)
    }
}

#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn primitives_are_right_and_silent() {
    let mut cases = Vec::new();
    block_cases(&mut cases);
    warp_cases(&mut cases);
    let mut text = include_str!("cub.cu").to_owned();
    for (number, case) in cases.iter().enumerate() {
        let ty = case.ty.cuda();
        text += &format!(
            "extern \"C\" __global__ void __launch_bounds__({}) k{number}({ty} const* in, {ty}* out) {{ {}(in, out); }}\n",
            case.threads, case.call
        );
    }
    let module = compiled("cub", &text, "sm_90a");
    for (number, case) in cases.iter().enumerate() {
        let name = format!("k{number}");
        let (program, expected) = case.program(&module, &name);
        println!("{name}: {}", case.call);
        program.is_right(|outs| match outs[1].iter().zip(&expected).position(|(f, e)| f != e) {
            None => Ok(()),
            Some(at) => Err(format!("{}: byte {at} is {}, and has to be {}", case.call, outs[1][at], expected[at])),
        });
    }
    println!("{} primitives", cases.len());
}

//! The opcode forms of `wmma` and of `ldmatrix` with generic addresses, through shared and global memory.

use crate::forms::{Compare, Form, Inputs, LANES};

/// Shapes of halves and bytes.
const SHAPES: [[u32; 3]; 3] = [[16, 16, 16], [8, 32, 16], [32, 8, 16]];
const LAYOUTS: [&str; 2] = ["row", "col"];

fn list(prefix: &str, first: usize, n: usize) -> String {
    let all: Vec<String> = (first..first + n).map(|i| format!("%{prefix}{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Puts the planes into shared memory, 1280 bytes a warp, or 2560 where they have 64 bits. `%t0` is where the warp's begin, `%a5` the
/// same as a generic address, `%t3` where the lane's are.
fn staged(wide: bool) -> String {
    let (bits, register, shift) = if wide { (64, "d", 3) } else { (32, "w", 2) };
    let mut body = format!(
        "    .shared .align 128 .b8 sm[16384];\n    mov.b32 %t0, sm;\n    shr.u32 %t3, %t1, 5;\n    shl.b32 %t3, %t3, 12;\n    \
         add.u32 %t0, %t0, %t3;\n    cvt.u64.u32 %a5, %t0;\n    cvta.shared.u64 %a5, %a5;\n    and.b32 %t3, %t1, 31;\n    \
         shl.b32 %t3, %t3, {shift};\n    add.u32 %t3, %t3, %t0;\n"
    );
    for plane in 0..10 {
        body += &format!("    st.shared.b{bits} [%t3+{}], %{register}{};\n", plane * bits * 4, plane + 1);
    }
    body + "    bar.warp.sync -1;\n"
}

/// Where the warp's values begin in global memory: `%a6`.
const GLOBAL: &str = "    and.b32 %t3, %t1, 31;\n    mul.wide.u32 %a6, %t3, 8;\n    sub.u64 %a6, %a2, %a6;\n";

fn bits(ty: &str) -> u32 {
    match ty {
        "f64" => 64,
        "f32" | "s32" | "tf32" => 32,
        "f16" | "bf16" => 16,
        "b1" => 1,
        "u4" | "s4" => 4,
        _ => 8,
    }
}

/// Rows and columns of a matrix.
fn extents(matrix: &str, [m, n, k]: [u32; 3]) -> [u32; 2] {
    match matrix {
        "a" => [m, k],
        "b" => [k, n],
        _ => [m, n],
    }
}

/// Registers of a fragment.
fn registers(matrix: &str, shape: [u32; 3], ty: &str) -> usize {
    let [rows, columns] = extents(matrix, shape);
    match (matrix, ty) {
        ("a" | "b", "f16") => 8,
        (_, "f64") => (rows * columns / 32) as usize,
        _ => (rows * columns * bits(ty) / 1024) as usize,
    }
}

fn named([m, n, k]: [u32; 3]) -> String {
    format!("m{m}n{n}k{k}")
}

/// A stride, so that 768 bytes hold the matrix: its rows may lie in each other.
fn stride(matrix: &str, shape: [u32; 3], layout: &str, ty: &str) -> u32 {
    let [rows, columns] = extents(matrix, shape);
    let (lines, length) = if layout == "row" { (rows, columns) } else { (columns, rows) };
    match bits(ty) {
        64 => length,
        32 if matrix == "c" || ty == "tf32" => 4,
        16 if lines == 32 => 8,
        16 => 16,
        bits => length.max(128 / bits),
    }
}

fn load(matrix: &str, shape: [u32; 3], layout: &str, ty: &str, first: usize, at: &str, space: &str) -> String {
    let r = if ty == "f64" { "d" } else { "w" };
    let registers = list(r, first, registers(matrix, shape, ty));
    let stride = stride(matrix, shape, layout, ty);
    let shape = named(shape);
    format!("    wmma.load.{matrix}.sync.aligned.{layout}.{shape}{space}.{ty} {registers}, [{at}], {stride};\n")
}

fn out(wide: bool, first: usize, n: usize) -> String {
    let line = |i| match wide {
        true => format!("    mov.b64 %o{i}, %d{};\n", first + i),
        false => format!("    cvt.u64.u32 %o{i}, %w{};\n", first + i),
    };
    (0..n).map(line).collect()
}

fn fragment(all: &mut Vec<Form>, matrix: &str, shape: [u32; 3], layout: &str, ty: &str) {
    let n = registers(matrix, shape, ty);
    let wide = ty == "f64";
    let (before, at, space) = match (all.len() % 3, wide) {
        (_, true) => (GLOBAL.to_owned(), "%a6".to_owned(), ".global"),
        (0, _) => (staged(false), "%t0+256".to_owned(), ".shared"),
        (1, _) => (staged(false), "%a5+128".to_owned(), ""),
        _ => (staged(false), "%a5".to_owned(), ""),
    };
    let body = before + &load(matrix, shape, layout, ty, 12, &at, space) + &out(wide, 12, n);
    let name = format!("wmma.load.{matrix}.{layout}.{}{space}.{ty} {at}", named(shape));
    all.push(Form { name, inputs: Inputs::MmaBits, results: n, compare: Compare::Exact, body });
}

/// The elements of a matrix in each lane.
pub(crate) fn fragments(all: &mut Vec<Form>) {
    for layout in LAYOUTS {
        for shape in SHAPES {
            for matrix in ["a", "b"] {
                for ty in ["f16", "bf16", "u8"] {
                    fragment(all, matrix, shape, layout, ty);
                }
            }
            for ty in ["f16", "f32"] {
                fragment(all, "c", shape, layout, ty);
            }
        }
        for matrix in ["a", "b"] {
            fragment(all, matrix, [16, 16, 8], layout, "tf32");
            fragment(all, matrix, [8, 8, 4], layout, "f64");
        }
        fragment(all, "c", [16, 16, 8], layout, "f32");
        fragment(all, "c", [8, 8, 4], layout, "f64");
        fragment(all, "c", [8, 8, 32], layout, "s32");
    }
    for (matrix, layout) in [("a", "row"), ("b", "col")] {
        fragment(all, matrix, [8, 8, 32], layout, "s4");
        fragment(all, matrix, [8, 8, 128], layout, "b1");
    }
}

/// A product: its types are D, A, B, C.
struct Product<'a> {
    op: &'a str,
    shape: [u32; 3],
    layouts: [&'a str; 2],
    types: [&'a str; 4],
    tail: &'a str,
    inputs: Inputs,
}

/// Loads, the product, a store, and the stored values.
fn product(all: &mut Vec<Form>, p: &Product<'_>) {
    let Product { op, shape, layouts: [la, lb], types: [d, a, b, c], tail, inputs } = *p;
    let wide = d == "f64";
    let word = named(shape);
    let (lc, ld) = (LAYOUTS[all.len() % 2], LAYOUTS[all.len() / 2 % 2]);
    let n = ["c", "a", "b", "c"].into_iter().zip([d, a, b, c]).map(|(m, t)| registers(m, shape, t));
    let n: Vec<usize> = n.collect();
    // A from the beginning, B behind its first line, C of f32 from planes of it: with a stride of 4 it has 528 bytes at most.
    let at_c = match c {
        "f32" => "%t0+640",
        "f64" => "%t0+512",
        _ => "%t0+256",
    };
    let mut body = staged(wide);
    body += &load("a", shape, la, a, 0, "%t0", ".shared");
    body += &load("b", shape, lb, b, 8, "%t0+128", ".shared");
    // There are 30 registers of a kind, so a large D reuses C's registers. It does not reuse A's: ptxas computes the second half wrong.
    let (first_c, first_d) = match (n[3], n[0]) {
        (8, 8) => (16, 16),
        (_, 8) => (24, 16),
        _ => (16, 24),
    };
    body += &load("c", shape, lc, c, first_c, at_c, ".shared");
    let types = match a {
        "f16" => format!("{d}.{c}"),
        _ => format!("{d}.{a}.{b}.{c}"),
    };
    let r = if wide { "d" } else { "w" };
    let [of_d, of_a, of_b, of_c] = [(first_d, 0), (0, 1), (8, 2), (first_c, 3)].map(|(at, i)| list(r, at, n[i]));
    // f64 has `.rn` before its types, integers `.satfinite` behind.
    let (before, behind) = if wide { (tail, "") } else { ("", tail) };
    let name = format!("{op}.sync.aligned.{la}.{lb}.{word}{before}.{types}{behind}");
    body += &format!("    {name} {of_d}, {of_a}, {of_b}, {of_c};\n");
    let [rows, columns] = extents("c", shape);
    let natural = if ld == "row" { columns } else { rows };
    body += &format!("    wmma.store.d.sync.aligned.{ld}.{word}.shared.{d} [%t0+3072], {of_d}, {natural};\n");
    body += "    bar.warp.sync -1;\n";
    let (size, register) = if wide { (64, "d") } else { (32, "w") };
    for i in 0..n[0] {
        body += &format!("    ld.shared.b{size} %{register}{}, [%t3+{}];\n", 12 + i, 3072 + i as u32 * size * 4);
    }
    body += &out(wide, 12, n[0]);
    all.push(Form { name: format!("{name} {lc} {ld}"), inputs, results: n[0], compare: Compare::Exact, body });
}

pub(crate) fn whole_products(all: &mut Vec<Form>) {
    use Inputs::{MmaBf16, MmaBits, MmaF16, MmaF64, MmaTf32};
    let op = "wmma.mma";
    for shape in SHAPES {
        for layouts in [["row", "col"], ["col", "row"]] {
            for (d, c) in [("f32", "f32"), ("f16", "f16"), ("f32", "f16"), ("f16", "f32")] {
                product(all, &Product { op, shape, layouts, types: [d, "f16", "f16", c], tail: "", inputs: MmaF16 });
            }
            let types = ["f32", "bf16", "bf16", "f32"];
            product(all, &Product { op, shape, layouts, types, tail: "", inputs: MmaBf16 });
            for (ty, tail) in [("u8", ""), ("s8", ".satfinite")] {
                product(all, &Product { op, shape, layouts, types: ["s32", ty, ty, "s32"], tail, inputs: MmaBits });
            }
        }
    }
    for layouts in [["row", "col"], ["col", "row"]] {
        let types = ["f32", "tf32", "tf32", "f32"];
        product(all, &Product { op, shape: [16, 16, 8], layouts, types, tail: "", inputs: MmaTf32 });
    }
    for tail in ["", ".rn", ".rz", ".rm", ".rp"] {
        let types = ["f64"; 4];
        product(all, &Product { op, shape: [8, 8, 4], layouts: ["col", "row"], types, tail, inputs: MmaF64 });
    }
    let layouts = ["row", "col"];
    for (ty, tail) in [("u4", ""), ("s4", ".satfinite")] {
        let types = ["s32", ty, ty, "s32"];
        product(all, &Product { op, shape: [8, 8, 32], layouts, types, tail, inputs: MmaBits });
    }
    for op in ["wmma.mma.xor.popc", "wmma.mma.and.popc"] {
        let types = ["s32", "b1", "b1", "s32"];
        product(all, &Product { op, shape: [8, 8, 128], layouts, types, tail: "", inputs: MmaBits });
    }
}

/// `ldmatrix` and `stmatrix` with generic addresses, and votes as CUB writes them.
pub(crate) fn others(all: &mut Vec<Form>) {
    for transposed in ["", ".trans"] {
        let body = staged(false)
            + "    and.b32 %t3, %t1, 31;\n    mul.wide.u32 %a6, %t3, 16;\n    add.u64 %a6, %a6, %a5;\n"
            + &format!("    ldmatrix.sync.aligned.m8n8.x4{transposed}.b16 {}, [%a6+64];\n", list("w", 12, 4))
            + &format!("    stmatrix.sync.aligned.m8n8.x4{transposed}.b16 [%a6+2048], {};\n", list("w", 1, 4))
            + "    bar.warp.sync -1;\n    shl.b32 %t3, %t3, 2;\n    add.u32 %t3, %t3, %t0;\n    ld.shared.b32 %w16, [%t3+2048];\n    \
               ld.shared.b32 %w17, [%t3+2304];\n"
            + &out(false, 12, 6);
        let name = format!("ldmatrix, stmatrix{transposed} generic");
        all.push(Form { name, inputs: Inputs::MmaBits, results: 6, compare: Compare::Exact, body });
    }
    for (mode, to) in [("ballot", "b32"), ("all", "pred"), ("any", "pred"), ("uni", "pred")] {
        let mut body = String::from("    setp.lt.s32 %p1, %w1, 0x40000000;\n");
        for (i, from) in ["!%p1", "%p1", "1", "0"].into_iter().enumerate() {
            let d = if to == "pred" { "%p0" } else { "%w0" };
            body += &format!("    vote.{mode}.sync.{to} {d}, {from}, -1;\n");
            body += &match to {
                "pred" => format!("    selp.b64 %o{i}, 1, 0, %p0;\n"),
                _ => format!("    cvt.u64.u32 %o{i}, %w0;\n"),
            };
        }
        let name = format!("vote.{mode}.sync");
        all.push(Form { name, inputs: Inputs::Integers, results: 4, compare: Compare::Exact, body });
    }
    debug_assert!(LANES.is_multiple_of(128), "blocks of four warps");
}

//! Declares the kernels of `kernels/` and compiles them.

use std::error::Error;
use std::fs;

use cutemplate::arch::Arch;
use cutemplate::build::Config;
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::DType;
use cutemplate::layout::Layout;
use cutemplate::plan::ParamType;
use cutemplate::view::Access;

/// Pairs of a row.
const HALF: i32 = 32;

fn stencil() -> Entry {
    Entry::new("stencil")
        .doc("y(k,j,i) = centre * x(k,j,i) + side * (the sum of its six neighbours); points outside count as 0.")
        .operand("x", DType::F32, Access::Read, "(nz,ny,nx):(?,?,1)")
        .operand("y", DType::F32, Access::Write, "(nz,ny,nx):(stride(x,0),stride(x,1),1)")
        .extent("nz", "x.0")
        .extent("ny", "x.1")
        .extent("nx", "x.2")
        .value("plane", ParamType::I64, "stride(x, 0)")
        .value("row", ParamType::I32, "stride(x, 1)")
        .scalar("centre", ParamType::F32)
        .scalar("side", ParamType::F32)
        .grid3(["ceil_div(nx, 32)", "ceil_div(ny, 4)", "nz"])
        .block3([32, 4, 1])
        .max_registers(64)
}

fn rope() -> Entry {
    let rope = Entry::new("rope")
        .doc("Turns the pairs (x(m,j), x(m,j+32)) of each row m by the angle of (m,j), in place.")
        .operand("x", DType::F16, Access::ReadWrite, "(rows,64):(?,1)")
        .operand("cosines", DType::F32, Access::Read, "(rows,32):(32,1)")
        .operand("sines", DType::F32, Access::Read, "(rows,32):(32,1)")
        .extent("rows", "x.0")
        .value("ldx", ParamType::I32, "stride(x, 0)")
        .grid("ceil_div(rows, 4)")
        .block(128)
        .deny_spills();
    // SAFETY: a thread touches x(m,j), x(m,j+32) and the angles of (m,j), for one m below `rows` and one j below 32. No other thread has
    // the same m and j.
    unsafe { rope.vouched() }
}

fn main() -> Result<(), Box<dyn Error>> {
    let threads: Layout = "(4,32):(32,1)".parse()?;
    let rope = Cuda::file("kernels/rope.cu").constant("Threads", &threads).constant("Half", &HALF).entry(rope());
    // With defects that the tests find: a comparison that is off by one, and a barrier that is missing.
    let text = fs::read_to_string("kernels/stencil.cu")?;
    let planted = |from: &str, to: &str| Cuda::text(text.replacen(from, to, 1)).entry(stencil());
    Config::new()
        .arch(Arch::Sm80)
        .cuda("rope", rope)
        .cuda("stencil", Cuda::file("kernels/stencil.cu").entry(stencil()))
        .cuda("off_by_one", planted("i < nx;", "i <= nx;"))
        .cuda("no_barrier", planted("__syncthreads();", ""))
        .compile();
    Ok(())
}

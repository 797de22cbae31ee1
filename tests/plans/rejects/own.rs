//! Declarations of CUDA C++ of one's own that no kernel could be, and views that a declared kernel refuses.

use cutemplate::arch::Targets;
use cutemplate::cuda::{Cuda, Entry, Struct};
use cutemplate::diagnostic::Diagnostic;
use cutemplate::dtype::DType;
use cutemplate::plan::ParamType;
use cutemplate::units::Elements;
use cutemplate::view::{Access, ViewLayout, ViewRef};

/// What a right declaration begins with.
fn entry() -> Entry {
    Entry::new("rope").operand("x", DType::F16, Access::ReadWrite, "(rows,64):(?,1)").extent("rows", "x.0").block(128)
}

fn refused(cuda: Cuda) -> Vec<Diagnostic> {
    cuda.plans("rope", "", &Targets::default()).expect_err("refused").diagnostics().to_vec()
}

fn declared(entry: Entry) -> Vec<Diagnostic> {
    refused(Cuda::text("").entry(entry))
}

/// Rows of x and y that lie apart, bound after a change.
fn unbound(entry: Entry, scalars: &[f64], change: impl FnOnce(&mut Vec<ViewRef>)) -> Vec<Diagnostic> {
    let plans = Cuda::text("").entry(entry).plans("rope", "", &Targets::default()).expect("a right declaration");
    let view = |(at, operand): (u64, &cutemplate::plan::Operand)| {
        let access = if operand.access.writes() { Access::Write } else { Access::Read };
        let layout = ViewLayout::matrix([10, 64], 64);
        ViewRef { dtype: operand.dtype, ptr: at << 32, available: Elements(1 << 20), layout, access }
    };
    let mut views: Vec<ViewRef> = (1..).zip(plans[0].operands()).map(view).collect();
    change(&mut views);
    plans[0].bind_with(&views, scalars).expect_err("refused").diagnostics().to_vec()
}

pub(crate) fn all() -> Vec<(&'static str, Vec<Diagnostic>)> {
    let with = |layout: &str| Entry::new("f").operand("x", DType::F32, Access::Read, layout);
    let copy = || entry().operand("y", DType::F32, Access::Read, "(rows,64):(64,1)");
    let small = |rows, ld| ViewLayout::matrix([rows, 64], ld);
    vec![
        ("no entry", refused(Cuda::text(""))),
        ("no operand", declared(Entry::new("f").scalar("n", ParamType::I32))),
        ("a layout of two shapes", declared(with("(a,b):(1):(2)"))),
        ("more strides than extents", declared(with("(a):(?,1)"))),
        ("an extent that is no expression", declared(with("(a,2 *):(?,1)"))),
        ("a negative stride", declared(with("(-1,1)"))),
        ("a name that nothing has", declared(entry().grid("ceil_div(cols, 4)"))),
        ("a mode that the operand has not", declared(entry().extent("n", "x.2"))),
        ("a float in a grid", declared(entry().scalar("theta", ParamType::F32).grid("theta"))),
        ("two parameters of one name", declared(entry().scalar("x", ParamType::F32))),
        ("a name of no letters", declared(entry().scalar("a b", ParamType::F32))),
        ("a value that is a float", declared(entry().value("half", ParamType::F32, "rows / 2"))),
        ("a scalar that is a pointer", declared(entry().scalar("p", ParamType::MutPtr))),
        ("2048 threads", declared(entry().block3([32, 64, 1]))),
        ("128 threads along z", declared(entry().block3([1, 1, 128]))),
        ("a cluster of 16", declared(entry().cluster(16))),
        ("more shared memory than there is", declared(entry().shared("1000000"))),
        ("an alignment of 24", declared(entry().aligned(24))),
        ("an alignment of less than an element", declared(with("1").aligned(2))),
        ("a field without a value", declared(entry().structure("p", Struct::new().extent("n", "rows +")))),
        ("a kernel with a keyword's name", declared(entry().named("while"))),
        ("two kernels of one name", refused(Cuda::text("").entry(entry().named("a")).entry(entry().named("a")))),
        (
            "columns that are not the declared ones",
            unbound(copy(), &[], |v| v[0].layout = ViewLayout::matrix([10, 32], 64)),
        ),
        ("rows that differ", unbound(copy(), &[], |v| v[1].layout = small(9, 64))),
        ("gaps where none are declared", unbound(copy(), &[], |v| v[1].layout = small(10, 65))),
        ("an address off the declared alignment", unbound(entry().aligned(16), &[], |v| v[0].ptr += 8)),
        (
            "a leading dimension that is no multiple",
            unbound(
                entry().require("stride(x, 0) % 8 == 0 && rows > 0", "rows are loaded as vectors of 8"),
                &[],
                |v| {
                    v[0].layout = small(10, 65);
                },
            ),
        ),
        (
            "more shared memory than was declared",
            unbound(entry().shared("rows * 8192"), &[], |v| v[0].layout = small(10, 64)),
        ),
        ("half a cluster", unbound(entry().cluster(4).grid("rows"), &[], |_| {})),
        ("a grid beyond the largest", unbound(entry().grid3(["1", "rows * 65536", "1"]), &[], |_| {})),
        ("a number of blocks of more than 64 bits", unbound(entry().grid("rows * 9223372036854775807"), &[], |_| {})),
        (
            "a named value of more than 64 bits",
            unbound(entry().define("gap", "rows * 9223372036854775807 * 2").grid("gap"), &[], |_| {}),
        ),
        ("a parameter of more than 32 bits", unbound(entry().extent("area", "rows * 1000000000"), &[], |_| {})),
        ("a read-only view of what is written", unbound(entry(), &[], |v| v[0].access = Access::Read)),
    ]
}

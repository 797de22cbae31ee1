//! Kernels of others, declared as kernels of one's own: built for three architectures, launched with types.

use std::fs;
use std::path::Path;

use cutemplate::arch::Arch;
use cutemplate::artifact::Kind;
use cutemplate::build::Config;
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::digest::Digest;
use cutemplate::dtype::Element;
use cutemplate::exec::{Kernel, Options};
use cutemplate::view::{Arguments, HostMemory, View, ViewLayout, ViewMut};

/// Texts of a folder that a variable names, each of which has this sha256.
pub(super) fn given(variable: &str, files: &[(&str, &str)]) -> Vec<String> {
    let folder = std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names no folder"));
    let text = |(file, sha256): &(&str, &str)| {
        let path = Path::new(&folder).join(file);
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(Digest::of(&bytes).to_string(), *sha256, "{} is another version", path.display());
        String::from_utf8(bytes).expect("UTF-8")
    };
    files.iter().map(text).collect()
}

pub(super) struct Own;

impl Kind for Own {
    const FAMILY: &'static str = cutemplate::cuda::FAMILY;
}

/// The kernels of a text, for three architectures.
pub(super) fn kernels(stem: &str, cuda: Cuda, entries: impl IntoIterator<Item = Entry>) -> Vec<(String, Kernel<Own>)> {
    let cuda = entries.into_iter().fold(cuda, Cuda::entry);
    let config = Config::new().arch(Arch::Sm80).arch(Arch::Sm86).arch(Arch::Sm90a).cuda(stem, cuda);
    let out = tempfile::tempdir().expect("a folder");
    let built = config.out_dir(out.path()).try_compile().unwrap_or_else(|refused| panic!("{refused}"));
    let ptx = |path: &Path| fs::read_to_string(path).expect("PTX");
    let kernel = |one: &cutemplate::build::Built| {
        let manifest = one.manifest.as_ref().expect("compiled");
        assert_eq!(manifest.targets, ["sm_80", "sm_86", "sm_90a"], "{}", one.name);
        assert_eq!(manifest.cutlass, "", "plain CUDA");
        let path = one.fatbin.as_ref().expect("a fatbin").with_extension("ptx");
        let kernel = Kernel::from_ptx(one.plan.clone(), ptx(&path), Options::default());
        (one.name.clone(), kernel.unwrap_or_else(|e| panic!("{}: {e}", one.name)))
    };
    built.iter().map(kernel).collect()
}

/// Runs a kernel in all modes, and compares every element.
pub(super) fn run<'a>(
    kernels: &[(String, Kernel<Own>)],
    name: &str,
    args: Arguments<'a, Own, HostMemory>,
    expected: impl Fn(&[usize]) -> (f64, f64),
) {
    run_each(kernels, name, args, |_, at| expected(at));
}

/// The same for several tensors, which have names.
pub(super) fn run_each<'a>(
    kernels: &[(String, Kernel<Own>)],
    name: &str,
    args: Arguments<'a, Own, HostMemory>,
    expected: impl Fn(&str, &[usize]) -> (f64, f64),
) {
    let at = |at: &[i64]| at.iter().map(|at| *at as usize).collect::<Vec<_>>();
    let checked = kernel_of(kernels, name).check_against(args, |tensor, coordinate| expected(tensor, &at(coordinate)));
    checked.unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
}

pub(super) fn args<'a>() -> Arguments<'a, Own, HostMemory> {
    Arguments::new()
}

pub(super) fn layout(shape: &[i64]) -> ViewLayout {
    ViewLayout::row_major(shape).expect("a layout")
}

pub(super) fn read<'a, T: Element>(of: &'a [T], shape: &[i64]) -> View<'a, T, HostMemory> {
    View::host_strided(of, layout(shape))
}

pub(super) fn write<'a, T: Element>(of: &'a mut [T], shape: &[i64]) -> ViewMut<'a, T, HostMemory> {
    ViewMut::host_strided(of, layout(shape))
}

/// Between -3 and 3, no two neighbours alike, all exact in f16.
pub(super) fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 + i / 7) % 97) as f32 / 16.0 - 3.0).collect()
}

/// The most that an f32 of about this size may differ after so many roundings, each by half a unit in the last place; `ulps` of functions
/// are those of the CUDA C++ Programming Guide, "Mathematical Functions".
pub(super) fn roundings(value: f64, ulps: f64) -> f64 {
    value.abs() * ulps * 2f64.powi(-23) + 2f64.powi(-149)
}

pub(super) fn kernel_of<'k>(kernels: &'k [(String, Kernel<Own>)], name: &str) -> &'k Kernel<Own> {
    &kernels.iter().find(|(known, _)| known.ends_with(name)).unwrap_or_else(|| panic!("{name}")).1
}

/// An element of a row's softmax. expf errs by 1.5 units, the differences being exact; a sum in any order, an inverse and a product round;
/// `factors` more exponentials, and as many products, are taken where the sum is scaled while the maximum rises.
pub(super) fn softmax(row: &[f32], column: usize, factors: usize) -> (f64, f64) {
    let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
    let most = row.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
    let value = (row[column] - most).exp() / sum;
    (value, roundings(value, 5.0 + row.len() as f64 / 2.0 + 2.5 * factors as f64))
}

/// What a norm makes of a row: its mean, the inverse of its standard deviation, and an element.
pub(super) struct Normed {
    pub(super) mean: (f64, f64),
    pub(super) inverse: (f64, f64),
    pub(super) value: (f64, f64),
}

/// The variance may be a difference of two means: each errs by half a unit for each element, of the mean square at most.
pub(super) fn normed(row: &[f32], column: usize) -> Normed {
    let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
    let count = row.len() as f64;
    let mean = row.iter().sum::<f64>() / count;
    let square = row.iter().map(|x| x * x).sum::<f64>() / count;
    let variance = square - mean * mean;
    let inverse = 1.0 / (variance + 1e-5).sqrt();
    let value = (row[column] - mean) * inverse;
    let largest = row.iter().copied().map(f64::abs).fold(0.0, f64::max);
    let of_mean = roundings(largest, count / 2.0 + 5.0);
    let of_variance = 0.5 * roundings(square, count + 10.0) / variance;
    Normed {
        mean: (mean, of_mean),
        inverse: (inverse, inverse * of_variance + roundings(inverse, 4.0)),
        value: (value, value.abs() * of_variance + of_mean * inverse + roundings(value, 6.0)),
    }
}

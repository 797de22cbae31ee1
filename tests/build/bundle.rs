//! Contract: a bundle stands for compiling, byte for byte; what is not the bundle that was made, or not of these recipes, is refused
//! in words before anything of it is used.
#![cfg(all(unix, feature = "build"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::PathBuf;

use crate::place::Place;
use cutemplate::build::{Config, Error};
use cutemplate::bundle::{self, Bundle, BundleError};
use cutemplate::digest::{Digest, Pinned};
use cutemplate::dtype::DType;
use cutemplate::recipe::{ElementwiseAdd, Gemm};
use cutlass_sys::{Env, Finder};
use expect_test::expect;
use serde_json::{Value, json};

fn add(dtype: DType) -> ElementwiseAdd {
    ElementwiseAdd { dtype, ..Default::default() }
}

fn config(place: &Place, finder: Finder, out: &str) -> Config {
    let config = Config::new().finder(finder).out_dir(place.root.join(out)).bundle(place.root.join("kernels.bundle"));
    config.recipe("one", &add(DType::F16)).recipe("both", &Gemm::default())
}

/// What a user sees, without the folder of this test, and what changes with the kernels' texts: sizes and digests.
fn shown(place: &Place, error: &impl ToString) -> String {
    let text = error.to_string().replace(&place.root.display().to_string(), "<crate>");
    let is_long = |word: &str| {
        word.len() >= 4 && word.bytes().all(|b| b.is_ascii_hexdigit()) && word.contains(|c: char| c.is_ascii_digit())
    };
    let word = |word: &str| if is_long(word) { "<..>".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n").replace("<..>,", "<..>")
}

/// A machine with nothing on it.
fn bare() -> Finder {
    Finder::new(Env::from_pairs([] as [(&str, &str); 0]))
}

/// A bundle that a build wrote.
fn bundled(place: &Place) -> Vec<u8> {
    config(place, place.finder(&[("CUTEMPLATE_BUNDLE", "write")]), "compiled").try_compile().unwrap();
    fs::read(place.root.join("kernels.bundle")).unwrap()
}

#[test]
fn a_bundle_stands_for_compiling() {
    let place = Place::new("good");
    // There is none yet: the kernels are compiled, and nothing is written.
    assert_eq!(config(&place, place.finder(&[]), "out").try_compile().unwrap().len(), 3);
    assert!(!place.root.join("kernels.bundle").exists());
    let bytes = bundled(&place);
    assert_eq!(config(&place, place.finder(&[]), "packed").pack().unwrap(), (bytes.clone(), Digest::of(&bytes)));
    // With it, nothing is looked for; what is included is what a build leaves.
    assert!(config(&place, bare(), "taken").try_compile().unwrap().is_empty());
    let files = |folder: &str| -> Vec<(String, Vec<u8>)> {
        let entries =
            fs::read_dir(place.root.join(folder)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.filter(|name| !name.ends_with(".rs")).collect();
        names.sort();
        names.into_iter().map(|name| (name.clone(), fs::read(place.root.join(folder).join(name)).unwrap())).collect()
    };
    let compiled = files("compiled");
    for (name, bytes) in files("taken") {
        assert!(compiled.contains(&(name.clone(), bytes)), "{name}");
    }
    // Modules stand in the order of their names.
    let module = |folder: &str| fs::read_to_string(place.root.join(folder).join("cutemplate.rs")).unwrap();
    let (taken, built) = (module("taken"), module("compiled"));
    let second = built.find("/// Kernel `both`").unwrap();
    assert_eq!(taken, format!("{}{}", &built[second..], &built[..second]));
}

#[test]
fn a_bundle_of_other_recipes_is_refused() {
    let place = Place::new("good");
    bundled(&place);
    let told = |config: Config| match config.try_compile().map(|_| ()) {
        Err(error @ (Error::Stale(_) | Error::Bundle(_))) => shown(&place, &error),
        other => panic!("{other:?}"),
    };
    let base =
        || Config::new().finder(bare()).out_dir(place.root.join("out")).bundle(place.root.join("kernels.bundle"));
    let refused = [
        told(base().recipe("three", &add(DType::F16))),
        told(base().recipe("one", &add(DType::F32))),
        told(base().recipe("one", &add(DType::F16)).arch(cutemplate::arch::Arch::Sm89)),
    ];
    expect![[r#"
        error[bundle]: <crate>/kernels.bundle is not of this crate's recipes
          kernel `three`
            found:    no such kernel among both, one
            required: a kernel of elementwise_add
          because:  what is asked for, and what is launched, would be two kernels
          help:     `CUTEMPLATE_BUNDLE=write cargo build` makes it again, where nvcc is
        error[bundle]: <crate>/kernels.bundle is not of this crate's recipes
          kernel `one`
            found:    dtype=f16
            required: dtype=f32
          because:  what is asked for, and what is launched, would be two kernels
          help:     `CUTEMPLATE_BUNDLE=write cargo build` makes it again, where nvcc is
        error[bundle]: <crate>/kernels.bundle is not of this crate's recipes
          kernel `one`
            found:    code for sm_80, sm_90a
            required: code for sm_89 too
          because:  what is asked for, and what is launched, would be two kernels
          help:     `CUTEMPLATE_BUNDLE=write cargo build` makes it again, where nvcc is"#]]
    .assert_eq(&refused.join("\n"));
    fs::write(place.root.join("kernels.bundle"), "anything").unwrap();
    expect![[r#"
        error[bundle-foreign]: the file is not a bundle of kernels
          found:    a file that begins with `anything`
          required: `cutemplate bundl`
          help:     name a file that `cutemplate bundle` wrote"#]]
    .assert_eq(&told(base().recipe("one", &add(DType::F16))));
}

/// A bundle with other contents, or with other bytes behind them.
pub(super) fn rewritten(bytes: &[u8], change: impl Fn(&mut Value, &mut Vec<u8>)) -> Vec<u8> {
    let len = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
    let mut contents: Value = serde_json::from_slice(&bytes[56..56 + len]).unwrap();
    let mut rest = bytes[56 + len..].to_vec();
    change(&mut contents, &mut rest);
    let text = serde_json::to_vec(&contents).unwrap();
    let sum = Digest::of(&text).to_string();
    let sum: Vec<u8> = (0..64).step_by(2).map(|at| u8::from_str_radix(&sum[at..at + 2], 16).unwrap()).collect();
    [&bytes[..20], &(text.len() as u32).to_le_bytes(), &sum, &text, &rest].concat()
}

/// That of no bundle.
const ANOTHER: Pinned = cutemplate::pinned!("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");

pub(super) fn unchecked<'a>(bytes: impl Into<std::borrow::Cow<'a, [u8]>>) -> Result<Bundle<'a>, BundleError> {
    // SAFETY: nothing runs its machine code.
    unsafe { Bundle::of_unchecked(bytes) }
}

pub(super) fn refused(bytes: Vec<u8>) -> BundleError {
    unchecked(bytes).map(|_| ()).unwrap_err()
}

#[test]
fn what_is_no_bundle_of_this_version_is_refused_in_words() {
    let place = Place::new("good");
    let bytes = bundled(&place);
    let whole = unchecked(&bytes[..]).unwrap();
    let mut newer = bytes.clone();
    newer[16] = 7;
    let last = bytes.len() - 1;
    let mut changed = bytes.clone();
    changed[last] ^= 1;
    let mut remark = bytes.clone();
    remark[60] ^= 1;
    let named =
        |name: &'static str| move |contents: &mut Value, _: &mut Vec<u8>| contents["files"][0]["name"] = json!(name);
    let told = [
        Bundle::of(&bytes[..], ANOTHER).map(|_| ()).unwrap_err(),
        whole.kernel("three").map(|_| ()).unwrap_err(),
        refused(Vec::new()),
        refused(b"\x7fELF\x02\x01".to_vec()),
        refused(newer),
        refused(bytes[..20].to_vec()),
        refused(bytes[..50].to_vec()),
        refused(bytes[..last].to_vec()),
        refused([&bytes[..], b"more"].concat()),
        refused(changed),
        refused(remark),
        refused(rewritten(&bytes, named("../../etc/passwd"))),
        refused(rewritten(&bytes, named("/etc/passwd"))),
        refused(rewritten(&bytes, |contents, _| contents["files"][1]["name"] = contents["files"][0]["name"].clone())),
        refused(rewritten(&bytes, |contents, _| contents["files"][0]["bytes"] = json!(u64::MAX))),
        refused(rewritten(&bytes, |contents, _| contents["kernels"][0]["name"] = json!("mod x; //"))),
        refused(rewritten(&bytes, |contents, _| contents["kernels"][0]["more"] = json!(1))),
        refused(rewritten(&bytes, |contents, _| contents["licences"][1]["file"] = json!("none.txt"))),
        refused(rewritten(&bytes, |contents, rest| {
            contents["licences"][1].as_object_mut().unwrap().remove("file");
            contents["files"].as_array_mut().unwrap().clear();
            rest.clear();
        })),
    ];
    let told: Vec<String> = told.iter().map(|error| shown(&place, &error)).collect();
    expect![[r#"
        error[bundle-hash]: the bundle is not the one that is asked for
          found:    sha256 <..>
          required: sha256 <..>
          because:  the GPU runs whatever is loaded
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-kernel]: the bundle has no kernel `three`
          required: both, one
          help:     `cutemplate inspect` lists its kernels
        error[bundle-foreign]: the file is not a bundle of kernels
          found:    a file that begins with ``
          required: `cutemplate bundl`
          help:     name a file that `cutemplate bundle` wrote
        error[bundle-foreign]: the file is not a bundle of kernels
          found:    a file that begins with `\x7fELF\x02\x01`
          required: `cutemplate bundl`
          help:     name a file that `cutemplate bundle` wrote
        error[bundle-format]: the bundle was written by another version of cutemplate
          found:    format 7
          required: format 2
          help:     make it again with `cutemplate bundle` of this version, or use the version that wrote it
        error[bundle-size]: the bundle is not whole
          found:    20 bytes
          required: at least 56
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-size]: the bundle is not whole
          found:    50 bytes
          required: at least 56
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-size]: the bundle is not whole
          found:    <..> bytes
          required: at least <..> to the end of CUTLASS_LICENSE.txt
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-size]: the bundle is not whole
          found:    <..> bytes
          required: <..>
          because:  what no one lists may be anything
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-hash]: CUTLASS_LICENSE.txt of the bundle is not what it was
          found:    sha256 <..>
          required: sha256 <..>
          because:  the GPU runs whatever is loaded
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-hash]: the contents of the bundle are not what they were
          found:    sha256 <..>
          required: sha256 <..>
          because:  the contents say what each file is
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-contents]: a file of the bundle has no name of its own
          found:    `../../etc/passwd`
          required: letters, digits, `_` and `.`, each name once
          because:  a bundle is put into a folder, which it must not leave
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-contents]: a file of the bundle has no name of its own
          found:    `/etc/passwd`
          required: letters, digits, `_` and `.`, each name once
          because:  a bundle is put into a folder, which it must not leave
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-contents]: a file of the bundle has no name of its own
          found:    `both_sm80.fatbin`
          required: letters, digits, `_` and `.`, each name once
          because:  a bundle is put into a folder, which it must not leave
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-size]: the bundle is not whole
          found:    <..> bytes
          required: at least <..> to the end of both_sm80.fatbin
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-contents]: `mod x; //` is not a valid kernel of a bundle
          required: a name of its own, of lower-case letters, digits and `_`, and a text
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-contents]: the contents of the bundle cannot be read
          found:    unknown field `more`, expected one of `name`, `family`, `recipe`, `settings`, `texts` at line 1 column <..>
          because:  it is damaged, or was written by another version of cutemplate
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-contents]: none.txt is not in the bundle
          required: the text of each licence that names a file
          help:     copy the bundle again, or make it again with `cutemplate bundle`
        error[bundle-contents]: both_sm80.fatbin of kernel `both` is not in the bundle
          required: a fatbin, PTX and an ABI of each text
          help:     copy the bundle again, or make it again with `cutemplate bundle`"#]].assert_eq(&told.join("\n"));
}

#[test]
fn packed_ptx_makes_no_more_bytes_than_it_says() {
    let place = Place::new("good");
    let bytes = bundled(&place);
    for len in [0, 1, 1 << 20, u64::MAX] {
        let bytes = rewritten(&bytes, |contents, _| contents["kernels"][0]["texts"][0]["ptx_bytes"] = json!(len));
        let bundle = unchecked(bytes).unwrap();
        let artifact = bundle.kernel(&bundle.contents().kernels[0].name).unwrap();
        let cutemplate::artifact::Code::Fatbin { ptx, .. } = artifact.texts()[0].code else { panic!("a stub") };
        assert!(ptx.text().unwrap_err().to_string().starts_with(&format!("packed PTX of {len} bytes: ")), "{len}");
    }
}

#[test]
fn damage_is_an_error_and_no_panic() {
    let place = Place::new("good");
    let bytes = bundled(&place);
    let path: PathBuf = place.root.join("damaged.bundle");
    for at in (0..56).chain((56..bytes.len()).step_by(37)) {
        assert!(unchecked(&bytes[..at]).is_err(), "cut at {at}");
        let mut bad = bytes.clone();
        bad[at] = bad[at].wrapping_add(1 + (at % 255) as u8);
        assert!(Bundle::of(&bad[..], ANOTHER).is_err(), "byte {at}");
        assert!(unchecked(&bad[..]).is_err(), "byte {at}");
        if at % 5 == 0 {
            fs::write(&path, &bad).unwrap();
            assert!(bundle::inspect(&path).is_err(), "byte {at}");
        }
    }
}

/// What an example ships runs on the PTX executor as what a build script leaves does.
#[cfg(feature = "ptx")]
#[test]
fn a_shipped_bundle_is_read_by_its_sha256_and_runs() {
    use cutemplate::exec::Kernel;
    use cutemplate::recipe::{Sum, TensorArgs};
    use cutemplate::view::{View, ViewLayout, ViewMut};

    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/row_sums/kernels.bundle"));
    let shipped = cutemplate::pinned!("f297a87aad28ad9ba980dcd5c37b023b02fa30d0c035104cbd6c84511fcf7ae5");
    let bundle = Bundle::read(&path, shipped).unwrap();
    assert!(bundle::inspect(&path).unwrap().refused.iter().all(Option::is_none));
    let kernel = Kernel::<Sum>::load(&bundle.kernel("row_sums").unwrap()).unwrap();
    let (a, mut y) = ([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0_f32; 2]);
    let sums = ViewLayout::strided(&[2], &[1]).unwrap();
    let args = TensorArgs::new().input(View::host(&a, [2, 3], 3)).output(ViewMut::host_strided(&mut y, sums));
    kernel.launch(args.scalar(0.5)).unwrap();
    assert_eq!(y, [3.0, 7.5]);
    let other = Kernel::<ElementwiseAdd>::load(&bundle.kernel("row_sums").unwrap()).map(|_| ()).unwrap_err();
    assert_eq!(other.to_string(), "the artifact is a kernel of family `sum`, the type asks for `elementwise_add`");
}

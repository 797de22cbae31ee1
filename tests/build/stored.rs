//! Contract: each content is compiled once and kept; what is damaged, cut off or left by a killed build is seen and made again.
//! The compiler is the script `tests/fake/nvcc`.
#![cfg(all(unix, feature = "build"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::place::{Place, targets, unit, write};
use cutemplate::arch::{Arch, Targets};
use cutemplate::build::{Compiled, Compiler, Error, Outcome, Store};
use cutemplate::dtype::DType;

/// Does something to a file of an entry.
type Harm<'a> = &'a dyn Fn(&Path);

/// The entry of the store that holds the fatbin; another holds PTX.
fn entry(place: &Place) -> std::path::PathBuf {
    let stored = place.stored();
    assert_eq!(stored.len(), 2, "{stored:?}");
    let mut entries = stored.iter().map(|name| place.store().root().join(name));
    entries.find(|dir| dir.join("add.fatbin").exists() || dir.join("manifest.json").exists()).unwrap()
}

#[test]
fn the_same_is_compiled_once() {
    let place = Place::new("good");
    let first = place.compile().unwrap();
    assert_eq!(first.outcome(), &Outcome::Built);
    // Another process would make its own compiler, too.
    let second = place.compile().unwrap();
    assert_eq!(second.outcome(), &Outcome::Cached);
    let parts = |c: &Compiled| (c.manifest().clone(), c.fatbin().to_vec(), c.path().to_owned(), c.inputs().to_vec());
    assert_eq!(parts(&second), parts(&first));
    assert_eq!(second.vouched().abi(), first.vouched().abi());
    assert_eq!(place.runs().len(), 2);
}

#[test]
fn whatever_changes_the_outcome_changes_the_key() {
    let place = Place::new("good");
    let default = Targets::default();
    let add = unit("add", DType::F16);
    let with = |vars: &[(&str, &str)]| Compiler::new(&place.finder(vars), &mut ()).unwrap();
    with(&[]).compile(&add, &default).unwrap();
    with(&[]).compile(&unit("add", DType::F32), &default).unwrap();
    with(&[]).compile(&unit("sum", DType::F16), &default).unwrap();
    with(&[]).compile(&add, &targets(&[Arch::Sm80])).unwrap();
    with(&[]).with_flags(["-lineinfo"]).compile(&add, &default).unwrap();
    with(&[("NVCC_APPEND_FLAGS", "-G")]).compile(&add, &default).unwrap();
    with(&[("CPATH", "/somewhere")]).compile(&add, &default).unwrap();
    place.cutlass_version(3);
    with(&[]).compile(&add, &default).unwrap();
    write(&place.root.join("cuda/version.json"), r#"{"cuda_nvcc":{"version":"13.0.99"}}"#);
    with(&[]).compile(&add, &default).unwrap();
    // PTX and machine code each; for sm_80 alone there is PTX already.
    assert_eq!(place.runs().len(), 8 * 2 + 1);
    assert_eq!(place.stored().len(), 8 * 2 + 1);
}

#[test]
fn a_changed_header_makes_the_entry_stale() {
    let place = Place::new("good");
    place.compile().unwrap();
    let header = place.root.join("cuda/include/cuda_runtime_api.h");
    write(&header, "#define CUDART_VERSION  13000\n// patched\n");
    let again = place.compile().unwrap();
    // The path is as nvcc named it, relative to its own folder.
    let Outcome::Rebuilt(why) = again.outcome() else { panic!("{:?}", again.outcome()) };
    assert!(why.ends_with("cuda_runtime_api.h was changed since"), "{why}");
    fs::remove_file(&header).unwrap();
    let loaded = Compiler::new(&place.finder(&[]), &mut ());
    assert!(loaded.is_err(), "a toolkit without its headers is refused before that");
}

#[test]
fn a_damaged_entry_is_seen_and_made_again() {
    let place = Place::new("good");
    let good = place.compile().unwrap();
    let writable: Harm<'_> = &|path| fs::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
    let damage: [(&str, Harm<'_>, &str); 8] = [
        ("add.fatbin", writable, "others than its owner can write it"),
        ("entry.json", writable, "others than its owner can write it"),
        ("add.fatbin", &|path| fs::write(path, &good.fatbin()[..good.fatbin().len() / 2]).unwrap(), "and should have"),
        ("add.fatbin", &|path| fs::write(path, good.fatbin().to_ascii_uppercase()).unwrap(), "its sha256 differs"),
        ("add.fatbin", &|path| fs::remove_file(path).unwrap(), "add.fatbin cannot be read"),
        ("manifest.json", &|path| fs::write(path, "{").unwrap(), "manifest.json has 1 bytes, and should have"),
        ("manifest.json", &|path| fs::remove_file(path).unwrap(), "manifest.json cannot be read"),
        ("entry.json", &|path| fs::write(path, "").unwrap(), "entry.json is damaged"),
    ];
    for (file, harm, reason) in damage {
        harm(&entry(&place).join(file));
        let again = place.compile().unwrap();
        assert!(
            matches!(again.outcome(), Outcome::Rebuilt(why) if why.contains(reason)),
            "{file}: {:?}",
            again.outcome()
        );
        assert_eq!(again.fatbin(), good.fatbin());
        assert_eq!(place.compile().unwrap().outcome(), &Outcome::Cached);
    }
}

/// What an older version kept, or who knows who wrote: with its list, so that each file has the sha256 that is listed.
#[test]
fn a_poisoned_entry_is_seen_and_made_again() {
    let rewrite = |dir: &Path, name: &str, bytes: &[u8]| {
        fs::write(dir.join(name), bytes).unwrap();
        let list = fs::read(dir.join("entry.json")).unwrap();
        let mut list: serde_json::Value = serde_json::from_slice(&list).unwrap();
        let file = list["files"].as_array_mut().unwrap().iter_mut().find(|file| file["name"] == name).unwrap();
        file["bytes"] = bytes.len().into();
        file["sha256"] = cutemplate::digest::Digest::of(bytes).to_string().into();
        fs::write(dir.join("entry.json"), list.to_string()).unwrap();
    };
    for (name, why) in
        [("add.ptx", "add.ptx is not complete PTX: the text is empty"), ("add.fatbin", "its fatbin is empty")]
    {
        let place = Place::new("good");
        let good = place.compile().unwrap();
        let stored = place.stored().into_iter().map(|key| place.store().root().join(key));
        let dir = stored.into_iter().find(|dir| dir.join(name).exists()).unwrap();
        rewrite(&dir, name, b"");
        let ptx = place.compiler().ptx(&unit("add", DType::F16), &Targets::default()).unwrap();
        let again = place.compile().unwrap();
        let told = if name == "add.ptx" { ptx.outcome() } else { again.outcome() };
        assert!(matches!(told, Outcome::Rebuilt(found) if found.contains(why)), "{told:?}");
        assert_eq!(again.fatbin(), good.fatbin());
    }
}

#[test]
fn of_two_at_once_one_compiles() {
    let place = Place::new("good");
    let both = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| place.compile().unwrap()));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(place.runs().len(), 2);
    let mut outcomes = both.map(|compiled| compiled.outcome() == &Outcome::Built);
    outcomes.sort_unstable();
    assert_eq!(outcomes, [false, true]);
}

/// The staging directories in the store.
fn staging(place: &Place) -> Vec<String> {
    place.stored().into_iter().filter(|name| name.starts_with(".staging-")).collect()
}

#[test]
fn a_build_that_is_killed_half_way_leaves_a_clean_start() {
    let place = Place::new("wait");
    let mut victim = place.child("stored::compile_and_print").spawn().unwrap();
    let start = Instant::now();
    while !place.root.join("cuda/bin/started").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "nvcc was not started");
        std::thread::sleep(Duration::from_millis(10));
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    // The entry to be, and nvcc's temporary files.
    assert_eq!(staging(&place).len(), 2);

    // The compiler that lost its parent still runs, and ends while or after the next one does.
    place.mode("good");
    let good = place.compile().unwrap();
    assert_eq!(good.outcome(), &Outcome::Built);
    write(&place.root.join("cuda/bin/release"), "");
    let again = place.compile().unwrap();
    assert_eq!((again.outcome(), again.fatbin()), (&Outcome::Cached, good.fatbin()));
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn compile_and_print() {
    let Some(place) = Place::of_parent() else { return };
    println!("{}", place.compile().unwrap().manifest());
}

#[test]
fn what_killed_builds_of_other_keys_left_is_removed() {
    let place = Place::new("good");
    let fatbin = place.compile().unwrap();
    let key = fatbin.path().parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
    // Two that are not of this key's lock: one abandoned, one being made.
    let digits: Vec<String> = (0..256).map(|n| format!("{n:02x}")).filter(|d| *d != key[..2]).collect();
    let staging = |digits: &str| place.store().root().join(format!(".staging-{digits}{}", &key[2..]));
    let (abandoned, busy) = (staging(&digits[0]), staging(&digits[1]));
    for dir in [&abandoned, &busy] {
        write(&dir.join("tmp/left"), "");
    }
    let locks = place.store().root().join("locks");
    fs::write(locks.join(&digits[0]), "").unwrap();
    let held = fs::File::create(locks.join(&digits[1])).unwrap();
    held.lock().unwrap();
    fs::remove_dir_all(place.store().root().join(&key)).unwrap();
    place.compile().unwrap();
    assert!(!abandoned.exists());
    assert!(busy.exists());
}

#[test]
fn a_store_that_cannot_be_written_says_so() {
    let place = Place::new("good");
    let file = place.root.join("file");
    write(&file, "");
    let compiler = place.compiler().with_store(Store::at(file.join("kernels")));
    let error = compiler.compile(&unit("add", DType::F16), &Targets::default()).unwrap_err();
    assert!(matches!(error, Error::Io { verb: "make", .. }), "{error}");
    assert!(error.to_string().contains("CUTEMPLATE_CACHE_DIR"), "{error}");
    assert_eq!(place.runs(), [""; 0], "nvcc is not started where its result cannot be kept");
}

/// As on a full disk: no file takes more than 512 bytes. The shell ignores the signal, so that the write fails.
#[test]
fn what_is_cut_off_is_told_and_not_kept() {
    let place = Place::new("good");
    let child = place.child("stored::compile_and_print");
    let mut limited = std::process::Command::new("/bin/sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"])
        .arg(child.get_program())
        .args(child.get_args());
    limited.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("File too large"), "{told}");
    assert_eq!((place.stored(), staging(&place)), (vec![], vec![]), "nothing that is no whole entry");
    assert_eq!(place.compile().unwrap().outcome(), &Outcome::Built);
}

//! Contract: pruning removes what the limits leave no room for, the least recently used first, and nothing that a process uses,
//! makes; whoever wants what is gone makes it again.
#![cfg(all(feature = "build", unix))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use crate::place::{Place, targets, unit, write};
use cutemplate::arch::Arch;
use cutemplate::build::cache::{Cache, Entry, Kind, Limits, Pruned};
use cutemplate::build::{Compiled, Compiler, Outcome};
use cutemplate::dtype::DType;
use cutemplate::units::Bytes;

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 3600)
}

fn older_than(limit: u64) -> Limits {
    Limits { older_than: Some(days(limit)), max_size: None }
}

fn at_most(bytes: u64) -> Limits {
    Limits { older_than: None, max_size: Some(Bytes(bytes)) }
}

/// The cache of a place, with what a test wants to know of it.
struct Home {
    place: Place,
    cache: Cache,
    now: SystemTime,
}

impl Home {
    fn new() -> Home {
        let place = Place::new("good");
        let cache = Cache::at(place.root.join("cache"));
        Home { place, cache, now: SystemTime::now() }
    }

    /// A kernel that was used so many days ago: its machine code and the PTX that this was made of.
    fn kernel(&self, name: &str, age: u64) -> Compiled {
        let compiled = self.compile(name);
        let unit = unit(name, DType::F16);
        let ptx = self.place.compiler().ptx(&unit, &targets(&[Arch::Sm90a])).expect("it is there");
        for path in [compiled.path(), ptx.path()] {
            self.age(&path.with_file_name("entry.json"), age);
        }
        compiled
    }

    fn compile(&self, name: &str) -> Compiled {
        self.place.compiler().compile(&unit(name, DType::F16), &targets(&[Arch::Sm90a])).expect("compiles")
    }

    /// A file that was used so many days ago, as an entry.
    fn file(&self, name: &str, bytes: usize, age: u64) {
        let path = self.cache.root().join("kernels").join(name);
        write(&path, &"x".repeat(bytes));
        self.age(&path, age);
    }

    /// A directory of that age, as an entry.
    fn directory(&self, name: &str, age: u64) {
        let path = self.cache.root().join("kernels").join(name);
        write(&path.join("part.o"), "part");
        self.age(&path, age);
    }

    fn age(&self, path: &Path, age: u64) {
        fs::File::open(path).expect("there").set_modified(self.now - days(age)).expect("set");
    }

    fn prune(&self, limits: Limits) -> Pruned {
        let before: u64 = self.sum(|kind| kind != Kind::Tool);
        let pruned = self.cache.prune(&limits, self.now).expect("pruned");
        let removed: u64 = pruned.removed.iter().map(|entry| entry.bytes.0).sum();
        let after = self.sum(|kind| kind != Kind::Tool);
        assert_eq!((before - removed, after), (after, pruned.left.0));
        assert!(pruned.removed.iter().all(|entry| !entry.path.exists()), "{pruned:?}");
        assert!(pruned.in_use.iter().all(|entry| entry.path.exists()), "{pruned:?}");
        pruned
    }

    fn sum(&self, of: impl Fn(Kind) -> bool) -> u64 {
        self.cache.entries().expect("read").iter().filter(|e| of(e.kind)).map(|e| e.bytes.0).sum()
    }

    fn names(&self, kind: Kind) -> Vec<String> {
        let entries = self.cache.entries().expect("read");
        names(entries.iter().filter(|entry| entry.kind == kind))
    }
}

fn names<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<String> {
    entries.into_iter().map(|e| e.path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn a_cache_that_is_not_there_is_empty() {
    let home = Home::new();
    assert_eq!(home.cache.entries().expect("nothing"), []);
    assert_eq!(home.prune(at_most(0)).removed, []);
    assert!(!home.cache.root().exists(), "nothing is made");
}

#[test]
fn every_entry_is_listed_once_with_its_kind_and_size() {
    let home = Home::new();
    let kernel = home.kernel("add", 3);
    home.file("0123", 700, 2);
    write(&home.cache.root().join("kernels/locks/ab"), "");
    home.directory("4567", 1);
    home.directory(".staging-abc", 9);
    // An executor that is no more had these.
    write(&home.cache.root().join("host/0123456789"), "part");
    write(&home.cache.root().join("runtime/0123456789/main.o"), "part");
    write(&home.cache.root().join("toolchain/cutlass/include/a.hpp"), "12345");
    let mut found = BTreeMap::new();
    for entry in home.cache.entries().expect("read") {
        *found.entry(entry.kind).or_insert(0) += 1;
        match entry.kind {
            Kind::Kernel if entry.path.ends_with("0123") => assert_eq!(entry.bytes, Bytes(700)),
            Kind::Kernel if entry.path.ends_with("4567") => assert_eq!(entry.bytes, Bytes(4)),
            Kind::Kernel => {
                assert_eq!(entry.path.parent(), kernel.path().ancestors().nth(2));
                assert_eq!(entry.kernel.as_deref(), Some("add"));
            }
            Kind::Unfinished => assert_eq!(entry.bytes, Bytes(4)),
            Kind::Tool => assert_eq!(entry.bytes, Bytes(5)),
        }
    }
    assert_eq!(found, BTreeMap::from([(Kind::Kernel, 4), (Kind::Unfinished, 3), (Kind::Tool, 1)]));
    let order: Vec<SystemTime> = home.cache.entries().expect("read").iter().map(|entry| entry.used).collect();
    assert!(order.is_sorted());
}

#[test]
fn what_is_old_goes_and_is_made_again() {
    let home = Home::new();
    for (name, age) in [("old", 21), ("young", 19)] {
        home.kernel(name, age);
    }
    write(&home.cache.root().join("toolchain/nvcc/bin/nvcc"), "tool");
    home.age(&home.cache.root().join("toolchain/nvcc"), 400);
    let pruned = home.prune(older_than(20));
    assert_eq!((pruned.removed.len(), pruned.in_use.len()), (2, 0), "{pruned:?}");
    assert_eq!((home.names(Kind::Kernel).len(), home.names(Kind::Tool)), (2, vec!["nvcc".into()]));
    assert_eq!(home.compile("young").outcome(), &Outcome::Cached);
    assert_eq!(home.compile("old").outcome(), &Outcome::Built);
}

#[test]
fn of_too_much_the_least_recently_used_goes_first() {
    let home = Home::new();
    for (name, age) in [("cc", 7), ("aa", 9), ("bb", 8), ("dd", 6)] {
        home.file(name, 100, age);
    }
    assert_eq!(home.prune(at_most(400)).removed, []);
    assert_eq!(names(&home.prune(at_most(399)).removed), ["aa"]);
    assert_eq!(names(&home.prune(at_most(150)).removed), ["bb", "cc"]);
    assert_eq!(home.names(Kind::Kernel), ["dd"]);
}

#[test]
fn what_is_used_counts_as_used() {
    let home = Home::new();
    let kernel = home.kernel("add", 40);
    assert_eq!(home.compile("add").outcome(), &Outcome::Cached);
    // The machine code was used, and not the PTX that it was made of.
    let removed = home.prune(older_than(30)).removed;
    assert!(removed.len() == 1 && !kernel.path().starts_with(&removed[0].path), "{removed:?}");
    assert_eq!(home.compile("add").outcome(), &Outcome::Cached);
}

#[test]
fn what_is_being_made_stays_and_what_is_left_goes() {
    let home = Home::new();
    let before = ["host/0123456789", "runtime/0123456789/main.o"].map(|name| home.cache.root().join(name));
    before.iter().for_each(|path| write(path, "of an executor that is no more"));
    home.directory(".staging-ab", 0);
    home.directory(".staging-cd", 3);
    let locks = home.cache.root().join("kernels/locks");
    write(&locks.join("ab"), "");
    let making = fs::File::open(locks.join("ab")).expect("there");
    making.lock().expect("free");
    let pruned = home.prune(at_most(1 << 30));
    assert_eq!(names(&pruned.removed), [".staging-cd", "0123456789", "0123456789"]);
    assert!(pruned.in_use.is_empty() && !before.iter().any(|path| path.exists()), "{pruned:?}");
    assert_eq!(home.names(Kind::Unfinished), [".staging-ab"]);
}

#[test]
fn kernels_whose_lock_is_held_stay_and_what_killed_builds_left_goes() {
    let home = Home::new();
    let kernel = home.kernel("add", 40);
    let key = kernel.path().parent().and_then(Path::file_name).expect("a key").to_string_lossy().into_owned();
    let root = home.place.store().root().to_owned();
    let staging = root.join(format!(".staging-{key}"));
    write(&staging.join("add.cu"), "half");
    let lock = fs::File::open(root.join("locks").join(&key[..2])).expect("made by the build");
    lock.lock().expect("free");
    let pruned = home.prune(older_than(30));
    assert_eq!(names(&pruned.in_use), [key.as_str()]);
    assert!(!names(&pruned.removed).contains(&key) && staging.exists());
    // Other tests start processes, which hold the file for a moment.
    lock.unlock().expect("held");
    let mut removed = names(&home.prune(older_than(30)).removed);
    removed.sort();
    assert_eq!(removed, [format!(".staging-{key}"), key]);
    assert_eq!(home.place.stored(), [""; 0]);
}

#[test]
fn several_prune_at_once() {
    let home = Home::new();
    for i in 0..200 {
        home.file(&format!("program {i}"), 10, 3);
        home.directory(&format!("directory {i}"), 4);
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| home.cache.prune(&at_most(0), home.now).expect("pruned"));
        }
    });
    assert_eq!(home.cache.entries().expect("read"), []);
}

/// Whoever compiles gets a whole kernel, however often others prune.
#[test]
fn builds_and_prunes_at_once_do_not_hinder_each_other() {
    let home = Home::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    home.cache.prune(&at_most(0), SystemTime::now()).expect("pruned");
                }
            });
        }
        let builders: Vec<_> = ["a", "b", "a"]
            .into_iter()
            .map(|name| {
                let home = &home;
                scope.spawn(move || {
                    for _ in 0..12 {
                        let compiler = home.place.compiler();
                        let compiled =
                            compiler.compile(&unit(name, DType::F32), &targets(&[Arch::Sm90a])).expect("whole");
                        assert_eq!(compiled.manifest().name, name);
                    }
                })
            })
            .collect();
        let built: Vec<_> = builders.into_iter().map(|builder| builder.join()).collect();
        // Those that prune end first, or a build that fails would be waited for.
        done.store(true, Ordering::Relaxed);
        built.into_iter().for_each(|one| one.expect("builds"));
    });
    home.prune(at_most(0));
    assert_eq!(home.place.stored(), [""; 0]);
}

/// All of a cache but its tools.
fn total(home: &Home) -> u64 {
    home.sum(|kind| kind != Kind::Tool)
}

#[test]
fn a_cache_stays_within_its_size_and_the_least_recently_used_goes() {
    let home = Home::new();
    for (name, age) in [("cc", 7), ("aa", 9), ("bb", 8)] {
        home.kernel(name, age);
    }
    let most = total(&home) / 3 * 2 + 100;
    let compile = |name: &str, most: u64| {
        let finder = home.place.finder(&[("CUTEMPLATE_CACHE_SIZE", &most.to_string())]);
        let compiler = Compiler::new(&finder, &mut ()).expect("a toolchain");
        compiler.compile(&unit(name, DType::F16), &targets(&[Arch::Sm90a])).expect("compiles").outcome().clone()
    };
    assert_eq!(compile("cc", most), Outcome::Cached);
    let kernels = || {
        let mut kernels: Vec<_> = home.cache.entries().expect("read").into_iter().filter_map(|e| e.kernel).collect();
        kernels.sort();
        kernels.dedup();
        kernels
    };
    assert_eq!(kernels(), ["aa", "bb", "cc"], "nothing was made");
    assert_eq!(compile("dd", most), Outcome::Built);
    assert!(total(&home) <= most, "{} of {most}", total(&home));
    assert_eq!(kernels(), ["cc", "dd"]);
    // What is larger than all of the room is made all the same.
    assert_eq!(compile("ee", 1), Outcome::Built);
    assert_eq!(total(&home), 0);
}

#[test]
fn a_size_that_is_none_is_refused() {
    let place = Place::new("good");
    let error = Compiler::new(&place.finder(&[("CUTEMPLATE_CACHE_SIZE", "much")]), &mut ()).expect_err("no size");
    expect_test::expect![[r#"
        error[build]: CUTEMPLATE_CACHE_SIZE is not a size
          found:    `much`
          required: bytes, or a number with K, M, G or T, for example 20G
          because:  above it, the least recently used kernels are removed from the cache"#]]
    .assert_eq(&error.to_string());
}

/// Eight processes, a cache that has room for few of their kernels: every one gets all of its own, and what is left
/// fits.
#[test]
fn eight_processes_share_a_cache_that_is_too_small() {
    let home = Home::new();
    home.kernel("aa", 0);
    let most = total(&home) * 3;
    let start = |number: usize| {
        let mut child = home.place.child("cache::compile_in_little_room");
        child.env("CUTEMPLATE_TEST_ROOM", most.to_string()).env("CUTEMPLATE_TEST_NUMBER", number.to_string());
        child.stdout(std::process::Stdio::null()).spawn().expect("a process")
    };
    let children: Vec<_> = (0..8).map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("ends").success());
    }
    assert!(total(&home) <= most, "{} of {most}", total(&home));
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn compile_in_little_room() {
    let Some(place) = Place::of_parent() else { return };
    let [room, number] = ["ROOM", "NUMBER"].map(|name| std::env::var(format!("CUTEMPLATE_TEST_{name}")).expect("set"));
    let compiler = Compiler::new(&place.finder(&[("CUTEMPLATE_CACHE_SIZE", &room)]), &mut ()).expect("a toolchain");
    // Those of others, too.
    for name in ["shared".to_owned(), format!("own_{number}"), "common".to_owned(), format!("last_{number}")] {
        let compiled = compiler.compile(&unit(&name, DType::F16), &targets(&[Arch::Sm90a])).expect("compiles");
        assert_eq!(compiled.manifest().name, name);
    }
}

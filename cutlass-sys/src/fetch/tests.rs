//! Contract: a fetch ends with a whole component, or with an error that says what to do and leaves nothing that the
//! next try could trip over. No test here uses the network: `python3` is the script `tests/fake/python3`.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use zip::write::SimpleFileOptions;

use super::*;

const KEEP: &[(&str, &str)] = &[("pkg/", ""), ("pkg-1.dist-info/LICENSE", "LICENSE")];
/// The directory of a test, for the child process of that test.
const DIR: &str = "CUTEMPLATE_TEST_FETCH_DIR";

/// A directory with a `python3`, a wheel that it serves, and a cache.
struct Place {
    root: PathBuf,
    _temp: Option<tempfile::TempDir>,
}

impl Place {
    fn new(mode: &str) -> Place {
        let temp = tempfile::tempdir().unwrap();
        let place = Place { root: temp.path().to_path_buf(), _temp: Some(temp) };
        fs::create_dir_all(place.root.join("bin/serve")).unwrap();
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/python3");
        symlink(fake, place.bin("python3")).unwrap();
        place.mode(mode);
        wheel(
            &place.bin("serve/pkg-1.whl"),
            &[
                ("pkg/bin/tool", 0o744, b"#!/bin/sh\n"),
                ("pkg/include/a.h", 0o664, b"int a;\n"),
                ("other/not-kept", 0o644, b""),
                ("pkg-1.dist-info/LICENSE", 0o644, b"terms\n"),
            ],
        );
        place
    }

    fn bin(&self, name: &str) -> PathBuf {
        self.root.join("bin").join(name)
    }

    fn mode(&self, mode: &str) {
        fs::write(self.bin("mode"), mode).unwrap();
    }

    fn env(&self) -> Env {
        Env::from_pairs([("PATH", self.root.join("bin"))])
    }

    /// A job for the wheel that is served.
    fn job(&self) -> Job {
        let file = self.bin("serve/pkg-1.whl");
        let bytes = file.metadata().unwrap().len();
        self.job_with(pip::sha256(&file).unwrap(), bytes)
    }

    fn job_with(&self, sha256: String, bytes: u64) -> Job {
        let file = File { platform: None, sha256: sha256.leak(), bytes };
        let wheel = Wheel { name: "pkg", version: "1", files: &[], keep: KEEP };
        Job {
            name: "pkg",
            dir: self.root.join("cache/toolchain/pkg-1"),
            marker: format!("pkg 1 {}\n", file.sha256),
            wheels: vec![(wheel, file)],
        }
    }

    fn provide(&self) -> Result<PathBuf, Error> {
        provide(&self.job(), &self.env(), &mut ())
    }

    /// What lies in the cache beside locks.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("cache/toolchain")).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.ends_with(".lock")).collect();
        names.sort();
        names
    }

    /// How often pip was started.
    fn runs(&self) -> usize {
        fs::read_to_string(self.bin("argv")).map_or(0, |text| text.lines().count())
    }

    /// After a failure: nothing is left, and with a good pip the next try succeeds.
    fn next_try_is_clean(&self) {
        assert_eq!(self.left(), [""; 0], "a failed fetch leaves nothing");
        self.mode("serve");
        let dir = self.provide().unwrap();
        assert_eq!(fs::read_to_string(dir.join("include/a.h")).unwrap(), "int a;\n");
        assert_eq!(self.left(), ["pkg-1"]);
    }
}

fn wheel(path: &Path, entries: &[(&str, u32, &[u8])]) {
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (name, mode, bytes) in entries {
        zip.start_file(*name, SimpleFileOptions::default().unix_permissions(*mode)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

/// Runs one ignored test of this module in a process of its own, under `sh` with a prologue.
fn child(test: &str, place: &Place, prologue: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let script = format!("{prologue} exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("fetch::tests::{test}"), "--ignored", "--nocapture"]);
    command.env(DIR, &place.root);
    command
}

/// The place of the parent, in a child process.
fn parent_place() -> Option<Place> {
    let root = PathBuf::from(std::env::var_os(DIR)?);
    Some(Place { root, _temp: None })
}

/// Waits until a file is there; a minute is far more than it takes.
fn await_file(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no {}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_fetch_unpacks_what_is_kept_and_asks_pip_for_pins_only() {
    let place = Place::new("serve");
    let mut steps = Vec::new();
    let mut progress = |step: Step<'_>| steps.push(format!("{step:?}"));
    let dir = provide(&place.job(), &place.env(), &mut progress).unwrap();

    let mode = |name: &str| dir.join(name).metadata().unwrap().permissions().mode() & 0o111;
    assert_eq!(mode("bin/tool"), 0o111, "programs can be run by everyone");
    assert_eq!(mode("include/a.h"), 0, "headers cannot be run");
    assert_eq!(fs::read_to_string(dir.join("LICENSE")).unwrap(), "terms\n");
    assert!(!dir.join("not-kept").exists() && !dir.join("other").exists());

    let job = place.job();
    let pin = format!("pkg==1 --hash=sha256:{}\n", job.wheels[0].1.sha256);
    assert_eq!(fs::read_to_string(place.bin("requirements")).unwrap(), pin);
    let argv = fs::read_to_string(place.bin("argv")).unwrap();
    for word in ["-I -m pip download --no-deps --require-hashes", "--only-binary=:all:"] {
        assert!(argv.contains(word), "{argv}");
    }
    assert!(steps.first().unwrap().starts_with("Download"), "{steps:?}");
    assert!(steps.last().unwrap().starts_with("Ready"), "{steps:?}");
    assert_eq!(place.left(), ["pkg-1"], "no staging directory stays");
}

#[test]
fn what_is_there_is_not_fetched_again() {
    let place = Place::new("serve");
    place.provide().unwrap();
    fs::remove_file(place.bin("python3")).unwrap();
    place.provide().unwrap();
    assert_eq!(place.runs(), 1);
}

/// The folder of whoever asks may hold a `pip.py`.
#[test]
fn pip_runs_in_a_folder_of_its_own() {
    let place = Place::new("serve");
    place.provide().unwrap();
    let ran = fs::read_to_string(place.bin("pwd")).unwrap();
    let staging = place.root.join("cache/toolchain/.staging-pkg-1-").display().to_string();
    assert!(ran.contains(&staging) && ran.ends_with("/work\n"), "{ran}");
}

#[test]
fn what_others_can_write_is_fetched_again() {
    let place = Place::new("serve");
    let dir = place.provide().unwrap();
    for (run, (name, mode)) in
        [("bin/tool", 0o757), ("include/a.h", 0o664), ("include", 0o775), ("", 0o777)].into_iter().enumerate()
    {
        let path = dir.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(dir.join("include/a.h"), "int planted;\n").unwrap();
        place.provide().unwrap();
        assert_eq!(place.runs(), run + 2, "{name}");
        assert_eq!(fs::read_to_string(dir.join("include/a.h")).unwrap(), "int a;\n", "{name}");
        assert_eq!(trusted_below(&dir), Ok(()));
    }
}

/// As where a user's group is the user's own: files that are made can be written by the group.
#[test]
fn what_is_fetched_under_a_loose_umask_is_the_user_s_alone() {
    let place = Place::new("serve");
    let output = child("provide_and_print", &place, "umask 000;").output().unwrap();
    assert!(output.status.success());
    place.provide().unwrap();
    assert_eq!(place.runs(), 1, "it is taken for what it is");
}

#[test]
fn a_directory_without_its_marker_is_made_anew() {
    let place = Place::new("serve");
    let dir = place.provide().unwrap();
    fs::remove_file(dir.join(MARKER)).unwrap();
    fs::write(dir.join("stray"), "").unwrap();
    place.provide().unwrap();
    assert!(!dir.join("stray").exists());
    assert_eq!(place.runs(), 2);
}

#[test]
fn a_file_with_another_hash_is_refused() {
    let place = Place::new("serve");
    let other = "0".repeat(64);
    let error = provide(&place.job_with(other.clone(), 1), &place.env(), &mut ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongHash);
    assert!(error.found().starts_with("pkg-1.whl sha256 "), "{error}");
    assert_eq!(error.required(), format!("pkg 1 sha256 {other}"));
    place.next_try_is_clean();
}

#[test]
fn a_pip_that_brings_nothing_is_refused() {
    let place = Place::new("nothing");
    let error = place.provide().unwrap_err();
    assert_eq!((error.kind(), error.found()), (ErrorKind::WrongHash, "no file"));
    place.next_try_is_clean();
}

#[test]
fn no_python3_says_so() {
    let place = Place::new("serve");
    fs::rename(place.bin("python3"), place.bin("kept")).unwrap();
    let error = place.provide().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoPython);
    assert!(error.help().contains("install python3 and pip"), "{error}");
    fs::rename(place.bin("kept"), place.bin("python3")).unwrap();
    place.next_try_is_clean();
}

#[test]
fn pips_failures_are_told_apart_and_keep_its_words() {
    let cases = [
        (ErrorKind::NoPip, "/usr/bin/python3: No module named pip"),
        (
            ErrorKind::NoNetwork,
            "WARNING: Retrying after connection broken by 'NewConnectionError: [Errno -3] Temporary failure in name \
             resolution'\nERROR: No matching distribution found for pkg==1",
        ),
        (ErrorKind::NotOnIndex, "ERROR: No matching distribution found for pkg==1"),
        (ErrorKind::WrongHash, "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."),
        (ErrorKind::NoSpace, "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"),
        (ErrorKind::Pip, "Traceback (most recent call last): RecursionError"),
    ];
    for (kind, says) in cases {
        let place = Place::new("says");
        fs::write(place.bin("says"), says).unwrap();
        let error = place.provide().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says.lines().last().unwrap()), "{error}");
        assert!(!error.help().is_empty());
        place.next_try_is_clean();
    }
}

#[test]
fn of_pips_retries_the_last_is_kept() {
    let place = Place::new("says");
    let retries: String = (0..5).rev().map(|n| format!("WARNING: Retrying (total={n}) NewConnectionError\n")).collect();
    fs::write(place.bin("says"), format!("Looking\n{retries}ERROR: none\n")).unwrap();
    let error = place.provide().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoNetwork);
    assert_eq!(error.found(), "Looking\nWARNING: Retrying (total=0) NewConnectionError\nERROR: none");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_pip_says_so() {
    // The fake writes to /dev/full: the words are those of the system.
    let place = Place::new("full");
    let error = place.provide().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(error.help().contains("CUTEMPLATE_CACHE_DIR"));
    place.next_try_is_clean();
}

#[test]
fn a_full_disk_while_unpacking_says_so() {
    let place = Place::new("serve");
    let zeros = vec![0; 4 << 20];
    wheel(&place.bin("serve/pkg-1.whl"), &[("pkg/include/a.h", 0o644, b"int a;\n"), ("pkg/zeros", 0o644, &zeros)]);
    // A limit on the size of files: the wheel is below it, what it unpacks to is not.
    let output = child("provide_and_print", &place, "ulimit -f 1024; trap '' XFSZ;").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("error[no-space]: cannot write"), "{text}");
    assert!(text.contains("nothing half done is kept"), "{text}");
    place.next_try_is_clean();
}

#[test]
#[ignore = "run by other tests, in a process of its own"]
fn provide_and_print() {
    let Some(place) = parent_place() else { return };
    match place.provide() {
        Ok(dir) => println!("fetched {}", dir.display()),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn a_fetch_that_is_killed_half_way_leaves_a_clean_start() {
    let place = Place::new("wait");
    let mut victim: Child = child("provide_and_print", &place, "").spawn().unwrap();
    await_file(&place.bin("started"));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let left = place.left();
    assert!(left.len() == 1 && left[0].starts_with(".staging-pkg-1-"), "{left:?}");

    // The download outlives its parent; it ends now, and what it wrote is removed by the next try.
    fs::write(place.bin("release"), "").unwrap();
    place.mode("serve");
    place.provide().unwrap();
    assert_eq!(place.left(), ["pkg-1"]);
}

#[test]
fn of_two_at_once_one_fetches_and_one_waits() {
    let place = Place::new("wait");
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| place.provide());
        await_file(&place.bin("started"));
        let mut waited = false;
        let mut progress = |step: Step<'_>| {
            if let Step::Wait { lock, .. } = step {
                assert!(lock.ends_with(".pkg-1.lock"));
                waited = true;
                // Only now the first may go on: it is certain that both were at work.
                fs::write(place.bin("release"), "").unwrap();
            }
        };
        let second = provide(&place.job(), &place.env(), &mut progress);
        assert!(waited);
        (first.join().unwrap(), second)
    });
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(place.runs(), 1);
}

#[test]
fn a_cache_that_cannot_be_made_says_so() {
    let place = Place::new("serve");
    fs::write(place.root.join("cache"), "a file, not a directory").unwrap();
    let error = place.provide().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cache, "{error}");
    assert!(error.help().contains("CUTEMPLATE_CACHE_DIR"));
}

/// The error of fetching a wheel with these entries, none of which is right.
fn refused(entries: &[(&str, u32, &[u8])]) -> Error {
    let place = Place::new("serve");
    wheel(&place.bin("serve/pkg-1.whl"), entries);
    let error = place.provide().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadArchive, "{error}");
    assert_eq!(place.left(), [""; 0]);
    assert!(!place.root.join("cache/evil").exists());
    error
}

#[test]
fn entries_stay_in_their_folder() {
    for name in ["pkg/../../../evil", "pkg//evil", "pkg/a\\..\\evil", "pkg/C:evil"] {
        let error = refused(&[(name, 0o644, b"")]);
        assert_eq!(error.found(), format!("the entry {name:?} leaves its folder"));
    }
    let error = refused(&[("elsewhere/a", 0o644, b"")]);
    assert_eq!(error.found(), "nothing of what is needed");
}

#[test]
fn links_are_refused() {
    let place = Place::new("serve");
    let file = fs::File::create(place.bin("serve/pkg-1.whl")).unwrap();
    let mut zip = zip::ZipWriter::new(file);
    zip.add_symlink("pkg/lib", "/etc", SimpleFileOptions::default()).unwrap();
    zip.finish().unwrap();
    let error = place.provide().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadArchive);
    assert_eq!(error.found(), "the entry \"pkg/lib\" is a link or a device");
    assert_eq!(place.left(), [""; 0]);
}

#[test]
fn two_wheels_that_give_one_file_are_refused() {
    let place = Place::new("serve");
    let mut job = place.job();
    job.wheels.push(job.wheels[0]);
    let error = provide(&job, &place.env(), &mut ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadArchive);
    assert_eq!(error.found(), "the entry \"pkg/bin/tool\" is there twice");
    assert_eq!(place.left(), [""; 0]);
}

#[test]
fn a_damaged_archive_is_refused() {
    let place = Place::new("serve");
    fs::write(place.bin("serve/pkg-1.whl"), b"not a zip archive").unwrap();
    let error = place.provide().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadArchive, "{error}");
    assert_eq!(place.left(), [""; 0]);
}

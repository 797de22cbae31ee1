//! pip downloads the wheels: each by name, version and sha256, into the staging directory.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{Job, cache_error, no_space};
use crate::find::{Env, Error, ErrorKind, File, Wheel};
use crate::progress::{Progress, Step};

/// How often the size of the download is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Downloads the job's wheels and returns their files in the order of the job, each with its sha256 checked.
pub(super) fn download(
    job: &Job,
    staging: &Path,
    env: &Env,
    progress: &mut dyn Progress,
) -> Result<Vec<PathBuf>, Error> {
    let python = crate::programs::python(env)?.path;
    let requirements = staging.join("requirements.txt");
    let text: String =
        job.wheels.iter().map(|(w, f)| format!("{}=={} --hash=sha256:{}\n", w.name, w.version, f.sha256)).collect();
    fs::write(&requirements, text).map_err(|e| cache_error("write", &requirements, &e))?;

    let log = staging.join("pip.log");
    let out = fs::File::create(&log).map_err(|e| cache_error("write", &log, &e))?;
    let err = out.try_clone().map_err(|e| cache_error("write", &log, &e))?;
    let wheels = staging.join("wheels");
    let tmp = staging.join("tmp");
    let mut command = Command::new(&python);
    command
        // Neither the caller's folder nor PYTHON* variables say what `pip` is: a folder may hold a pip.py of its own.
        .arg("-I")
        .current_dir(staging.join("work"))
        .args(["-m", "pip", "download", "--no-deps", "--require-hashes"])
        // No source distribution: that would run its setup code.
        .args(["--only-binary=:all:", "--no-cache-dir", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar", "off"])
        .arg("-d")
        .arg(&wheels)
        .arg("-r")
        .arg(&requirements)
        // Nothing is installed, so no virtual environment is asked for.
        .env("PIP_REQUIRE_VIRTUALENV", "0")
        // pip's own temporary files lie in the staging directory, and go with it.
        .env("TMPDIR", &tmp)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err);
    let status = watch(job, &mut command, &[&wheels, &tmp], progress)?;
    if !status.success() {
        let text = fs::read(&log).unwrap_or_default();
        return Err(failure(job, &python, status, &String::from_utf8_lossy(&text)));
    }
    verified(job, &wheels)
}

/// Runs pip, reporting how many bytes there are meanwhile.
fn watch(job: &Job, command: &mut Command, dirs: &[&Path], progress: &mut dyn Progress) -> Result<ExitStatus, Error> {
    let program = PathBuf::from(command.get_program());
    let fail = |e: &std::io::Error| {
        Error::new(
            ErrorKind::NoPython,
            format!("{} cannot be run", program.display()),
            e.to_string(),
            "a working python3, which runs pip",
            "repair or install python3 with pip",
        )
    };
    let mut child = command.spawn().map_err(|e| fail(&e))?;
    let total = job.total();
    loop {
        let ended = child.try_wait().map_err(|e| fail(&e))?;
        let done = if ended.is_some_and(|status| status.success()) {
            total
        } else {
            dirs.iter().map(|dir| bytes_under(dir)).sum::<u64>().min(total)
        };
        progress.step(Step::Download { component: job.name, done, total });
        if let Some(status) = ended {
            return Ok(status);
        }
        std::thread::sleep(TICK);
    }
}

/// The size of all files under a directory; what vanishes meanwhile counts as nothing.
fn bytes_under(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_under(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// The wheel file for each pin, by its sha256.
fn verified(job: &Job, dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(dir).map_err(|e| cache_error("read", dir, &e))?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let hash = sha256(&path).map_err(|e| cache_error("read", &path, &e))?;
        found.push((hash, path));
    }
    found.sort();
    let file = |(wheel, file): &(Wheel, File)| {
        let hit = found.iter().find(|(hash, _)| hash == file.sha256);
        hit.map(|(_, path)| path.clone()).ok_or_else(|| {
            let listed: Vec<String> = found
                .iter()
                .map(|(hash, path)| format!("{} sha256 {hash}", path.file_name().unwrap_or_default().to_string_lossy()))
                .collect();
            let listed = if listed.is_empty() { "no file".to_owned() } else { listed.join("\n") };
            wrong_hash(job, listed, format!("{} {} sha256 {}", wheel.name, wheel.version, file.sha256))
        })
    };
    job.wheels.iter().map(file).collect()
}

fn wrong_hash(job: &Job, found: String, required: String) -> Error {
    Error::new(
        ErrorKind::WrongHash,
        format!("{} was downloaded, but is not the pinned file", job.name),
        found,
        required,
        "try again; if it stays, the package index or a proxy serves another file: do not use it",
    )
    .because("only the files that this release was tested with are unpacked and run")
}

/// The sha256 of a file, in hexadecimal.
pub(super) fn sha256(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => digest.update(&buffer[..n]),
        }
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Words of pip, of its libraries and of the system that tell its failures apart; the first that fits is taken.
const SAYS: [(ErrorKind, &[&str]); 5] = [
    (ErrorKind::NoPip, &["No module named pip"]),
    (ErrorKind::WrongHash, &["DO NOT MATCH THE HASHES"]),
    (ErrorKind::NoSpace, &["No space left on device", "Disk quota exceeded", "File too large"]),
    (
        ErrorKind::NoNetwork,
        &[
            "NewConnectionError",
            "NameResolutionError",
            "Temporary failure in name resolution",
            "Name or service not known",
            "Network is unreachable",
            "No route to host",
            "Connection refused",
            "ConnectTimeoutError",
            "ProxyError",
            "Max retries exceeded",
            "Read timed out",
        ],
    ),
    (ErrorKind::NotOnIndex, &["No matching distribution found", "Could not find a version"]),
];

/// The error for a pip that failed: its words decide which, and are kept.
fn failure(job: &Job, python: &Path, status: ExitStatus, log: &str) -> Error {
    let fits = |words: &[&str]| words.iter().any(|word| log.contains(word));
    let kind = SAYS.iter().find(|(_, words)| fits(words)).map_or(ErrorKind::Pip, |(kind, _)| *kind);
    let found = last_lines(log);
    let pin = |(w, f): &(Wheel, File)| format!("{} {} sha256 {}", w.name, w.version, f.sha256);
    let required = match kind {
        ErrorKind::NoPip => "python3 with pip, which downloads and checks the pinned wheels".to_owned(),
        _ => job.wheels.iter().map(pin).collect::<Vec<_>>().join("\n"),
    };
    let (why, help) = match kind {
        ErrorKind::WrongHash => return wrong_hash(job, found, required),
        ErrorKind::NoSpace => return no_space(format!("{} cannot be downloaded", job.name), found),
        ErrorKind::NoPip => (
            format!("{} has no pip", python.display()),
            "install pip (Debian: python3-pip), or run python3 -m ensurepip",
        ),
        ErrorKind::NoNetwork => (
            "the package index cannot be reached".to_owned(),
            "connect to the network, or tell pip of your index or proxy (PIP_INDEX_URL, PIP_PROXY), \
             or name an installed copy: CUTLASS_PATH, CUDA_HOME",
        ),
        ErrorKind::NotOnIndex => (
            "the package index does not offer it".to_owned(),
            "let pip use an index that has these wheels (PIP_INDEX_URL), \
             or name an installed copy: CUTLASS_PATH, CUDA_HOME",
        ),
        _ => (format!("pip failed with {status}"), "see what pip says; the next try starts clean"),
    };
    let what = format!("{} cannot be downloaded: {why}", job.name);
    Error::new(kind, what, found, required, help)
}

/// The end of pip's log, where the reason stands; of its retries, which all say the same, the last.
fn last_lines(log: &str) -> String {
    let mut lines: Vec<&str> = log.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let retry = |line: &str| line.starts_with("WARNING: Retrying");
    let last = lines.iter().rposition(|line| retry(line)).map(|at| lines[at]);
    lines.retain(|line| !retry(line) || Some(*line) == last);
    let first = lines.len().saturating_sub(12);
    if lines.is_empty() { "pip says nothing".to_owned() } else { lines[first..].join("\n") }
}

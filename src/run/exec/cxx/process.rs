//! Runs a program in a process of its own: the job goes in through a pipe, verdicts and outputs come out.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use super::arena::{self, Layout, Owner};
use super::report::{self, Raw};
use super::{Program, error};
use crate::exec::extent::Extent;
use crate::exec::job::Job;
use crate::exec::{Error, Report};

/// What a kernel prints is kept up to here, in bytes.
const LOG: u64 = 64 * 1024;

/// Runs a kernel on the memory of `extents`.
///
/// # Safety
/// Each extent is readable, and writable where it says so, for the time of the call, and nobody else writes it.
pub(super) unsafe fn run(program: &Program, job: &Job<'_>, extents: &[Extent]) -> Result<Report, Error> {
    let layout = Layout::new(extents, job.workspace)?;
    let header = arena::encode(program, job, &layout, extents);
    program.file.still().map_err(|why| error::changed(&why))?;
    let mut child = Command::new(program.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| error::run(format!("{} did not start: {e}", program.path().display())))?;
    // SAFETY: as for this function.
    let answer = unsafe { converse(&mut child, &header, &layout, extents) };
    // The process has answered, or never will; the one that it runs the kernel in dies with it.
    let _ = child.kill();
    let status = child.wait().map_err(|e| error::run(e.to_string()))?;
    match answer {
        Ok((raw, log)) => Ok(report::resolve(program, job, &layout, extents, raw, log)),
        Err(Broken { why, log }) => Err(error::run(format!("{why}; it ended with {status}\n{log}"))),
    }
}

/// The conversation ended before its end.
struct Broken {
    why: String,
    log: String,
}

/// # Safety
/// As [`run`].
unsafe fn converse(
    child: &mut Child,
    header: &[u8],
    layout: &Layout,
    extents: &[Extent],
) -> Result<(Raw, String), Broken> {
    let (Some(mut stdin), Some(mut stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Broken { why: "the process has no pipes".into(), log: String::new() });
    };
    let log = std::thread::spawn(move || read_log(stderr));
    // SAFETY: as for this function.
    let sent = unsafe { send(&mut stdin, header, layout, extents) };
    drop(stdin);
    // SAFETY: as for this function.
    let answer = unsafe { receive(&mut stdout, layout, extents) };
    if answer.is_err() {
        let _ = child.kill();
    }
    let log = log.join().unwrap_or_default();
    match (answer, sent) {
        (Ok(raw), _) => Ok((raw, log)),
        // Where the job could not be sent, the answer is missing for that reason.
        (Err(_), Err(e)) => Err(Broken { why: format!("it did not take the job: {e}"), log }),
        (Err(e), Ok(())) => Err(Broken { why: format!("it did not answer: {e}"), log }),
    }
}

/// Reads to the end, so that nobody waits for a full pipe, and keeps the beginning.
fn read_log(mut from: impl Read) -> String {
    let mut kept = Vec::new();
    // An unreadable log is an empty one: it is shown beside the verdict, never parsed.
    let _ = from.by_ref().take(LOG).read_to_end(&mut kept);
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    String::from_utf8_lossy(&kept).into_owned()
}

/// # Safety
/// As [`run`].
unsafe fn send(to: &mut impl Write, header: &[u8], layout: &Layout, extents: &[Extent]) -> std::io::Result<()> {
    to.write_all(header)?;
    for region in layout.of_caller() {
        // SAFETY: as for this function.
        to.write_all(&unsafe { region.own.read(extents) })?;
    }
    to.flush()
}

/// # Safety
/// As [`run`].
unsafe fn receive(from: &mut impl Read, layout: &Layout, extents: &[Extent]) -> std::io::Result<Raw> {
    let mut length = [0_u8; 8];
    from.read_exact(&mut length)?;
    let mut text = Vec::new();
    from.by_ref().take(u64::from_ne_bytes(length)).read_to_end(&mut text)?;
    let raw = serde_json::from_slice(&text)?;
    for region in layout.regions.iter().filter(|r| r.owner == Owner::Output) {
        let mut bytes = vec![0_u8; region.own.bytes as usize];
        from.read_exact(&mut bytes)?;
        // SAFETY: as for this function.
        unsafe { region.own.write(extents, &bytes) };
    }
    Ok(raw)
}

//! Reads whole files. Devices, sockets and named pipes are refused first: they may have no end, or no writer.

use std::fs::{self, File};
use std::io;
use std::path::Path;

fn refused(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{what}; a regular file is required, or a pipe such as /dev/stdin"),
    )
}

/// Opens a file and returns its length, or opens an anonymous pipe, which has no length.
///
/// A named pipe is refused: opening it blocks until a process writes to it.
///
/// # Errors
/// The path is a device, a folder, a socket or a named pipe, or the operating system refuses.
pub fn open(path: &Path) -> io::Result<(File, Option<u64>)> {
    let info = fs::metadata(path)?;
    if info.is_file() {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        return Ok((file, Some(length)));
    }
    if info.is_dir() {
        return Err(refused("this is a folder"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if !info.file_type().is_fifo() {
            return Err(refused("this is a device or a socket"));
        }
        // A pipe without a name has no path: `/dev/stdin` leads to none on Linux, and is one of `/dev/fd` elsewhere.
        if fs::canonicalize(path).is_ok_and(|real| !real.starts_with("/dev/fd")) {
            return Err(refused("this is a named pipe"));
        }
    }
    Ok((File::open(path)?, None))
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// As [`open`], or the file is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open(path)?;
    rest(file, length.unwrap_or(0), most)
}

/// Reads the rest of a source: about `expected` bytes, and at most `most`.
///
/// # Errors
/// The source has more bytes, memory is exhausted, or the operating system refuses.
pub fn rest(from: impl io::Read, expected: u64, most: u64) -> io::Result<Vec<u8>> {
    use io::Read as _;

    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("there are more than {most} bytes"));
    if expected > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(expected).unwrap_or(usize::MAX))?;
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

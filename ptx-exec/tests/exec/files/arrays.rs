//! Arrays and texts. Endless files are refused at once, and unsupported element types are named.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use ptx_exec::{Module, run_file};

use super::{elements, error_of, folder, launch, run};

/// A `.npy` file of that header.
fn file(dict: &str, bytes: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(dict.len()).expect("short").to_le_bytes());
    file.extend(dict.bytes());
    file.extend(bytes);
    file
}

#[test]
fn elements_that_no_kernel_reads_are_refused() {
    let folder = folder("{}");
    let run_with = |descr: &str, size: usize| {
        let dict = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (70,), }}\n");
        fs::write(folder.path().join("y.npy"), file(&dict, &vec![0; 70 * size])).expect("writable");
        run(&folder, &launch(70))
    };
    for (descr, size, words) in [
        ("'|O8'", 8, "Python objects"),
        ("'|O'", 8, "Python objects"),
        ("[('a', '<f4'), ('b', '<i8')]", 12, "records"),
        ("'<U4'", 16, "text"),
        ("'<M8[ns]'", 8, "times"),
        ("'<m8[s]'", 8, "times"),
        ("'>f4'", 4, "big-endian"),
        ("'<q4'", 4, "a type that is not read here"),
        ("'f4'", 4, "a type that is not read here"),
        ("'<f'", 4, "a type that is not read here"),
        ("'<f-4'", 4, "a type that is not read here"),
        ("'<f99999999999999999'", 4, "too large"),
    ] {
        let e = run_with(descr, size).expect_err(descr).to_string();
        assert!(e.contains(words) && e.contains("y.npy"), "{descr}: {e}");
    }
    for (descr, size) in [
        ("'<f4'", 4),
        ("'=f4'", 4),
        ("'<u2'", 2),
        ("'|V2'", 2),
        ("'|u1'", 1),
        ("'|b1'", 1),
        ("'>i1'", 1),
        ("'<c8'", 8),
        ("'|S4'", 4),
        ("'<f8'", 8),
        ("'<i8'", 8),
    ] {
        assert!(run_with(descr, size.max(4)).is_ok() == (size >= 4), "{descr}");
        assert!(run_with(descr, size).is_ok(), "{descr}");
    }
}

#[test]
fn a_length_that_is_not_the_header_s_is_refused() {
    let folder = folder("{}");
    for (shape, bytes) in
        [("(70,)", 279), ("(70,)", 281), ("(2, 36)", 280), ("(18446744073709551615,)", 280), ("(1, 99999999999)", 280)]
    {
        let dict = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        fs::write(folder.path().join("y.npy"), file(&dict, &vec![0; bytes])).expect("writable");
        let e = error_of(&folder, &launch(70));
        assert!(e.contains("y.npy"), "{shape}: {e}");
    }
}

/// The kernel gets the bytes in the order of the file, and a note says so. The output has the same order.
#[test]
fn fortran_order_is_said() {
    let folder = folder("{}");
    let run_with = |order: &str, shape: &str| {
        let dict = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}");
        let dict = format!("{dict}{}\n", " ".repeat(117 - dict.len()));
        fs::write(folder.path().join("y.npy"), file(&dict, &[0; 280])).expect("writable");
        run(&folder, &launch(70)).expect("it runs").remove(0)
    };
    let report = run_with("True", "(7, 10)");
    assert!(report.notes.iter().any(|note| note.contains("y.npy is in Fortran order")), "{:?}", report.notes);
    assert!(
        String::from_utf8_lossy(&fs::read(folder.path().join("z.npy")).expect("written"))
            .contains("'fortran_order': True")
    );
    assert_eq!(elements(&folder, "z.npy").len(), 280);
    for (order, shape) in [("False", "(7, 10)"), ("True", "(70,)"), ("True", "(70, 1)")] {
        assert!(run_with(order, shape).notes.is_empty(), "{order} {shape}");
    }
}

/// Runs `f` with a time limit.
fn in_time<T: Send + 'static>(what: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(f()));
    told.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what} is read for ever"))
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_refused_at_once() {
    let folder = folder("{}");
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs");
    assert!(made.success());
    let ours = |path: &Path| path.to_owned();
    for path in [Path::new("/dev/zero"), Path::new("/dev/tty"), &fifo, folder.path()] {
        let of = ours(path);
        let refused = in_time("a text", move || Module::read(&of).map(drop)).expect_err("it is no text");
        assert!(refused.to_string().contains("cannot be read"), "{refused}");
        let of = ours(path);
        assert!(in_time("a launch file", move || run_file(&of, false).map(drop)).is_err());
        for (what, key) in [("k.ptx", "ptx"), ("x.npy", "npy")] {
            let text = launch(70).replacen(what, path.to_str().expect("UTF-8"), 1);
            fs::write(folder.path().join("l.json"), text).expect("writable");
            let of = folder.path().join("l.json");
            let refused = in_time(key, move || run_file(&of, false).map(drop)).expect_err("it is no file");
            assert!(refused.to_string().contains(path.to_str().expect("UTF-8")), "{refused}");
        }
    }
}

/// A text from an anonymous pipe, as from a shell's `|`, is read to its end, up to the size limit.
#[cfg(target_os = "linux")]
#[test]
fn pipes_that_end_are_read() {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    let through = |bytes: Vec<u8>| {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let writes = std::thread::spawn(move || writer.write_all(&bytes));
        let read = Module::read(Path::new(&path));
        drop(reader);
        let _ = writes.join();
        read
    };
    assert_eq!(through(super::SCALE.as_bytes().to_vec()).expect("it is PTX").version(), (8, 0));
    assert!(through(vec![b' '; (64 << 20) + 1]).expect_err("too long").to_string().contains("more than"));
}

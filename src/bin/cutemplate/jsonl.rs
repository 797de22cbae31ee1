//! `cutemplate layout --jsonl`: answers requests line by line until the input ends.

use std::io::{self, Read, Write};
use std::thread;

use cutemplate::algebra_tool::{MOST_LINE, answer_with};
use cutemplate::atom;

/// Input is read in pieces of at most this many bytes; all whole lines of a piece are answered before the next is waited for.
const PIECE: usize = 1 << 18;

/// A core takes at least this many bytes of lines: below, starting a thread costs more than it saves.
const LEAST: usize = 1 << 13;

/// A core stops when its answers have about this many bytes, so that what waits for its turn stays bounded.
const MOST_ANSWERS: usize = 1 << 20;

/// Answers every line of `input` on `output`, in order. Bytes that are not UTF-8, and lines that are too long, get an error
/// for an answer as well. Returns the number of lines.
///
/// What has come in so far is answered before more is waited for; the lines of one piece are shared by all cores. Memory is
/// bounded by a piece, a line, and the answers of each core.
pub(crate) fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<u64> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut pending = Pending { bytes: Vec::new(), begun: 0, seen: 0 };
    let mut lines = 0;
    while pending.read(&mut input)? {
        let (whole, rest) = pending.split();
        lines += answer_all(whole, cores, &mut output)?;
        pending.keep(rest);
    }
    if pending.begun > 0 {
        lines += answer_all(&pending.bytes[..pending.begun], 1, &mut output)?;
    }
    Ok(lines)
}

/// What was read and is not answered yet: whole lines, and the beginning of one more.
struct Pending {
    bytes: Vec<u8>,
    /// How many bytes there are.
    begun: usize,
    /// How many of them are known to hold no line end.
    seen: usize,
}

impl Pending {
    /// Reads what there is, at least one byte; `false` at the end of the input.
    fn read(&mut self, input: &mut impl Read) -> io::Result<bool> {
        self.bytes.resize(self.begun + PIECE, 0);
        loop {
            match input.read(&mut self.bytes[self.begun..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let count = read?;
                    self.begun += count;
                    return Ok(count > 0);
                }
            }
        }
    }

    /// The whole lines, and where the line that is not whole begins.
    fn split(&self) -> (&[u8], usize) {
        let fresh = &self.bytes[self.seen..self.begun];
        let end = fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| self.seen + at + 1);
        (&self.bytes[..end], end)
    }

    /// Forgets everything before `from`. Of a line that is too long only so much is kept that it is seen to be too long.
    fn keep(&mut self, from: usize) {
        if from > 0 {
            self.bytes.copy_within(from..self.begun, 0);
        }
        self.begun = (self.begun - from).min(MOST_LINE + 1);
        self.seen = self.begun;
    }
}

/// Answers lines on several cores and writes the answers in order.
fn answer_all(lines: &[u8], cores: usize, output: &mut impl Write) -> io::Result<u64> {
    let parts = shares(lines, cores.min(lines.len() / LEAST).max(1));
    let mut count = 0;
    let mut write = |part: &[u8], mut done: Answers| -> io::Result<()> {
        let mut used = 0;
        loop {
            output.write_all(done.text.as_bytes())?;
            count += done.lines;
            used += done.used;
            if used == part.len() {
                return Ok(());
            }
            done = answers(&part[used..]);
        }
    };
    thread::scope(|scope| {
        let (first, others) = parts.split_first().map_or((&[][..], &[][..]), |(first, others)| (*first, others));
        let others: Vec<_> = others.iter().map(|part| (*part, scope.spawn(|| answers(part)))).collect();
        write(first, answers(first))?;
        for (part, thread) in others {
            write(part, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))?;
        }
        Ok::<(), io::Error>(())
    })?;
    output.flush()?;
    Ok(count)
}

/// Cuts lines into about equal parts of whole lines.
fn shares(lines: &[u8], count: usize) -> Vec<&[u8]> {
    let mut parts = Vec::with_capacity(count);
    let mut rest = lines;
    for left in (1..=count).rev() {
        let middle = rest.len() / left;
        let end = rest[middle..].iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| middle + at + 1);
        let (part, others) = rest.split_at(end);
        parts.push(part);
        rest = others;
    }
    parts
}

/// The answers to lines, up to where there were enough for one turn.
struct Answers {
    text: String,
    lines: u64,
    used: usize,
}

fn answers(part: &[u8]) -> Answers {
    let mut done = Answers { text: String::with_capacity(2 * part.len()), lines: 0, used: 0 };
    while done.used < part.len() && done.text.len() < MOST_ANSWERS {
        let rest = &part[done.used..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        match std::str::from_utf8(&line[..line.len().min(MOST_LINE + 1)]) {
            Ok(text) => answer_with(text, &mut done.text, atom::answer),
            // Not a request, whatever it was meant to be.
            Err(_) => answer_with("\u{fffd}", &mut done.text, atom::answer),
        }
        done.lines += 1;
        done.used += end.map_or(rest.len(), |end| end + 1);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_one_answer() {
        let input =
            b"{\"op\": \"size\", \"inputs\": [\"(4,8):(1,4)\"]}\n\n\xff\xfe\n{\"op\": \"rank\", \"inputs\": [\"4:1\"]}";
        let mut output = Vec::new();
        assert_eq!(serve(&input[..], &mut output).expect("memory does not fail"), 4);
        let output = String::from_utf8(output).expect("text");
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!((lines[0], lines[3]), ("{\"ok\": \"32\"}", "{\"ok\": \"1\"}"));
        assert!(lines[1].contains("\"class\": \"Request\"") && lines[2].contains("\"class\": \"Request\""));
        assert_eq!(lines.len(), 4);
    }

    /// Hands out its bytes in small reads, as a pipe may.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn answers_keep_the_order_of_the_lines() {
        let request = |i: usize| format!("{{\"op\": \"size\", \"inputs\": [\"({i},3):(1,0)\"]}}\n");
        let input: String = (1..20_000).map(request).collect();
        let expected: String = (1..20_000).map(|i| format!("{{\"ok\": \"{}\"}}\n", 3 * i)).collect();
        for step in [17, 4096, usize::MAX] {
            let mut output = Vec::new();
            let count = serve(Drops(input.as_bytes(), step), &mut output).expect("memory does not fail");
            assert_eq!(count, 19_999);
            assert!(output == expected.as_bytes(), "reads of {step} bytes");
        }
    }

    #[test]
    fn long_answers_are_written_in_turns() {
        let line = "{\"op\": \"vals\", \"inputs\": [\"4096:1\"]}\n";
        let mut output = Vec::new();
        assert_eq!(serve(line.repeat(400).as_bytes(), &mut output).expect("memory does not fail"), 400);
        let output = String::from_utf8(output).expect("text");
        let first = output.lines().next().expect("an answer");
        assert!(first.ends_with(",4095\"}") && output.lines().all(|answer| answer == first));
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let input = vec![b'x'; 3 * MOST_LINE];
        let mut output = Vec::new();
        assert_eq!(serve(&input[..], &mut output).expect("memory does not fail"), 1);
        assert!(output.starts_with(b"{\"error\": {\"class\": \"Limit\""));
    }
}

//! `cutemplate layout --jsonl`: answers requests line by line until the input ends.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use cutemplate::algebra_tool::{MOST_LINE, answer_with};
use cutemplate::atom;

/// Answers every line of `input` on `output`, in order. Lines that have come in are answered before it waits for more.
/// Bytes that are not UTF-8, and lines that are too long, get an error as their answer. Returns the number of lines.
///
/// # Errors
/// Reading or writing fails.
pub(crate) fn serve(input: impl Read, output: impl Write) -> io::Result<u64> {
    let (mut input, mut output) = (BufReader::new(input), BufWriter::new(output));
    let (mut line, mut answer, mut lines) = (Vec::new(), String::new(), 0);
    while input.by_ref().take(MOST_LINE as u64 + 1).read_until(b'\n', &mut line)? > 0 {
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            input.skip_until(b'\n')?;
        }
        answer_with(str::from_utf8(&line).unwrap_or("\u{fffd}"), &mut answer, atom::answer);
        output.write_all(answer.as_bytes())?;
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
        lines += 1;
        line.clear();
        answer.clear();
    }
    Ok(lines)
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
    fn a_line_without_end_is_bounded() {
        let mut input = vec![b'x'; 3 * MOST_LINE];
        for (rest, lines) in [("", 1), ("\n{\"op\": \"rank\", \"inputs\": [\"4:1\"]}", 2)] {
            input.extend(rest.bytes());
            let mut output = Vec::new();
            assert_eq!(serve(&input[..], &mut output).expect("memory does not fail"), lines);
            assert!(output.starts_with(b"{\"error\": {\"class\": \"Limit\""));
            assert_eq!(output.ends_with(b"{\"ok\": \"1\"}\n"), lines == 2, "what comes behind it is answered");
        }
    }
}

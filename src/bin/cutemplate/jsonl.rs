//! `cutemplate layout --jsonl`: answers requests line by line until the input ends.

use std::io::{self, BufRead, BufReader, Read, Write};

use cutemplate::atom;
use cutemplate::layout::protocol::{MOST_LINE, answer_with};

/// Answers go out in pieces of about this many bytes, and before every wait for more input.
const PIECE: usize = 1 << 16;

/// Answers every line of `input` on `output`, in order. Bytes that are not UTF-8, and lines that are too long, get an error
/// for an answer as well. Returns the number of lines.
pub(crate) fn serve(input: impl Read, mut output: impl Write) -> io::Result<u64> {
    let mut input = BufReader::with_capacity(PIECE, input);
    let mut answers = String::with_capacity(2 * PIECE);
    let mut line = Vec::new();
    let mut lines = 0;
    while read_line(&mut input, &mut line)? {
        match std::str::from_utf8(&line) {
            Ok(text) => answer_with(text, &mut answers, atom::answer),
            // Not a request, whatever it was meant to be.
            Err(_) => answer_with("\u{fffd}", &mut answers, atom::answer),
        }
        lines += 1;
        if answers.len() >= PIECE || input.buffer().is_empty() {
            output.write_all(answers.as_bytes())?;
            output.flush()?;
            answers.clear();
        }
    }
    output.write_all(answers.as_bytes())?;
    output.flush()?;
    Ok(lines)
}

/// Reads a line without its end. Of a line that is too long only so much is kept that it is seen to be too long.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = (MOST_LINE + 1).saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
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

    #[test]
    fn a_line_without_end_is_bounded() {
        let input = vec![b'x'; 3 * MOST_LINE];
        let mut output = Vec::new();
        assert_eq!(serve(&input[..], &mut output).expect("memory does not fail"), 1);
        assert!(output.starts_with(b"{\"error\": {\"class\": \"Limit\""));
    }
}

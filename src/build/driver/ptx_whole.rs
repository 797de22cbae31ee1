//! Whether a text of PTX is all there: nvcc can be cut off, by a full disk or a wrapper, and end well all the same.

/// Checks that a text is PTX from its first directive to the end of its last block, with a body for each of these
/// entries. `Err` says what is missing. Statements are not checked: ptxas does that.
pub(super) fn whole(text: &str, entries: &[String]) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("the text is empty".into());
    }
    let words = words(text)?;
    for directive in [".version", ".target"] {
        if !words.iter().any(|word| word.text == directive) {
            return Err(format!("there is no {directive}"));
        }
    }
    let bodies = bodies(&words)?;
    match entries.iter().find(|entry| !bodies.contains(&entry.as_str())) {
        Some(missing) => Err(format!("there is no body of entry {missing}")),
        None => Ok(()),
    }
}

pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    line: usize,
}

/// Words and punctuation, without remarks; a string is one word.
pub(super) fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let (mut words, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let end = |closing: &str, from: usize, what: &str| {
            let found = rest[from..].find(closing).map(|at| from + at + closing.len());
            found.ok_or_else(|| format!("the {what} of line {line} does not end"))
        };
        let length = match first {
            '"' => end("\"", 1, "string")?,
            '/' if rest.starts_with("/*") => end("*/", 2, "remark")?,
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if is_part(first) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        if !first.is_whitespace() && !word.starts_with("//") && !word.starts_with("/*") {
            words.push(Word { text: word, line });
        }
        line += word.matches('\n').count();
        rest = after;
    }
    if !text.ends_with('\n') {
        return Err(format!("line {line} is cut off"));
    }
    Ok(words)
}

fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._$%@".contains(letter)
}

/// The entries that have a body, which ends.
fn bodies<'t>(words: &[Word<'t>]) -> Result<Vec<&'t str>, String> {
    let (mut bodies, mut open, mut entry) = (Vec::new(), Vec::new(), None);
    for (at, word) in words.iter().enumerate() {
        match word.text {
            ".entry" if open.is_empty() => entry = words.get(at + 1).map(|name| name.text),
            ";" if open.is_empty() => entry = None,
            "{" => open.push(word.line),
            "}" if open.pop().is_none() => return Err(format!("nothing is open where line {} closes it", word.line)),
            "}" if open.is_empty() => bodies.extend(entry.take()),
            _ => {}
        }
    }
    match open.first() {
        Some(line) => Err(format!("the block of line {line} does not end")),
        None => Ok(bodies),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// nvcc's \"words\" {\n.version 9.0\n.target sm_80\n.address_size 64\n.extern .func f();\n\
        .visible .entry add(\n\t.param .u64 p\n)\n{\n\t{ .reg .b32 %r1; }\n\tret;\n}\n\
        .visible .entry add_more()\n{\n\tret; /* } */\n}\n\t.file\t1 \"a { b\"\n";

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_whole_text_has_the_body_of_each_entry() {
        assert_eq!(whole(TEXT, &names(&["add", "add_more"])), Ok(()));
        assert_eq!(whole(TEXT, &names(&["sub"])), Err("there is no body of entry sub".into()));
        let declared = TEXT.replace("add_more()\n{\n\tret; /* } */\n}", "add_more();");
        assert_eq!(whole(&declared, &names(&["add_more"])), Err("there is no body of entry add_more".into()));
    }

    #[test]
    fn every_cut_is_seen_but_of_what_follows_the_last_block() {
        let entries = names(&["add", "add_more"]);
        let last = TEXT.rfind('}').expect("a block") + 1;
        for len in 0..TEXT.len() {
            let told = whole(&TEXT[..len], &entries);
            assert_eq!(told.is_err(), len != last + 1, "{len}: {told:?}");
        }
        assert_eq!(whole("", &[]), Err("the text is empty".into()));
        assert_eq!(whole("\n}\n", &[]), Err("there is no .version".into()));
    }
}

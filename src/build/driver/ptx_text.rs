//! The text of PTX: without what differs from folder to folder, and without what only a reader needs.

use std::path::Path;

/// Names files as they are included, `cute/layout.hpp`, and the kernel's own by their names.
pub(super) fn without_folders(text: &str, roots: &[&Path]) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.trim_start().starts_with(".file").then(|| line.split_once('"')).flatten() {
            Some((before, rest)) if rest.contains('"') => {
                let (path, after) = rest.split_once('"').unwrap_or_default();
                out.extend([before, "\"", &relative(Path::new(path), roots), "\"", after]);
            }
            _ => out.push_str(line),
        }
    }
    out
}

/// The path below the first of the folders that it lies in, else its file's name.
fn relative(path: &Path, roots: &[&Path]) -> String {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    let name = below.or_else(|| path.file_name().map(Path::new)).unwrap_or(path);
    name.to_string_lossy().replace('\\', "/")
}

/// Replaces the eight hexadecimal digits that nvcc derives from the absolute path of `file` by `id`. nvcc puts them
/// into the names of entities without linkage: `_INTERNAL_3b8c26aa_6_add_cu_25c0958b`. They occur in symbols, and as
/// bytes in the strings of the line tables.
pub(super) fn with_module_id(text: &str, file: &str, id: &str) -> String {
    let mangled: String = file.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let tail = format!("_{}_{mangled}_", mangled.len());
    let before = |at: usize| text.get(at.checked_sub(8)?..at);
    let is_id = |id: &&str| id.bytes().all(|b| b.is_ascii_hexdigit());
    let Some(found) = text.match_indices(&tail).find_map(|(at, _)| before(at).filter(is_id)) else {
        return text.to_owned();
    };
    let [from, to] = [found, id].map(|id| format!("{id}{tail}"));
    in_strings(&text.replace(&from, &to), from.as_bytes(), to.as_bytes())
}

/// Replaces bytes by equally many others in the strings of the line tables: lines of `.b8 95,90,78`, one string from
/// label to label.
fn in_strings(text: &str, from: &[u8], to: &[u8]) -> String {
    let row = |line: &str| -> Option<Vec<u8>> {
        line.trim().strip_prefix(".b8 ")?.split(',').map(|byte| byte.trim().parse().ok()).collect()
    };
    let mut out = String::with_capacity(text.len());
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for string in lines.chunk_by(|a, b| a.starts_with(".b8 ") && b.starts_with(".b8 ")) {
        let rows: Option<Vec<Vec<u8>>> = string.iter().map(|line| row(line)).collect();
        let found = rows.map(|rows| (rows.iter().map(Vec::len).collect::<Vec<_>>(), rows.concat()));
        let places = |bytes: &[u8]| -> Vec<usize> {
            let windows = bytes.windows(from.len()).enumerate();
            windows.filter(|(_, window)| *window == from).map(|(at, _)| at).collect()
        };
        let Some((lengths, mut bytes)) = found.filter(|(_, bytes)| !places(bytes).is_empty()) else {
            out.extend(string.iter().copied());
            continue;
        };
        for at in places(&bytes) {
            bytes[at..at + from.len()].copy_from_slice(to);
        }
        let mut rest = &bytes[..];
        for length in lengths {
            let (row, after) = rest.split_at(length);
            let numbers: Vec<String> = row.iter().map(u8::to_string).collect();
            out.extend([".b8 ", &numbers.join(","), "\n"]);
            rest = after;
        }
    }
    out
}

/// Without line tables, as nvcc writes PTX without `-lineinfo`.
pub(super) fn without_lines(text: &str) -> String {
    let mut in_section = false;
    let kept = text.split_inclusive('\n').filter(|line| {
        let line = line.trim();
        in_section |= line.starts_with(".section");
        // `.local` is memory.
        let tells = |of: &str| line.strip_prefix(of).is_some_and(|rest| rest.starts_with([' ', '\t']));
        let kept = !in_section && !tells(".loc") && !tells(".file");
        in_section &= !line.ends_with('}');
        kept
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
.version 9.0
.global .align 1 .b8 _ZN35_INTERNAL_3b8c26aa_6_add_cu_25c0958b4cute1E[1];
.visible .entry add()
{
\t.loc 1 7 3
\tmov.u64 %rd1, _ZN35_INTERNAL_3b8c26aa_6_add_cu_25c0958b4cute1E;
\tret;
}
\t.file\t1 \"/tmp/one/add.cu\"
\t.file\t2 \"/opt/cutlass/include/cute/layout.hpp\"
\t.section\t.debug_str
\t{
$L__info_string0:
.b8 95,51,98,56,99,50,54
.b8 97,97,95,54,95,97,100,100,95,99,117,95,0
$L__info_string1:
.b8 95,90,0

\t}
";

    #[test]
    fn texts_of_two_folders_are_equal() {
        let made =
            |text: &str, root: &str| with_module_id(&without_folders(text, &[Path::new(root)]), "add.cu", "00ff00ff");
        let one = made(TEXT, "/opt/cutlass/include");
        // The same with the bytes of `4d691f97`.
        let other = TEXT.replace("3b8c26aa", "4d691f97").replace("/tmp/one", "/home/two").replace("/opt", "/usr");
        let other = other.replace("95,51,98,56,99,50,54\n.b8 97,97", "95,52,100,54,57,49,102\n.b8 57,55");
        assert_eq!(made(&other, "/usr/cutlass/include"), one);
        expect_test::expect![[r#"
            .version 9.0
            .global .align 1 .b8 _ZN35_INTERNAL_00ff00ff_6_add_cu_25c0958b4cute1E[1];
            .visible .entry add()
            {
            	.loc 1 7 3
            	mov.u64 %rd1, _ZN35_INTERNAL_00ff00ff_6_add_cu_25c0958b4cute1E;
            	ret;
            }
            	.file	1 "add.cu"
            	.file	2 "cute/layout.hpp"
            	.section	.debug_str
            	{
            $L__info_string0:
            .b8 95,48,48,102,102,48,48
            .b8 102,102,95,54,95,97,100,100,95,99,117,95,0
            $L__info_string1:
            .b8 95,90,0

            	}
        "#]]
        .assert_eq(&one);
    }

    #[test]
    fn a_text_without_an_id_stays_as_it_is() {
        for text in ["", "_6_add_cu_", "not_hexx_6_add_cu_", &TEXT.replace("add_cu", "sub_cu")] {
            assert_eq!(with_module_id(text, "add.cu", "00ff00ff"), *text);
        }
    }

    #[test]
    fn lines_go_and_code_stays() {
        let bare = without_lines(TEXT);
        assert_eq!(bare.lines().count(), 7, "{bare}");
        assert!([".loc", ".file", ".section", ".b8 9"].iter().all(|word| !bare.contains(word)), "{bare}");
        assert!(bare.contains("mov.u64") && bare.ends_with("\tret;\n}\n"), "{bare}");
        assert_eq!(without_lines(&bare), bare);
    }

    #[test]
    fn memory_of_threads_is_no_line_table() {
        let text = ".visible .entry k()\n{\n\t.local .align 8 .b8 \t__local_depot0[40];\n\t.loc\t1 2 3\n\tret;\n}\n";
        let kept = ".visible .entry k()\n{\n\t.local .align 8 .b8 \t__local_depot0[40];\n\tret;\n}\n";
        assert_eq!(without_lines(text), kept);
    }
}

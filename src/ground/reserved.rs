//! Words that a name in generated text cannot be.

/// Keywords of C++23 and alternative tokens (ISO/IEC 14882:2024, [lex.key] and [lex.digraph]), and keywords of C23 that
/// a header for C cannot use. Macros that stand for a value in the headers of CUDA 13 and glibc. Types and namespaces
/// that the generated text names.
const CXX: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "cute",
    "cutlass",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "intmax_t",
    "intptr_t",
    "linux",
    "long",
    "math_errhandling",
    "max_align_t",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "nullptr_t",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "ptrdiff_t",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "size_t",
    "sizeof",
    "ssize_t",
    "static",
    "static_assert",
    "static_cast",
    "std",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "uintmax_t",
    "uintptr_t",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// Keywords of Rust, those of later editions included (The Rust Reference, "Keywords").
const RUST: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Keywords that Rust does not take as raw identifiers either.
const NEVER_RAW: [&str; 3] = ["crate", "self", "super"];

/// Whether the word means something in C++ or CUDA, so that no member, variable or namespace can be called so.
pub(crate) fn in_cxx(word: &str) -> bool {
    CXX.binary_search(&word).is_ok()
}

/// Whether the word means something in Rust.
pub(crate) fn in_rust(word: &str) -> bool {
    RUST.binary_search(&word).is_ok()
}

/// Whether nothing in Rust can be called so.
pub(crate) fn never_in_rust(word: &str) -> bool {
    NEVER_RAW.contains(&word)
}

/// Every word of either language.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    CXX.iter().chain(RUST).copied()
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_in_order_and_there_once() {
        for list in [super::CXX, super::RUST] {
            assert!(list.is_sorted_by(|a, b| a < b), "{list:?}");
        }
        assert!(super::NEVER_RAW.iter().all(|word| super::in_rust(word)));
    }
}

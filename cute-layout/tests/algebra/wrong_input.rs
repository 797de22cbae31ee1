//! Input that is none.

/// What is wrong, the class, and what is found and where.
pub(crate) fn cases() -> Vec<(String, &'static str, String)> {
    let case = |text: &str, class, found: &str| (text.to_owned(), class, found.to_owned());
    let deep = |open: &str, close: &str| format!("{}4{}", open.repeat(10_000), close.repeat(10_000));
    vec![
        // Integers that do not fit, and sizes that do not.
        case("9223372036854775808:1", "Overflow", "`9223372036854775808:1` at position 0"),
        case("4:-9223372036854775809", "Overflow", "`-9223372036854775809` at position 2"),
        case("(4294967296,4294967296):(1,1)", "Overflow", "the size of (4294967296,4294967296) at position 12"),
        // Ten thousand levels, of tuples, of tilers.
        (deep("(", ")"), "Parse", format!("`{}` at position 65", "(".repeat(24))),
        (deep("[", "]"), "Parse", format!("`{}` at position 33", "[".repeat(24))),
        // Empty tuples.
        case("()", "Parse", "`)` at position 1"),
        case("(4,()):(1,2)", "Parse", "`)):(1,2)` at position 4"),
        case("[]", "Parse", "`]` at position 1"),
        case("", "Parse", "the end of the text at position 0"),
        // Extents that are none.
        case("(4,0):(1,4)", "Extent must be positive", "extent 0 at position 3"),
        case("((2, -3),4):((1,2),6)", "Extent must be positive", "extent -3 at position 5"),
        case("[4:1,(2,0):(1,2)]", "Extent must be positive", "extent 0 at position 8"),
        case("Sw<1,0,3> o 0 o 0:1", "Extent must be positive", "extent 0 at position 16"),
        case("(4,_):(1,4)", "Invalid argument", "_ at position 3"),
        case("(4,8):(1,_)", "Invalid argument", "_ at position 9"),
        // What is no integer.
        case("4.5:1", "Parse", "`.5:1` at position 1"),
        case("(4,2):(1,2e3)", "Parse", "`e3)` at position 10"),
        case("0x10:1", "Parse", "`x10:1` at position 1"),
        case("4:1@256", "Parse", "`256` at position 4"),
        case("Sw<3,0,2>", "Swizzle", "Sw<3,0,2> at position 0"),
        // Text behind the end, and text that ends too early.
        case("4:1 x", "Parse", "`x` at position 4"),
        case("(4,8):(1,4)]", "Parse", "`]` at position 11"),
        case("(4,8):(1,", "Parse", "the end of the text at position 9"),
        case("Sw<3,0,3> o", "Parse", "the end of the text at position 11"),
        // Shapes that do not fit their strides.
        case(" (4,8):(1,4,2)", "Mismatched Ranks", "shape (4,8) and stride (1,4,2) at position 1"),
    ]
}

//! The alignment that a kernel's text declares for its shared memory. An object file does not tell: of a variable without a
//! definition it keeps the name alone, and to large arrays compilers give more than was asked for.

use super::elf;
use crate::emit::SourceFile;

/// What dynamic shared memory may be declared with.
pub(super) const ALIGNMENTS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// The alignment of the shared variable of this symbol: that of its specifier, else of its elements' type. `None` where the text
/// has neither, or a type that is not CUDA's own.
pub(super) fn alignment(files: &[SourceFile], symbol: &str) -> Option<u64> {
    let name = elf::source_name(symbol);
    // Kernels that are compiled together have namespaces of their files' names, and variables of the same names in them.
    let own = |file: &&SourceFile| {
        let stem = file.name.split('.').next().unwrap_or_default();
        symbol.contains(&format!("{}{stem}", stem.len()))
    };
    let one = files.iter().any(|file| own(&file));
    let declared = files.iter().filter(|file| !one || own(file)).flat_map(|file| {
        let text = file.text.as_str();
        text.match_indices("__shared__").filter_map(move |(at, _)| {
            let begin = text[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
            before_name(&text[begin..at + text[at..].find(';')?], name)
        })
    });
    // Of variables that share a name, the least: none is placed better than its declaration says.
    declared.filter_map(specified).min()
}

/// Specifiers and type of `extern __shared__ alignas(16) unsigned char name[]`, where that is the name.
fn before_name<'a>(declaration: &'a str, name: &str) -> Option<&'a str> {
    let of_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = declaration.find('[').unwrap_or(declaration.len());
    let before = declaration[..end].trim_end().strip_suffix(name)?;
    (!before.ends_with(of_name)).then_some(before)
}

fn specified(before: &str) -> Option<u64> {
    let number = |specifier: &str| {
        let after = before.split_once(specifier)?.1.trim_start().strip_prefix('(')?;
        after.split(')').next()?.trim().parse().ok()
    };
    let specifier = ["alignas", "__align__", "aligned"].into_iter().find_map(number);
    specifier.or_else(|| of_type(before)).filter(|found| ALIGNMENTS.contains(found))
}

/// The alignment of the type that is named last (CUDA C++ Programming Guide, "Built-in Vector Types").
fn of_type(before: &str) -> Option<u64> {
    let word = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).find(|word| !word.is_empty())?;
    Some(match word {
        "char" | "bool" | "int8_t" | "uint8_t" | "uchar" => 1,
        "short" | "half" | "__half" | "__nv_bfloat16" | "int16_t" | "uint16_t" | "ushort" => 2,
        "int" | "unsigned" | "float" | "int32_t" | "uint32_t" | "uint" | "char4" | "uchar4" | "half2" => 4,
        "long" | "double" | "int64_t" | "uint64_t" | "size_t" | "float2" | "int2" | "uint2" => 8,
        "float4" | "int4" | "uint4" | "double2" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_says_it() {
        let found = |text: &str| alignment(&[SourceFile { name: "k.cu".into(), text: text.into() }], "smem");
        assert_eq!(found("void k() { extern __shared__ __align__(16) unsigned char smem[]; }"), Some(16));
        assert_eq!(found("extern __shared__ alignas(128) unsigned char smem[];"), Some(128));
        assert_eq!(found("alignas( 8 ) __shared__ char smem[cosize_v<SmemA>];"), Some(8));
        assert_eq!(found("{ __shared__ float smem[32][33]; }"), Some(4));
        assert_eq!(found("extern __shared__ unsigned char\n  smem [];"), Some(1));
        assert_eq!(found("__shared__ double smem;"), Some(8));
        assert_eq!(found("__shared__ Own smem[4];"), None);
        let file = |name: &str, text: &str| SourceFile { name: format!("{name}.cuh"), text: text.into() };
        let both = [file("k_1", "__shared__ float smem[4];"), file("k_22", "alignas(16) __shared__ float smem[4];")];
        let of = |symbol: &str| alignment(&both, symbol);
        assert_eq!(
            (of("_ZZN3k_16kernelEvE4smem"), of("_ZZN4k_226kernelEvE4smem"), of("smem")),
            (Some(4), Some(16), Some(4))
        );
        assert_eq!(found("__shared__ float other_smem[4]; extern __shared__ double smem_b[];"), None);
    }
}

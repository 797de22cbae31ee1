//! As much of ELF as the executor needs: thread-local variables of an object, which are a kernel's shared memory.
//!
//! Layouts are those of the System V ABI, chapters "Object Files" and "Symbol Table", 64-bit little endian.

use std::collections::BTreeSet;

/// Bytes behind each shared variable that belong to none.
pub(super) const REDZONE: u64 = 256;

/// How shared variables are placed: programs that were made with another placement are made anew.
pub(super) const PLACEMENT: &str = "at the declared alignment and no better, a redzone behind each";

const SHT_SYMTAB: u32 = 2;
const SHT_NOBITS: u32 = 8;
const SHF_TLS: u64 = 0x400;
const STT_TLS: u8 = 6;
const SHN_UNDEF: u16 = 0;
/// Bytes of a symbol table entry.
const SYMBOL: usize = 24;

/// A symbol of type `STT_TLS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsSymbol {
    pub(super) name: String,
    /// In a program: bytes from the start of its thread-local storage.
    pub(super) value: u64,
    pub(super) size: u64,
    pub(super) defined: bool,
    /// The number of its section.
    pub(super) section: usize,
}

struct Section {
    /// Where its header stands in the file.
    header: usize,
    kind: u32,
    flags: u64,
    offset: usize,
    size: u64,
    link: u32,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn sections(elf: &[u8]) -> Option<Vec<Section>> {
    // Magic, 64-bit, little endian.
    if elf.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = usize::try_from(u64_at(elf, 40)?).ok()?;
    let entry = usize::from(u16_at(elf, 58)?);
    // Objects with very many sections keep their number in the first section's size.
    let count = match u16_at(elf, 60)? {
        0 => u64_at(elf, table.checked_add(32)?)?,
        few => u64::from(few),
    };
    (0..usize::try_from(count).ok()?)
        .map(|i| {
            let header = table.checked_add(i.checked_mul(entry)?)?;
            Some(Section {
                header,
                kind: u32_at(elf, header.checked_add(4)?)?,
                flags: u64_at(elf, header.checked_add(8)?)?,
                offset: usize::try_from(u64_at(elf, header.checked_add(24)?)?).ok()?,
                size: u64_at(elf, header.checked_add(32)?)?,
                link: u32_at(elf, header.checked_add(40)?)?,
            })
        })
        .collect()
}

/// The thread-local symbols of an object or a program; `None` where the file is not of the expected form.
pub(super) fn tls_symbols(elf: &[u8]) -> Option<Vec<TlsSymbol>> {
    let sections = sections(elf)?;
    let mut found = Vec::new();
    for table in sections.iter().filter(|s| s.kind == SHT_SYMTAB) {
        let strings = sections.get(usize::try_from(table.link).ok()?)?;
        let entries = elf.get(table.offset..table.offset.checked_add(usize::try_from(table.size).ok()?)?)?;
        for symbol in entries.chunks_exact(SYMBOL) {
            if symbol[4] & 0xf != STT_TLS {
                continue;
            }
            let name = strings.offset.checked_add(usize::try_from(u32_at(symbol, 0)?).ok()?)?;
            let name = elf.get(name..)?.split(|&b| b == 0).next()?;
            found.push(TlsSymbol {
                name: String::from_utf8_lossy(name).into_owned(),
                value: u64_at(symbol, 8)?,
                size: u64_at(symbol, 16)?,
                defined: u16_at(symbol, 6)? != SHN_UNDEF,
                section: u16_at(symbol, 6)?.into(),
            });
        }
    }
    Some(found)
}

/// Names of thread-local variables that an object uses and does not define: its dynamic shared memory.
pub(super) fn undefined_tls(object: &[u8]) -> Option<BTreeSet<String>> {
    Some(tls_symbols(object)?.into_iter().filter(|s| !s.defined).map(|s| s.name).collect())
}

fn put(bytes: &mut [u8], at: usize, word: u64) -> Option<()> {
    bytes.get_mut(at..at.checked_add(8)?)?.copy_from_slice(&word.to_le_bytes());
    Some(())
}

/// Gives each thread-local variable of an object a redzone, and an address that is a multiple of the alignment that is
/// declared for its name and of no larger power of two: what the text does not ask for, no GPU promises. With
/// `-fdata-sections` each variable has a section of its own, which takes no space in the file: its size and alignment can
/// simply be changed, and the variable moved on in it.
pub(super) fn place_tls(object: &mut [u8], declared: impl Fn(&str) -> Option<u64>) -> Option<()> {
    let sections = sections(object)?;
    let mut alignments = vec![0; sections.len()];
    for (section, alignment) in sections.iter().zip(&mut alignments) {
        if section.kind == SHT_NOBITS && section.flags & SHF_TLS != 0 {
            *alignment = u64_at(object, section.header + 48)?.max(1);
        }
    }
    for symbol in tls_symbols(object)?.iter().filter(|symbol| symbol.defined) {
        let alignment = alignments.get_mut(symbol.section).filter(|alignment| **alignment > 0)?;
        *alignment = declared(&symbol.name).unwrap_or(*alignment);
    }
    for (section, alignment) in sections.iter().zip(&alignments).filter(|(_, alignment)| **alignment > 0) {
        put(object, section.header + 32, section.size.checked_add(*alignment)?.checked_add(REDZONE)?)?;
        put(object, section.header + 48, alignment.checked_mul(2)?)?;
    }
    for table in sections.iter().filter(|s| s.kind == SHT_SYMTAB) {
        let end = table.offset.checked_add(usize::try_from(table.size).ok()?)?;
        for symbol in (table.offset..end).step_by(SYMBOL) {
            let section = usize::from(u16_at(object, symbol + 6)?);
            let value = u64_at(object, symbol + 8)?;
            let alignment = alignments.get(section).copied().unwrap_or(0);
            put(object, symbol + 8, value.checked_add(alignment)?)?;
        }
    }
    Some(())
}

/// The name that a variable has in the source: `sA` for `_ZZ4gemmE2sA`.
pub(super) fn source_name(symbol: &str) -> &str {
    if !symbol.starts_with("_Z") {
        // GCC numbers local variables of C functions: `sA.0`.
        return symbol.split('.').next().unwrap_or(symbol);
    }
    // Itanium C++ ABI, "Mangling": the name comes last, after its length; discriminators and a closing E may follow.
    let bytes = symbol.as_bytes();
    let mut last = symbol;
    let mut at = 2;
    while at < bytes.len() {
        let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let length = symbol[at..at + digits].parse::<usize>().unwrap_or(0);
        match at.checked_add(digits).and_then(|from| symbol.get(from..from.checked_add(length)?)) {
            Some(name) if length > 0 => {
                last = name;
                at += digits + length;
            }
            _ => at += digits.max(1),
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(source_name("smem"), "smem");
        assert_eq!(source_name("smem.0"), "smem");
        assert_eq!(source_name("_ZZ4gemmE2sA"), "sA");
        assert_eq!(source_name("_ZZN2ns4gemmIfEEvPT_E6A_smem"), "A_smem");
        assert_eq!(source_name("_ZZ4gemmE2sA_0"), "sA");
        assert_eq!(source_name("_ZN2ns4smemE"), "smem");
        assert_eq!(source_name("_Z99"), "_Z99");
    }

    #[test]
    fn what_is_not_elf_is_refused_at_any_length() {
        assert_eq!(tls_symbols(b""), None);
        let mut elf = [0_u8; 80];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        elf[58] = 64;
        elf[60] = 3;
        for length in 0..elf.len() {
            assert_eq!(tls_symbols(&elf[..length]), None, "{length} bytes");
        }
    }
}

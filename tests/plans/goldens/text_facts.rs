//! What a reader checks in an emitted text, read off the text alone.

use std::collections::{BTreeMap, BTreeSet};

use super::emitted::Files;

/// One text: its three files.
pub(super) struct Text<'f> {
    pub(super) header: &'f str,
    pub(super) entry: &'f str,
    pub(super) params: &'f str,
}

/// An entry as the `.cu` declares it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) name: String,
    /// The arguments of `__launch_bounds__`.
    pub(super) bounds: String,
    /// The arguments of `__cluster_dims__`; all 1 where it has none.
    pub(super) cluster: [u32; 3],
}

/// What stands between two texts, each time that both are there, on one line.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Vec<&'t str> {
    let after = text.split(open).skip(1);
    after.filter_map(|rest| rest.lines().next()?.split_once(close)).map(|(inside, _)| inside).collect()
}

fn numbers(list: &str) -> Vec<u64> {
    list.split(',').filter_map(|number| number.trim().parse().ok()).collect()
}

/// How many times each is there: `2 x this, that`.
fn counted(all: impl IntoIterator<Item = String>) -> String {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    all.into_iter().for_each(|one| *times.entry(one).or_default() += 1);
    let text = |(one, n): (String, usize)| if n == 1 { one } else { format!("{n} x {one}") };
    times.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

impl<'f> Text<'f> {
    pub(super) fn of(name: &'f str, files: &'f Files) -> Self {
        let file = |suffix: &str| files.get(&format!("{name}{suffix}")).map_or("", String::as_str);
        Self { header: file(".cuh"), entry: file(".cu"), params: file("_params.h") }
    }

    /// The `.cuh` without its comments.
    fn code(&self) -> String {
        self.header.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn entries(&self) -> Vec<Declared> {
        let declared = |text: &str| {
            let (line, rest) = text.split_once('\n')?;
            let bounds = between(line, "__launch_bounds__(", ")").first().copied().unwrap_or_default().to_owned();
            let cluster = between(line, "__cluster_dims__(", ")").first().map_or(vec![1, 1, 1], |list| numbers(list));
            let cluster: Vec<u32> = cluster.into_iter().filter_map(|n| u32::try_from(n).ok()).collect();
            Some(Declared { name: rest.split('(').next()?.to_owned(), bounds, cluster: cluster.try_into().ok()? })
        };
        self.entry.split("extern \"C\" __global__ void ").skip(1).filter_map(declared).collect()
    }

    /// Bytes of dynamic shared memory that the text asserts its struct has.
    pub(super) fn shared_storage(&self) -> Option<u64> {
        between(self.header, "static_assert(sizeof(SharedStorage) == ", ",").first()?.parse().ok()
    }

    /// Threads and bytes of dynamic shared memory that its host side asks for, by the function that each entry calls.
    pub(super) fn launches(&self) -> Vec<(String, u64, u64)> {
        let call = |inside: &&str| {
            let (function, rest) = inside.split_once("_entry<")?;
            let numbers = numbers(rest);
            Some((function.to_owned(), *numbers.first()?, *numbers.get(1)?))
        };
        between(self.header, "error = launch_entry(", ");").iter().filter_map(call).collect()
    }

    /// `sizeof` of its parameters, and where each field begins.
    pub(super) fn parameters(&self) -> (Option<usize>, Vec<(String, usize)>) {
        let size = between(self.params, "static_assert(sizeof(", ",").first().and_then(|text| text.rsplit(' ').next());
        let field = |text: &&str| {
            let (field, offset) = text.split_once(", ")?.1.split_once(") == ")?;
            Some((field.to_owned(), offset.split(',').next()?.parse().ok()?))
        };
        let offsets = between(self.params, "static_assert(offsetof(", "\"").iter().filter_map(field).collect();
        (size.and_then(|size| size.parse().ok()), offsets)
    }

    /// Registers of a thread that its warps ask for.
    pub(super) fn registers(&self) -> BTreeSet<u64> {
        let code = self.code();
        let asked = ["warpgroup_reg_alloc<", "warpgroup_reg_dealloc<"].map(|name| between(&code, name, ">").join(","));
        asked.iter().flat_map(|list| numbers(list)).collect()
    }

    /// The swizzles of its shared memory, of elements, as the plan writes them: each time that one is there.
    pub(super) fn swizzles(&self) -> Vec<String> {
        let code = self.code();
        let swizzle = |(numbers_of, rest): (&str, &str)| {
            let &[bits, base, shift] = numbers(numbers_of).as_slice() else { return None };
            // With a flag it is one of bytes.
            let flag = rest.strip_prefix(",smem_ptr_flag_bits<").and_then(|bits| bits.split('>').next()?.parse().ok());
            let of_bytes = flag.map_or(0, |bits: u64| u64::from((bits / 8).max(1).ilog2()));
            Some(format!("Sw<{bits},{},{shift}>", base.checked_sub(of_bytes)?))
        };
        code.split("Swizzle<").skip(1).filter_map(|rest| rest.split_once('>')).filter_map(swizzle).collect()
    }

    /// The atoms that it names: `SM80_..`, `SM90_..`, and CuTe's universal ones.
    pub(super) fn atoms(&self) -> Vec<String> {
        let code = self.code();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (mut atoms, mut rest) = (Vec::new(), code.as_str());
        while let Some(start) = rest.find(is_name) {
            rest = &rest[start..];
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let digits = name.strip_prefix("SM").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            if digits && name.contains('_') {
                atoms.push(name.to_owned());
            } else if ["UniversalCopy", "UniversalFMA", "AutoVectorizingCopyWithAssumedAlignment"].contains(&name) {
                atoms.push(format!("{name}{}>", after.split('>').next().unwrap_or_default()));
            }
            rest = after;
        }
        atoms
    }

    /// The lines of the table.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        // Which way the blocks of a cluster lie: no plan says it.
        let clusters = self.entries().into_iter().filter(|entry| entry.cluster != [1, 1, 1]);
        let clusters = clusters.map(|Declared { name, cluster: [x, y, z], .. }| format!("{name} ({x},{y},{z})"));
        let (size, offsets) = self.parameters();
        let code = self.code();
        let times = |what: &str| format!("{} {what}", code.matches(what).count());
        let mut facts = vec![
            ("clusters", clusters.collect::<Vec<_>>().join(", ")),
            ("swizzles", counted(self.swizzles())),
            ("atoms", counted(self.atoms())),
            ("parameters", format!("{} B, {} fields", size.unwrap_or_default(), offsets.len())),
            ("counts", ["static_assert", "__syncthreads()", "asm volatile", "CUTE_UNROLL"].map(times).join(", ")),
        ];
        facts.retain(|(_, value)| !value.is_empty());
        facts
    }
}

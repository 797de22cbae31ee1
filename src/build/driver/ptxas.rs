//! What `ptxas -v` reports about a kernel on each architecture.

use crate::bundle::Resources;

/// The resources of `wanted` on each architecture, in the order of the report.
pub(super) fn resources(wanted: &str, report: &str) -> Vec<Resources> {
    let mut all: Vec<Resources> = Vec::new();
    // Inside the lines of this entry, and of which of its functions.
    let mut ours = false;
    let mut in_entry = false;
    for line in report.lines() {
        if let Some((name, arch)) = entry(line) {
            ours = name == wanted;
            in_entry = false;
            if ours {
                all.push(Resources { entry: name.to_owned(), arch: arch.to_owned(), ..Resources::default() });
            }
        } else if let (true, Some(current)) = (ours, all.last_mut()) {
            if let Some((_, function)) = line.split_once("Function properties for ") {
                in_entry = function.trim() == wanted;
            } else if line.contains("bytes stack frame") {
                frame(line, in_entry, current);
            } else if let Some((_, used)) = line.split_once(": Used ") {
                uses(used, current);
            }
        }
    }
    all
}

/// ptxas's messages C75xx, which tell that tensor cores wait: from `WGMMA` that it does not overlap to `setmaxnreg`
/// that it ignores.
pub(super) fn serialized(report: &str) -> Vec<String> {
    let told = report.lines().filter_map(|line| Some(line[line.find("(C75")?..].trim().to_owned()));
    let mut all: Vec<String> = told.collect();
    all.dedup();
    all
}

/// `Compiling entry function 'name' for 'sm_80'`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let rest = line.split_once("Compiling entry function '")?.1;
    let (name, rest) = rest.split_once("' for '")?;
    Some((name, rest.split_once('\'')?.0))
}

/// `N bytes stack frame, N bytes spill stores, N bytes spill loads`.
fn frame(line: &str, in_entry: bool, current: &mut Resources) {
    for part in line.split(',').map(str::trim) {
        let Some((number, what)) = part.split_once(" bytes ") else { continue };
        let Ok(bytes) = number.parse::<u64>() else { continue };
        match what {
            "spill stores" => current.spill_stores = current.spill_stores.saturating_add(bytes),
            "spill loads" => current.spill_loads = current.spill_loads.saturating_add(bytes),
            "stack frame" if in_entry => current.stack = bytes,
            _ => {}
        }
    }
}

/// `8 registers, used 1 barriers, 512 bytes smem, 376 bytes cmem[0]`.
fn uses(line: &str, current: &mut Resources) {
    for part in line.split(',').map(|part| part.trim().trim_start_matches("used ")) {
        let Some((number, what)) = part.split_once(' ') else { continue };
        let Ok(number) = number.parse::<u64>() else { continue };
        match what {
            "registers" => current.registers = number,
            "barriers" => current.barriers = number,
            "bytes smem" => current.smem = number,
            what if what.starts_with("bytes cmem[") => current.cmem = current.cmem.saturating_add(number),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
ptxas info    : 11 bytes gmem, 88 bytes cmem[4]
ptxas info    : Compiling entry function 'other' for 'sm_80'
ptxas info    : Function properties for other
    96 bytes stack frame, 96 bytes spill stores, 96 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 96 bytes cumulative stack size, 380 bytes cmem[0]
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for _Z4helpi
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 24 registers, used 2 barriers, 16 bytes cumulative stack size, 512 bytes smem, 376 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 20.403 ms
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers
";

    #[test]
    fn messages_of_tensor_cores_that_wait_are_found() {
        assert_eq!(serialized(REPORT), [""; 0]);
        let told = "(C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to k";
        let report = format!("ptxas info    : {told}\n{REPORT}ptxas warning : (C7508) setmaxnreg ignored\n");
        assert_eq!(serialized(&report), [told, "(C7508) setmaxnreg ignored"]);
    }

    #[test]
    fn the_report_of_one_entry_is_read_for_each_architecture() {
        let sm_80 = Resources {
            entry: "k".into(),
            arch: "sm_80".into(),
            registers: 24,
            spill_stores: 12,
            spill_loads: 20,
            stack: 16,
            smem: 512,
            cmem: 384,
            barriers: 2,
            sass: None,
        };
        let sm_90a = Resources { entry: "k".into(), arch: "sm_90a".into(), registers: 10, ..Resources::default() };
        assert_eq!(resources("k", REPORT), [sm_80, sm_90a]);
        assert_eq!(resources("other", REPORT)[0].registers, 255);
        assert_eq!(resources("absent", REPORT), []);
    }
}

//! What is counted of a run is what a profiler counted on an H200: passes over the banks in every experiment of
//! `data/h200_banks.txt`, requests and sectors of kernels of `data/h200_counters.txt`.

use std::collections::BTreeMap;

use cutemplate::exec::Counts;
use cutemplate::exec::ptx::Module;

use crate::banks::{Experiment, Op, SOURCE, SPAN, experiments};

/// A warp that makes one access; lanes whose address is -1 take no part.
fn program(op: Op, bytes: i64) -> String {
    let (ty, registers) = match bytes {
        1 => ("u8", "%r10"),
        2 => ("u16", "%r10"),
        4 => ("u32", "%r10"),
        8 => ("v2.u32", "{%r10, %r11}"),
        _ => ("v4.u32", "{%r10, %r11, %r12, %r13}"),
    };
    let access = match op {
        Op::Load => format!("ld.shared.{ty} {registers}, [%r3];"),
        Op::Store => format!("st.shared.{ty} [%r3], {registers};"),
        Op::Copy => {
            let cache = if bytes == 16 { "cg" } else { "ca" };
            format!("cp.async.{cache}.shared.global [%r3], [%d6], {bytes};")
        }
    };
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 to, .param .u64 from, .param .u64 source)\n{{\n\
         .reg .pred %p;\n.reg .b32 %r<20>;\n.reg .b64 %d<9>;\n.shared .align 1024 .b8 s[{SPAN}];\n\
         ld.param.u64 %d1, [to];\nld.param.u64 %d2, [from];\nld.param.u64 %d3, [source];\nmov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %d4, %r1, 4;\nadd.u64 %d1, %d1, %d4;\nadd.u64 %d2, %d2, %d4;\nld.global.u32 %r2, [%d1];\n\
         ld.global.u32 %r4, [%d2];\ncvt.u64.u32 %d5, %r4;\nadd.u64 %d6, %d3, %d5;\nmov.u32 %r3, s;\nadd.u32 %r3, %r3, %r2;\n\
         setp.ne.u32 %p, %r2, -1;\n@%p {access}\nret;\n}}\n"
    )
}

fn counts(experiment: &Experiment) -> Counts {
    let module = Module::parse(program(experiment.op, experiment.bytes)).expect("PTX");
    let words =
        |values: &mut dyn Iterator<Item = i64>| values.flat_map(|v| (v as u32).to_le_bytes()).collect::<Vec<u8>>();
    let to = words(&mut experiment.addresses.iter().map(|a| a.unwrap_or(-1)));
    let from = words(&mut experiment.sources.iter().copied());
    let source = vec![0; SOURCE as usize];
    let launch = module.launch("k").expect("an entry").block(&[32]);
    let launch = launch.input("to", &to).input("from", &from).input("source", &source).profile(true);
    let report = launch.run().expect("it runs");
    assert!(report.is_clean(), "{}: {}", experiment.name, report.findings[0]);
    let profile = report.profile.expect("a profile");
    let opcode = match experiment.op {
        Op::Load => "ld.shared",
        Op::Store => "st.shared",
        Op::Copy => "cp.async",
    };
    profile.total(opcode)
}

#[test]
fn passes_are_those_that_a_profiler_counts() {
    let rows = include_str!("../data/h200_banks.txt").lines().filter(|line| !line.starts_with('#'));
    let counted: BTreeMap<&str, u64> = rows
        .map(|row| {
            let (name, numbers) = row.split_once(" | ").expect("a name and numbers");
            (name, numbers.split(' ').next().expect("passes").parse().expect("a number"))
        })
        .collect();
    let (mut compared, mut sectors) = (0, 0);
    for experiment in &experiments() {
        let mut addresses: Vec<i64> = experiment.addresses.iter().flatten().copied().collect();
        let lanes = addresses.len() as u64;
        addresses.sort_unstable();
        // Lanes that copy to one place race: of them nothing is claimed.
        if experiment.op == Op::Copy && addresses.windows(2).any(|pair| pair[0] == pair[1]) {
            continue;
        }
        let c = counts(experiment);
        assert_eq!((c.executions, c.lanes, c.shared_requests), (1, lanes, 1), "{}", experiment.name);
        assert_eq!(c.wavefronts, counted[experiment.name.as_str()], "{}", experiment.name);
        compared += 1;
        sectors += c.sectors;
    }
    assert!(compared > 250 && sectors > 0, "{compared}");
}

#[cfg(feature = "build")]
pub(crate) mod kernels {
    use cutemplate::exec::Options;
    use cutemplate::exec::ptx::{Modes, Placement};
    use cutemplate::exec::{Buffer, Job, Profile};
    use cutemplate::plan::Operand;
    use cutemplate::recipe::{ElementwiseApply, Recipe};
    use cutemplate::settings::Settings;
    use cutemplate::units::Elements;
    use cutemplate::view::{Access, ViewLayout, ViewRef};

    use crate::kernels::Kernel;
    use crate::own::{BOUNDED, program, stem, targets};
    use crate::together::ptx;

    fn kernel(settings: &str) -> Kernel {
        let lines = Settings::parse_lines(&settings.replace(';', "\n"));
        let recipe = ElementwiseApply::from_settings(&lines).expect("settings");
        Kernel::new(&stem("counted", settings), 0, &recipe, &targets()).expect("a right recipe")
    }

    /// All whose counts are compared.
    pub(crate) fn counted() -> impl Iterator<Item = Kernel> {
        COUNTED.iter().map(|counted| kernel(counted.split_once(" | ").expect("settings and a problem").0))
    }

    fn profile(settings: &str, problem: &str, ld: Option<i64>) -> Profile {
        let kernel = kernel(settings);
        let shape: Vec<i64> = problem.split('x').map(|e| e.parse().expect("an extent")).collect();
        // Every tensor begins where a driver's allocation would.
        let operands = kernel.plan.operands();
        let layouts = operands.iter().map(|o| o.layout(&shape, ld).expect("a layout"));
        let tensors: Vec<(ViewLayout, Vec<u8>, usize)> = (layouts.zip(operands))
            .map(|(layout, operand)| {
                let bytes = (layout.span().expect("small") * operand.dtype.bytes().0) as usize;
                let storage = vec![0_u8; bytes + 256];
                let start = storage.as_ptr().align_offset(256);
                (layout, storage, start)
            })
            .collect();
        let view = |(operand, (layout, storage, start)): (&Operand, &(ViewLayout, Vec<u8>, usize))| ViewRef {
            dtype: operand.dtype,
            ptr: storage[*start..].as_ptr() as u64,
            available: Elements(layout.span().expect("small")),
            layout: *layout,
            access: operand.access,
        };
        let views: Vec<ViewRef> = operands.iter().zip(&tensors).map(view).collect();
        let binding = kernel.plan.bind_with(&views, &[]).expect("a launch");
        let mut tensors = tensors;
        let buffers = tensors.iter_mut().zip(&views).map(|((_, storage, start), view)| {
            let bytes = (view.available.0 * view.dtype.bytes().0) as usize;
            match view.access {
                Access::Read => Buffer::Read(&storage[*start..*start + bytes]),
                Access::Write | Access::ReadWrite => Buffer::Write(&mut storage[*start..*start + bytes]),
            }
        });
        let options = Options { profile: true, placement: Placement::Driver, modes: Modes::PLAIN, ..BOUNDED };
        let program = program(&kernel, ptx(&kernel)).with(options);
        let report = program.run(&Job::from(&binding), &mut buffers.collect::<Vec<_>>()).expect("it runs");
        assert!(report.is_clean(), "{report}");
        report.profile.expect("a profile")
    }

    /// One of each way in which the family moves elements.
    const COUNTED: [&str; 3] = [
        "expr=a + b;dtype=f32;variant=naive | 515x777",
        "expr=a + b;dtype=f32;variant=vectorized | 515x777",
        "expr=a + b;dtype=f16;variant=naive | 1000x1003",
    ];

    #[test]
    fn requests_and_sectors_are_those_that_a_profiler_counts() {
        let mut compared = 0;
        for row in include_str!("../data/h200_counters.txt").lines() {
            if !COUNTED.iter().any(|c| row.starts_with(c)) {
                continue;
            }
            let fields: Vec<&str> = row.split('|').map(str::trim).collect();
            let numbers: Vec<u64> = fields[3].split_whitespace().map(|n| n.parse().expect("a number")).collect();
            let [loads, load_sectors, stores, store_sectors, _, shared_stored, shared_loads, shared_stores] =
                numbers[..]
            else {
                panic!("eight numbers: {row}")
            };
            let found = profile(fields[0], fields[1], fields[2].parse().ok());
            let (load, store) = (found.total("ld.global"), found.total("st.global"));
            assert_eq!((load.requests, load.sectors), (loads, load_sectors), "loads of {row}");
            // ptxas stores 16 bytes of small elements as two halves, some or all of them: both touch every sector.
            if fields[0].contains("naive") {
                assert_eq!((store.requests, store.sectors), (stores, store_sectors), "stores of {row}");
            } else {
                assert!((store.requests..=2 * store.requests).contains(&stores), "{store} of {row}");
                assert!((store.sectors..=2 * store.sectors).contains(&store_sectors), "{store} of {row}");
            }
            let (load, store) = (found.total("ld.shared"), found.total("st.shared"));
            assert_eq!((load.shared_requests, store.shared_requests), (shared_loads, shared_stores), "{row}");
            assert_eq!(store.wavefronts, shared_stored, "{row}");
            compared += 1;
            assert!(!found.by_source().is_empty(), "the text has line tables");
        }
        assert_eq!(compared, COUNTED.len());
    }
}

//! What the stand-in's log says of order: which work on memory is behind which, by streams, events and waits.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

/// Writes into the log what the next work of the driver does: it reads and writes these buffers.
pub(crate) fn note(reads: &[usize], writes: &[usize]) {
    let words = |buffers: &[usize]| buffers.iter().map(|b| format!(" {b}")).collect::<String>();
    let path = std::env::var_os("STAND_IN_LOG").expect("set by the parent");
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("the log");
    writeln!(log, "# reads{} writes{}", words(reads), words(writes)).expect("writable");
}

/// Work on buffers: a launch, a copy, or giving memory back, which counts as a write.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// The line of the log, without parameters.
    pub(crate) line: String,
    reads: BTreeSet<usize>,
    writes: BTreeSet<usize>,
    /// All work that is done before this begins.
    behind: BTreeSet<usize>,
}

impl Work {
    fn conflicts(&self, other: &Work) -> bool {
        let meets = |a: &BTreeSet<usize>, b: &BTreeSet<usize>| !a.is_disjoint(b);
        meets(&self.writes, &other.writes) || meets(&self.writes, &other.reads) || meets(&self.reads, &other.writes)
    }
}

/// All noted work, in the order of the calls.
pub(crate) struct Order(pub(crate) Vec<Work>);

impl Order {
    /// Reads the log.
    pub(crate) fn of(log: &str) -> Order {
        let (mut work, mut next) = (Vec::<Work>::new(), None);
        let (mut streams, mut events) = (BTreeMap::<String, BTreeSet<usize>>::new(), BTreeMap::new());
        let mut host = BTreeSet::new();
        for line in log.lines() {
            let line = line.split(" params").next().unwrap_or(line);
            if let Some(noted) = line.strip_prefix("# reads") {
                let (reads, writes) = noted.split_once(" writes").expect("both");
                let numbers = |text: &str| text.split_whitespace().map(|n| n.parse().expect("a number")).collect();
                next = Some((numbers(reads), numbers(writes)));
                continue;
            }
            let word = |name: &str| line.split_once(name)?.1.split_whitespace().next().map(str::to_owned);
            let (stream, event) = (word("stream "), word("event "));
            match (line.split(' ').next().unwrap_or_default(), stream, event) {
                ("record", Some(stream), Some(event)) => {
                    events.insert(event, streams.entry(stream).or_default().clone());
                }
                ("wait", Some(stream), Some(event)) => {
                    streams.entry(stream).or_default().extend(events.get(&event).into_iter().flatten());
                }
                ("synchronize", None, Some(event)) => host.extend(events.get(&event).into_iter().flatten()),
                ("synchronize", ..) if line == "synchronize all" => host.extend(0..work.len()),
                ("synchronize", ..) => {
                    host.extend(streams.get(line.trim_start_matches("synchronize ")).into_iter().flatten());
                }
                ("launch" | "copy" | "set" | "free", Some(stream), _) => {
                    let Some((reads, writes)) = next.take() else { continue };
                    let done = streams.entry(stream).or_default();
                    done.extend(&host);
                    work.push(Work { line: line.to_owned(), reads, writes, behind: done.clone() });
                    done.insert(work.len() - 1);
                }
                _ => {}
            }
        }
        Order(work)
    }

    /// Whether the second is behind the first.
    pub(crate) fn is_behind(&self, first: usize, second: usize) -> bool {
        self.0[second].behind.contains(&first)
    }

    /// Work on the same memory, one of which writes it, that may run at once.
    pub(crate) fn races(&self) -> Vec<String> {
        let pairs = (0..self.0.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
        let races = pairs.filter(|&(a, b)| self.0[a].conflicts(&self.0[b]) && !self.is_behind(a, b));
        races.map(|(a, b)| format!("{a}: {} | {b}: {}", self.0[a].line, self.0[b].line)).collect()
    }
}

//! What an input may cost: a thread that ends the process where one input takes too long, and a count of live memory.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::memory;

/// An input that takes longer has hung.
const HANG: Duration = Duration::from_secs(20);

/// The longest that an answer may take on a processor, on the best of [`TRIES`].
const SLOW: Duration = Duration::from_secs(1);
const TRIES: usize = 4;

/// The most memory that an input may hold at one time.
const MOST_BYTES: usize = 256 << 20;

/// The time that this thread has had on a processor, or on a clock where the system does not tell: a busy machine makes nothing slower.
fn spent(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// What is being run, and since when.
type Running = Arc<Mutex<Option<(String, Instant)>>>;

/// Watches inputs one after the other.
pub(crate) struct Watch {
    running: Running,
    /// The slowest input.
    pub(crate) slowest: (Duration, String),
    /// The most memory that an input held, in bytes.
    pub(crate) largest: (usize, String),
}

impl Watch {
    pub(crate) fn start() -> Watch {
        let running: Running = Arc::default();
        let seen = Arc::downgrade(&running);
        std::thread::spawn(move || {
            while let Some(running) = seen.upgrade() {
                let now = running.lock().unwrap_or_else(PoisonError::into_inner).clone();
                drop(running);
                if let Some((input, since)) = now
                    && since.elapsed() > HANG
                {
                    // A test cannot be stopped from outside; the process can.
                    eprintln!("no answer after {HANG:?}: {input:?}");
                    std::process::abort();
                }
                std::thread::sleep(HANG / 20);
            }
        });
        Watch { running, slowest: (Duration::ZERO, String::new()), largest: (0, String::new()) }
    }

    fn set(&self, now: Option<(String, Instant)>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Runs one input; panics where it is slow each time or holds too much memory.
    pub(crate) fn run<T>(&mut self, input: &str, run: impl Fn(&str) -> T) -> T {
        let shown = || input.chars().take(2000).collect::<String>();
        let since = Instant::now();
        let before = spent(since);
        self.set(Some((shown(), since)));
        let (result, held) = memory::held(|| std::panic::catch_unwind(AssertUnwindSafe(|| run(input))));
        let result = result.unwrap_or_else(|panic| {
            eprintln!("the input was {:?}", shown());
            std::panic::resume_unwind(panic)
        });
        let mut took = spent(since).saturating_sub(before);
        for _ in 1..TRIES {
            if took <= SLOW {
                break;
            }
            let again = Instant::now();
            let before = spent(again);
            self.set(Some((shown(), again)));
            run(input);
            took = took.min(spent(again).saturating_sub(before));
        }
        self.set(None);
        assert!(took <= SLOW, "{took:?} for {:?}", shown());
        assert!(held <= MOST_BYTES, "{held} bytes for {:?}", shown());
        if took > self.slowest.0 {
            self.slowest = (took, shown());
        }
        if held > self.largest.0 {
            self.largest = (held, shown());
        }
        result
    }
}

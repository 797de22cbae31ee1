//! How many compilers may run at once.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use cutlass_sys::Env;
use jobserver::{Acquired, Client, HelperThread};

/// What one nvcc was seen to need at most for a CuTe kernel, in bytes.
const MEMORY_PER_JOB: u64 = 5 << 30;

/// Cores, bounded by memory and by `NUM_JOBS`, which cargo sets for build scripts; at least one.
pub(super) fn limit(env: &Env) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = env.get("NUM_JOBS").and_then(|v| v.to_str()?.parse().ok());
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok();
    bounded(cores, meminfo.as_deref().and_then(available), wanted)
}

fn bounded(cores: usize, memory: Option<u64>, wanted: Option<usize>) -> usize {
    let by_memory = memory.map_or(cores, |bytes| usize::try_from(bytes / MEMORY_PER_JOB).unwrap_or(cores));
    cores.min(by_memory).min(wanted.unwrap_or(cores)).max(1)
}

/// `MemAvailable` of Linux's `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Places for compilers: whoever starts one takes a place before, and waits while all are taken. Where cargo shares out its jobs, a
/// build script has one of its own, and every further compiler needs one of cargo's.
#[derive(Debug)]
pub(super) struct Places {
    all: usize,
    shared: Arc<Shared>,
    jobs: Option<HelperThread>,
}

#[derive(Debug)]
struct Shared {
    free: Mutex<Free>,
    changed: Condvar,
}

/// Places that nobody has taken.
#[derive(Debug)]
struct Free {
    places: usize,
    own_job: bool,
    lent: Vec<Acquired>,
    /// Who has a place and waits for a job.
    waiting: usize,
    /// A jobserver that is gone stops no build.
    jobserver_is_gone: bool,
}

/// A place that is taken; given back when it is dropped.
pub(super) struct Place<'p> {
    of: &'p Places,
    job: Job,
}

/// What lets a compiler run.
enum Job {
    /// Nobody counts.
    Uncounted,
    /// The build script's own.
    Own,
    /// One of cargo's, which goes back when it is dropped.
    Lent { _token: Acquired },
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a token that cargo lends; a token that nobody waits for any more goes back at once.
    fn lend(&self, token: io::Result<Acquired>) {
        let mut free = self.lock();
        match token {
            Ok(token) if free.waiting > free.lent.len() => free.lent.push(token),
            Ok(_) => {}
            Err(_) => free.jobserver_is_gone = true,
        }
        self.changed.notify_all();
    }
}

impl Free {
    fn job(&mut self) -> Option<Job> {
        if std::mem::take(&mut self.own_job) {
            return Some(Job::Own);
        }
        let lent = self.lent.pop().map(|token| Job::Lent { _token: token });
        lent.or(self.jobserver_is_gone.then_some(Job::Uncounted))
    }
}

impl Places {
    /// This many places, for as many jobs as there are.
    pub(super) fn new(all: usize, jobs: Option<Client>) -> Places {
        let free = Free { places: all, own_job: true, lent: Vec::new(), waiting: 0, jobserver_is_gone: false };
        let shared = Arc::new(Shared { free: Mutex::new(free), changed: Condvar::new() });
        let lend = Arc::clone(&shared);
        // Without a thread nobody counts.
        let jobs = jobs.and_then(|jobs| jobs.into_helper_thread(move |token| lend.lend(token)).ok());
        Places { all, shared, jobs }
    }

    /// As many as this environment allows.
    pub(super) fn of(env: &Env) -> Places {
        Places::new(limit(env), cargos_jobs(env))
    }

    pub(super) fn all(&self) -> usize {
        self.all
    }

    pub(super) fn take(&self) -> Place<'_> {
        let changed = &self.shared.changed;
        let free = self.shared.lock();
        let mut free = changed.wait_while(free, |free| free.places == 0).unwrap_or_else(PoisonError::into_inner);
        free.places -= 1;
        let Some(jobs) = &self.jobs else { return Place { of: self, job: Job::Uncounted } };
        if let Some(job) = free.job() {
            return Place { of: self, job };
        }
        free.waiting += 1;
        jobs.request_token();
        let job = loop {
            free = changed.wait(free).unwrap_or_else(PoisonError::into_inner);
            if let Some(job) = free.job() {
                break job;
            }
        };
        free.waiting -= 1;
        Place { of: self, job }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut free = self.of.shared.lock();
        free.places += 1;
        free.own_job |= matches!(self.job, Job::Own);
        self.of.shared.changed.notify_all();
    }
}

/// The jobserver of the cargo, or make, that runs this process.
fn cargos_jobs(env: &Env) -> Option<Client> {
    const VARIABLE: &str = "CARGO_MAKEFLAGS";
    static CLIENT: OnceLock<Option<Client>> = OnceLock::new();
    // It names what this process inherited: a made-up environment has none.
    let is_ours = env.get(VARIABLE).is_some_and(|value| std::env::var_os(VARIABLE).as_deref() == Some(value));
    // SAFETY: cargo leaves the descriptors that its variable names open for build scripts, and that they are pipes is checked.
    is_ours.then(|| CLIENT.get_or_init(|| unsafe { Client::from_env_ext(true) }.client.ok()).clone())?
}

/// Calls `work` for each item, on at most `limit` threads; results in the order of the items.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], limit: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..limit.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
                {
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn jobs_are_bounded_by_cores_memory_and_wish() {
        assert_eq!(bounded(8, Some(64 * GIB), None), 8);
        assert_eq!(bounded(8, Some(12 * GIB), None), 2);
        assert_eq!(bounded(8, Some(GIB), None), 1);
        assert_eq!(bounded(8, None, Some(3)), 3);
        assert_eq!(bounded(2, None, Some(16)), 2);
        assert_eq!(bounded(2, None, Some(0)), 1);
        assert_eq!(available("MemTotal: 8 kB\nMemAvailable:       4 kB\n"), Some(4096));
    }

    /// How many had a place at once, at most.
    fn most_at_once(places: &Places) -> usize {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..12).collect();
        in_parallel(&items, 8, |_| {
            let _place = places.take();
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(5));
            running.fetch_sub(1, Ordering::SeqCst);
        });
        let free = places.shared.lock();
        assert!(free.places == places.all && free.own_job && free.waiting == 0, "{free:?}");
        most.into_inner()
    }

    /// So many can have a place at once, and no more do.
    fn serves(places: &Places, expected: usize) {
        drop((0..expected).map(|_| places.take()).collect::<Vec<_>>());
        assert!(most_at_once(places) <= expected);
    }

    #[test]
    fn no_more_places_are_taken_than_there_are() {
        serves(&Places::new(3, None), 3);
        serves(&Places::new(1, None), 1);
    }

    #[test]
    fn a_jobserver_lends_every_job_but_the_first() {
        let jobs = |tokens| Some(Client::new(tokens).expect("a pipe"));
        serves(&Places::new(8, jobs(0)), 1);
        serves(&Places::new(8, jobs(2)), 3);
        serves(&Places::new(2, jobs(5)), 2);
        let client = Client::new(2).expect("a pipe");
        let places = Places::new(8, Some(client.clone()));
        most_at_once(&places);
        drop(places);
        assert_eq!(client.available().expect("a pipe"), 2, "all are given back");
    }

    #[test]
    fn no_more_run_at_once_than_are_allowed() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..40).collect();
        let results = in_parallel(&items, 3, |item| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            item * 2
        });
        assert_eq!(results, items.iter().map(|i| i * 2).collect::<Vec<_>>());
        assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
        assert!(in_parallel(&[0_u8; 0], 3, |i| *i).is_empty());
    }
}

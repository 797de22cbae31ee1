//! Contract: whatever streams launches, copies and drops are on, and in whatever order streams and memory are dropped, no
//! work touches memory that other work may still write, and no memory is given back before the last work on it. Readers
//! do not wait for each other.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use std::sync::Arc;

use crate::driver::{artifact, with_driver};
use crate::foreign::{handle, of_raw};
use crate::kernels::Random;
use crate::order::{Order, note};
use cutemplate::launch::cudarc::driver::{CudaSlice, CudaStream};
use cutemplate::launch::{Gpu, Kernel};
use cutemplate::recipe::ElementwiseAdd;
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::view::{View, ViewMut};

struct Bench {
    gpu: Gpu,
    kernel: Kernel<ElementwiseAdd>,
}

impl Bench {
    fn new() -> Bench {
        let gpu = of_raw(1).expect("the stand-in");
        let kernel = Kernel::load(&gpu, &artifact()).expect("loads");
        Bench { gpu, kernel }
    }

    fn stream(&self) -> Arc<CudaStream> {
        self.gpu.context().new_stream().expect("a stream")
    }

    /// Launches C = A + B, buffers that have these numbers.
    fn launch(&self, stream: &Arc<CudaStream>, a: &Buffer, b: &Buffer, c: &mut Buffer) {
        note(&[a.0, b.0], &[c.0]);
        let args = ElementwiseAddArgs {
            a: View::device(&a.1, [2, 3], 3),
            b: View::device(&b.1, [2, 3], 3),
            c: ViewMut::device(&mut c.1, [2, 3], 3),
        };
        self.kernel.launch(stream, args).expect("launches");
    }
}

/// Memory with a number. Dropping it is work on it.
struct Buffer(usize, CudaSlice<f32>);

impl Buffer {
    fn new(number: usize, stream: &Arc<CudaStream>) -> Buffer {
        note(&[], &[number]);
        Buffer(number, stream.alloc_zeros::<f32>(6).expect("memory"))
    }

    fn set(&mut self, stream: &Arc<CudaStream>) {
        note(&[], &[self.0]);
        stream.memset_zeros(&mut self.1).expect("set");
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        note(&[], &[self.0]);
    }
}

/// Runs it on the stand-in.
fn order(test: &str, body: impl FnOnce(&Bench)) -> Order {
    let done = with_driver(&format!("streams::{test}"), &[], || {
        body(&Bench::new());
        String::new()
    });
    Order::of(&done.log)
}

#[test]
fn memory_that_two_streams_read_is_written_and_dropped_behind_both() {
    let found = order("memory_that_two_streams_read_is_written_and_dropped_behind_both", |bench| {
        let [own, first, second, third] = [(); 4].map(|()| bench.stream());
        let mut shared = Buffer::new(0, &own);
        let [mut one, mut two] = [(1, &first), (2, &second)].map(|(n, s)| Buffer::new(n, s));
        let other = Buffer::new(3, &own);
        // Works 4 and 5 read, 6 writes.
        bench.launch(&first, &shared, &other, &mut one);
        bench.launch(&second, &shared, &other, &mut two);
        bench.launch(&third, &one, &two, &mut shared);
        bench.launch(&first, &shared, &other, &mut one);
        bench.launch(&second, &shared, &other, &mut two);
        shared.set(&third);
        bench.launch(&first, &shared, &other, &mut one);
        bench.launch(&second, &shared, &other, &mut two);
        drop(shared);
    });
    assert_eq!(found.races(), [""; 0]);
    assert!(!found.is_behind(4, 5), "readers wait for each other");
}

#[test]
fn memory_is_given_back_behind_a_launch_on_a_stream_that_is_gone() {
    let found = order("memory_is_given_back_behind_a_launch_on_a_stream_that_is_gone", |bench| {
        let own = bench.gpu.stream();
        let [a, b] = [0, 1].map(|number| Buffer::new(number, &own));
        let mut c = Buffer::new(2, &own);
        let temporary = bench.stream();
        bench.launch(&temporary, &a, &b, &mut c);
        drop(temporary);
        c.set(&own);
        drop((a, b, c));
    });
    assert_eq!(found.races(), [""; 0]);
    assert_eq!(found.0.len(), 8);
}

#[test]
fn a_reader_and_a_writer_wait_for_each_other() {
    let found = order("a_reader_and_a_writer_wait_for_each_other", |bench| {
        let [own, reading, writing] = [(); 3].map(|()| bench.stream());
        let mut shared = Buffer::new(0, &own);
        let [a, b] = [1, 2].map(|number| Buffer::new(number, &own));
        let mut out = Buffer::new(3, &reading);
        for _ in 0..2 {
            bench.launch(&reading, &shared, &a, &mut out);
            bench.launch(&writing, &a, &b, &mut shared);
        }
        drop((reading, writing, shared, out));
    });
    assert_eq!(found.races(), [""; 0]);
}

/// Two pipelines whose memory comes from a third stream.
#[test]
fn streams_that_share_nothing_stay_concurrent() {
    let found = order("streams_that_share_nothing_stay_concurrent", |bench| {
        let own = bench.gpu.stream();
        let streams = [(); 2].map(|()| bench.stream());
        let mut buffers = [0, 3].map(|first| [0, 1, 2].map(|n| Buffer::new(first + n, &own)));
        for _ in 0..3 {
            for (stream, [a, b, c]) in streams.iter().zip(&mut buffers) {
                bench.launch(stream, a, b, c);
                bench.launch(stream, c, b, a);
            }
        }
    });
    assert_eq!(found.races(), [""; 0]);
    let launches: Vec<usize> = (0..found.0.len()).filter(|i| found.0[*i].line.starts_with("launch")).collect();
    let stream = |i: usize| found.0[i].line.rsplit(' ').next().map(str::to_owned);
    for (first, second) in launches.iter().flat_map(|a| launches.iter().map(move |b| (*a, *b))) {
        assert!(
            first >= second || stream(first) == stream(second) || !found.is_behind(first, second),
            "{first} {second}"
        );
    }
}

/// Streams of a random history: the context's own, one that is borrowed, and those that come and go.
struct History<'b> {
    bench: &'b Bench,
    lasting: Vec<Arc<CudaStream>>,
    temporary: Vec<Arc<CudaStream>>,
    buffers: Vec<Buffer>,
    /// Buffers so far: each has a number of its own.
    made: usize,
    random: Random,
}

impl History<'_> {
    fn any_stream(&mut self) -> Arc<CudaStream> {
        let all: Vec<_> = self.lasting.iter().chain(&self.temporary).cloned().collect();
        self.random.pick(&all)
    }

    fn step(&mut self) {
        match self.random.weighted(&[8, 2, 3, 3, 2, 2]) {
            0 => {
                let stream = self.any_stream();
                self.random.shuffle(&mut self.buffers);
                let (written, read) = self.buffers.split_first_mut().expect("some");
                self.bench.launch(&stream, &read[0], &read[self.random.below(2)], written);
            }
            1 if self.temporary.len() < 3 => self.temporary.push(self.bench.stream()),
            // Memory lives on, wherever its last launch was.
            2 if !self.temporary.is_empty() => {
                let at = self.random.below(self.temporary.len());
                drop(self.temporary.swap_remove(at));
            }
            3 => {
                let (at, stream) = (self.random.below(self.buffers.len()), self.any_stream());
                drop(self.buffers.swap_remove(at));
                self.buffers.push(Buffer::new(self.made, &stream));
                self.made += 1;
            }
            // What cudarc does by itself, it orders by the memory's own stream.
            4 => {
                let at = self.random.below(self.buffers.len());
                let own = self.buffers[at].1.stream().clone();
                self.buffers[at].set(&own);
            }
            _ => {
                let buffer = &self.buffers[self.random.below(self.buffers.len())];
                note(&[buffer.0], &[]);
                buffer.1.stream().clone_dtoh(&buffer.1).expect("copied");
            }
        }
    }
}

#[test]
fn no_history_of_streams_and_memory_races() {
    let found = order("no_history_of_streams_and_memory_races", |bench| {
        let mut made = 0;
        for seed in 0..60 {
            let own = bench.gpu.stream();
            // SAFETY: the stand-in has no streams.
            let borrowed = unsafe { bench.gpu.borrow_stream(handle(900)) };
            let buffers = (made..made + 4).map(|number| Buffer::new(number, &own)).collect();
            let lasting = vec![own, borrowed];
            let random = Random::new(0x57e, seed);
            let mut history = History { bench, lasting, temporary: Vec::new(), buffers, made: made + 4, random };
            (0..30).for_each(|_| history.step());
            made = history.made;
            drop(history);
            bench.gpu.context().synchronize().expect("waits");
        }
    });
    assert!(found.0.len() > 1000, "{}", found.0.len());
    assert_eq!(found.races(), [""; 0]);
}

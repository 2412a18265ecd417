//! Counts every instruction of the calls of a random run: a sample, beside the bound that the machine code shows.
//!
//! The processor's trap flag is set around each call; each instruction then raises a trap, whose handler counts. The cost of the counting
//! frame is measured with an empty call and subtracted. Each instruction is a signal, of about 20 microseconds: 20000
//! calls take less than a minute, ten million would take hours. x86-64 Linux only.
//!
//! Prints one JSON record a run: how full the heap is, the most instructions of any call and the mean, for each kind of call. Fails if
//! a call of a kind passes its bound, where that holds: not with larger alignments, and not with memory exhausted, because the last
//! resort then checks blocks one by one.

use freestone_testkit::ops::SplitMix;
use freestone_tlsf::{Bounded, Policy, Tlsf};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const ALLOCATE_BOUND: u64 = 120;
const DEALLOCATE_BOUND: u64 = 120;

static STEPS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_step(_signal: i32) {
    STEPS.store(STEPS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

fn catch_steps() {
    // SAFETY: a `sigaction` is a structure of integers and a pointer that may be null; zeros are one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_step as extern "C" fn(i32) as usize;
    // SAFETY: the handler touches one atomic.
    assert_eq!(unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut()) }, 0);
}

/// Runs `call` with the trap flag set; returns how many instructions were trapped.
#[inline(always)]
fn count(call: impl FnOnce()) -> u64 {
    let before = STEPS.load(Ordering::Relaxed);
    // SAFETY: only the trap flag changes, and the handler is installed.
    unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    call();
    // SAFETY: as above.
    unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
    STEPS.load(Ordering::Relaxed) - before
}

/// Memory for one heap, never given back.
fn region(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    let words = vec![MaybeUninit::<u128>::uninit(); bytes / 16].leak();
    // SAFETY: the same memory, as bytes.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), bytes) }
}

type Heap<P> = Tlsf<'static, P>;

/// The two calls of a kind of heap, each a function of its own.
struct Calls<H> {
    allocate: extern "C" fn(&mut H, usize, usize) -> Option<NonNull<u8>>,
    deallocate: extern "C" fn(&mut H, NonNull<u8>) -> bool,
}

#[inline(never)]
extern "C" fn allocate_bounded(heap: &mut Heap<Bounded>, bytes: usize, align: usize) -> Option<NonNull<u8>> {
    heap.allocate(bytes, align).ok()
}

#[inline(never)]
extern "C" fn deallocate_bounded(heap: &mut Heap<Bounded>, block: NonNull<u8>) -> bool {
    // SAFETY: a block of this heap, given back once.
    unsafe { heap.deallocate(block) }.is_ok()
}

#[inline(never)]
extern "C" fn nothing<P>(_heap: &mut Heap<P>, _bytes: usize, _align: usize) -> Option<NonNull<u8>> {
    None
}

/// The counts of one kind of call.
#[derive(Default)]
struct Counts {
    most: u64,
    sum: u64,
    calls: u64,
}

impl Counts {
    fn add(&mut self, count: u64) {
        self.most = self.most.max(count);
        self.sum += count;
        self.calls += 1;
    }
    fn json(&self) -> String {
        format!(
            r#"{{"most":{},"mean":{:.1},"calls":{}}}"#,
            self.most,
            self.sum as f64 / self.calls.max(1) as f64,
            self.calls
        )
    }
}

/// How full the heap is, and of what.
struct Load {
    name: &'static str,
    region_bytes: usize,
    most_align_log2: usize,
}

/// `n_ops` calls on a heap, with 4096 blocks of 16 to 4111 bytes at most; the most instructions of an allocation and of a deallocation.
fn run<P: Policy>(load: &Load, calls: &Calls<Heap<P>>, n_ops: usize) -> (u64, u64) {
    let mut heap = Heap::<P>::with_policy();
    heap.add_region(region(load.region_bytes)).expect("a valid region");
    let empty = black_box(nothing::<P> as extern "C" fn(&mut Heap<P>, usize, usize) -> Option<NonNull<u8>>);
    let frame = count(|| {
        black_box(empty(&mut heap, black_box(16), black_box(16)));
    });
    let (mut allocations, mut refusals, mut frees) = (Counts::default(), Counts::default(), Counts::default());
    let mut random = SplitMix(0xB0_07);
    let mut blocks = vec![None; 4096];
    // Half of the slots are in use before the first call that is counted.
    for slot in blocks.iter_mut().step_by(2) {
        *slot = heap.allocate(16 + random.below(4096), 16).ok();
    }
    for _ in 0..n_ops {
        let slot = &mut blocks[random.below(4096)];
        let steps;
        if let Some(block) = slot.take() {
            let mut freed = false;
            steps = count(|| freed = (calls.deallocate)(&mut heap, block));
            assert!(freed, "a block of this heap");
            frees.add(steps.saturating_sub(frame));
        } else {
            let (bytes, align) = (16 + random.below(4096), 1 << random.below(load.most_align_log2 + 1));
            steps = count(|| *slot = (calls.allocate)(&mut heap, bytes, align));
            let counts = if slot.is_some() { &mut allocations } else { &mut refusals };
            counts.add(steps.saturating_sub(frame));
        }
    }
    heap.check().expect("a whole heap");
    println!(
        r#"{{"load":"{}","most_align":{},"allocate":{},"refuse":{},"deallocate":{}}}"#,
        load.name,
        1 << load.most_align_log2,
        allocations.json(),
        refusals.json(),
        frees.json()
    );
    (allocations.most, frees.most)
}

pub(super) fn main(n_ops: usize) {
    catch_steps();
    let standard = Calls { allocate: super::tlsf_bound_allocate, deallocate: super::tlsf_bound_deallocate };
    let bounded = Calls { allocate: allocate_bounded, deallocate: deallocate_bounded };
    let load = |name, region_bytes, most_align_log2| Load { name, region_bytes, most_align_log2 };
    let ample = run(&load("ample", 64 << 20, 4), &standard, n_ops / 2);
    let full = run(&load("80 %", 11 << 19, 4), &standard, n_ops / 4);
    let _reported_only = run(&load("exhausted, policy Bounded", 3 << 20, 4), &bounded, n_ops / 8);
    let _reported_only = run(&load("ample, alignments to 256", 64 << 20, 8), &standard, n_ops / 8);
    assert!(
        ample.0.max(full.0) <= ALLOCATE_BOUND && ample.1.max(full.1) <= DEALLOCATE_BOUND,
        "a call passed its bound"
    );
}

//! The bound, counted: every instruction of every `allocate` and `deallocate` of a long random run, one by one.
//!
//! The processor's trap flag is set around each call; each instruction then raises a trap, whose handler counts. What the frame of
//! the count costs is measured with an empty call and taken off. Ten million operations take about half an hour, because each of
//! their billion instructions is a signal: `cargo bench -p freestone-tlsf --bench tlsf_bound -- 10000000`.
//!
//! Prints one JSON record a run: the load (how full the heap is), the most instructions of any call and the mean, for each kind of
//! call. Exits with 1 if a call of a kind passes its bound (`cargo xtask tlsf-bound` proves both from the machine code). x86-64 Linux only.
#![allow(unsafe_code, reason = "the trap flag, and the heap's own interface")]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() {
    eprintln!("instructions are counted on x86-64 Linux only");
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() {
    let n_ops = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(3_000);
    counting::main(n_ops);
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod counting {
    use freestone_testkit::ops::SplitMix;
    use freestone_tlsf::{Bounded, Policy, Standard, Tlsf};
    use std::hint::black_box;
    use std::mem::MaybeUninit;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU64, Ordering};

    const ALLOCATE_BOUND: u64 = 120;
    const DEALLOCATE_BOUND: u64 = 180;

    static STEPS: AtomicU64 = AtomicU64::new(0);

    extern "C" fn on_step(_signal: i32) {
        STEPS.store(STEPS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn catch_steps() {
        // SAFETY: the handler touches one atomic.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_step as extern "C" fn(i32) as usize;
            assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut()), 0);
        }
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

    #[inline(never)]
    fn allocate<P: Policy>(heap: &mut Heap<P>, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        heap.allocate(bytes, align).ok()
    }

    #[inline(never)]
    fn deallocate<P: Policy>(heap: &mut Heap<P>, block: NonNull<u8>) -> bool {
        // SAFETY: a block of this heap, given back once.
        unsafe { heap.deallocate(block) }.is_ok()
    }

    #[inline(never)]
    fn nothing<P: Policy>(_heap: &mut Heap<P>, bytes: usize, _align: usize) -> Option<NonNull<u8>> {
        NonNull::new(bytes as *mut u8)
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

    /// `n_ops` calls on a heap of `region_bytes`, with `slots` blocks of 16 to 4111 bytes at most.
    fn run<P: Policy>(
        policy: &str,
        load: &str,
        most_align_log2: usize,
        region_bytes: usize,
        slots: usize,
        n_ops: usize,
    ) -> (u64, u64) {
        let mut heap = Heap::<P>::with_policy();
        heap.add_region(region(region_bytes)).expect("a valid region");
        let frame = count(|| {
            black_box(nothing(&mut heap, black_box(16), black_box(16)));
        });
        let (mut allocations, mut refusals, mut frees) = (Counts::default(), Counts::default(), Counts::default());
        let mut random = SplitMix(0xB0_07);
        let mut blocks = vec![None; slots];
        for _ in 0..n_ops {
            let slot = random.below(slots);
            let steps;
            if let Some(block) = blocks[slot].take() {
                let mut freed = false;
                steps = count(|| freed = deallocate(&mut heap, block));
                assert!(freed, "a block of this heap");
                frees.add(steps.saturating_sub(frame));
            } else {
                let (bytes, align) = (16 + random.below(4096), 1 << random.below(most_align_log2 + 1));
                let mut block = None;
                steps = count(|| block = allocate(&mut heap, bytes, align));
                let counts = if block.is_some() { &mut allocations } else { &mut refusals };
                counts.add(steps.saturating_sub(frame));
                blocks[slot] = block;
            }
        }
        heap.check().expect("a whole heap");
        println!(
            r#"{{"policy":"{policy}","load":"{load}","most_align":{},"allocate":{},"refuse":{},"deallocate":{}}}"#,
            1 << most_align_log2,
            allocations.json(),
            refusals.json(),
            frees.json()
        );
        (allocations.most, frees.most)
    }

    pub(super) fn main(n_ops: usize) {
        catch_steps();
        let third = n_ops / 3;
        let ample = run::<Standard>("standard", "ample", 4, 64 << 20, 4096, third);
        let full = run::<Bounded>("bounded", "exhausted", 4, 3 << 20, 4096, third);
        let small = run::<Standard>("standard", "80%", 4, 5 << 20, 4096, third);
        let _reported_only = run::<Standard>("standard", "ample, aligned", 8, 64 << 20, 4096, third / 10);
        let runs = [ample, full, small];
        let (allocate, deallocate) =
            runs.into_iter().fold((0, 0), |most: (u64, u64), run| (most.0.max(run.0), most.1.max(run.1)));
        println!(
            r#"{{"operations":{},"allocate_most":{allocate},"allocate_bound":{ALLOCATE_BOUND},"deallocate_most":{deallocate},"deallocate_bound":{DEALLOCATE_BOUND}}}"#,
            third * 3
        );
        if allocate > ALLOCATE_BOUND || deallocate > DEALLOCATE_BOUND {
            std::process::exit(1);
        }
    }
}

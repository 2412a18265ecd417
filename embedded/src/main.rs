//! TLSF and a pool on a Cortex-M: a long stream of random calls, each checked, and the longest that each call took.
//!
//! The heap has 8 KiB of the 16 KiB that the smallest machine has. Every block's contents are verified, and after every call the whole heap.
//! Time is the processor's SysTick timer; under qemu with `-icount shift=10` each instruction takes 1024 ns of the emulated clock, so the
//! difference of two readings is a number of instructions, which the program scales by a run of 256 instructions. The program prints its figures through the debugger's channel (semihosting).
#![no_std]
#![no_main]

use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::ptr::NonNull;
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use freestone_pool::{FixedPool, Shape};
use freestone_tlsf::{Bounded, Tlsf};

/// The calls of the stream.
const CALLS: u32 = 20_000;

/// The blocks that may be in use at once.
const BLOCKS: usize = 24;

/// The largest request, in bytes.
const MOST_BYTES: usize = 700;

/// The heap: regions of up to 32 bytes × 2^9 = 16 KiB, 8 lists for each power of two, one region.
type Heap<'m> = Tlsf<'m, Bounded, 9, 8, 1>;

/// Memory for an allocator.
#[repr(align(16))]
struct Memory<const BYTES: usize>([MaybeUninit<u8>; BYTES]);

/// A block in use: where it is, its size, and the byte that it is filled with.
#[derive(Clone, Copy)]
struct Block {
    start: NonNull<u8>,
    bytes: usize,
    fill: u8,
}

impl Block {
    /// Fills the block at `start` with `fill`.
    fn filled(start: NonNull<u8>, bytes: usize, fill: u8) -> Self {
        // SAFETY: the allocator has just handed out `bytes` bytes there.
        unsafe { start.write_bytes(fill, bytes) };
        Self { start, bytes, fill }
    }

    /// Whether the first `bytes` bytes are what they were filled with.
    fn is_intact(self, bytes: usize) -> bool {
        // SAFETY: the block is in use, has at least `bytes` bytes, and was filled.
        let contents = unsafe { core::slice::from_raw_parts(self.start.as_ptr(), bytes) };
        contents.iter().all(|&byte| byte == self.fill)
    }
}

/// Random numbers (xorshift, 32 bits).
struct Random(u32);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        (self.0 >> 8) as usize % limit
    }
}

/// How many ticks of the timer `call` takes, and what it returns.
fn timed<R>(call: impl FnOnce() -> R) -> (u32, R) {
    let begin = SYST::get_current();
    let result = call();
    // The timer counts down, in 24 bits.
    (begin.wrapping_sub(SYST::get_current()) & 0x00FF_FFFF, result)
}

/// The longest of each call so far, in ticks.
#[derive(Default)]
struct Longest {
    allocate: u32,
    deallocate: u32,
    reallocate: u32,
    refused: u32,
}

/// One random call on `heap`, for the block in `place`.
fn step(heap: &mut Heap, place: &mut Option<Block>, random: &mut Random, longest: &mut Longest) {
    let bytes = 1 + random.below(MOST_BYTES);
    let align = 1 << random.below(7);
    let fill = random.below(256) as u8;
    *place = match *place {
        None => match timed(|| heap.allocate(bytes, align)) {
            (ticks, Ok(start)) => {
                longest.allocate = longest.allocate.max(ticks);
                assert!(start.addr().get() % align == 0, "a block is not aligned");
                Some(Block::filled(start, bytes, fill))
            }
            (ticks, Err(_)) => {
                longest.refused = longest.refused.max(ticks);
                None
            }
        },
        Some(block) if random.below(4) == 0 => {
            // SAFETY: the block is in use, and after a success only its new address is used.
            match timed(|| unsafe { heap.reallocate(block.start, bytes, 8) }) {
                (ticks, Ok(start)) => {
                    longest.reallocate = longest.reallocate.max(ticks);
                    assert!(Block { start, ..block }.is_intact(bytes.min(block.bytes)), "contents were not kept");
                    Some(Block::filled(start, bytes, fill))
                }
                (_, Err(_)) => Some(block),
            }
        }
        Some(block) => {
            assert!(block.is_intact(block.bytes), "a block was overwritten");
            // SAFETY: the block is in use, and forgotten here.
            let (ticks, freed) = timed(|| unsafe { heap.deallocate(block.start) });
            assert!(freed.is_ok(), "a block in use was refused");
            // SAFETY: the heap refuses what is not in use, and changes nothing.
            assert!(unsafe { heap.deallocate(block.start) }.is_err(), "a block was freed twice");
            longest.deallocate = longest.deallocate.max(ticks);
            None
        }
    };
    assert!(heap.check().is_ok(), "the heap's invariants do not hold");
}

/// Random calls on a heap.
fn play_tlsf() -> Longest {
    let mut memory = Memory([MaybeUninit::uninit(); 8192]);
    let mut heap = Heap::with_policy();
    assert!(heap.add_region(&mut memory.0).is_ok(), "the region was refused");
    let mut places = [None; BLOCKS];
    let mut random = Random(2_463_534_242);
    let mut longest = Longest::default();
    for _ in 0..CALLS {
        let place = random.below(BLOCKS);
        step(&mut heap, &mut places[place], &mut random, &mut longest);
    }
    for block in places.into_iter().flatten() {
        // SAFETY: the block is in use, and not used afterwards.
        assert!(unsafe { heap.deallocate(block.start) }.is_ok(), "a block in use was refused");
    }
    assert!(heap.stats().used_blocks == 0, "a block is missing");
    longest
}

/// Fills and empties a pool, three times; returns the longest calls, in ticks.
fn play_pool() -> (u32, u32) {
    const SHAPE: Shape = match Shape::new(24, 70) {
        Ok(shape) => shape,
        Err(_) => panic!("no such pool"),
    };
    let mut memory = Memory([MaybeUninit::uninit(); SHAPE.region_bytes()]);
    let Ok(mut pool) = FixedPool::new(SHAPE, &mut memory.0) else { panic!("the region was refused") };
    let (mut allocate, mut deallocate) = (0, 0);
    for _ in 0..3 {
        let mut blocks = [None; 70];
        for place in &mut blocks {
            let (ticks, block) = timed(|| pool.allocate());
            allocate = allocate.max(ticks);
            *place = block.ok();
        }
        assert!(pool.allocate().is_err(), "the pool has more blocks than its shape");
        for block in blocks {
            let Some(block) = block else { panic!("the pool has fewer blocks than its shape") };
            // SAFETY: the block is in use, and not used afterwards.
            let (ticks, freed) = timed(|| unsafe { pool.deallocate(block) });
            assert!(freed.is_ok(), "a block in use was refused");
            // SAFETY: the pool refuses what is not in use, and changes nothing.
            assert!(unsafe { pool.deallocate(block) }.is_err(), "a block was freed twice");
            deallocate = deallocate.max(ticks);
        }
        assert!(pool.check().is_ok(), "the pool's invariants do not hold");
    }
    (allocate, deallocate)
}

/// Makes instructions of ticks.
struct Scale {
    /// What `timed` measures of nothing, in ticks.
    nothing: u32,
    /// What 256 instructions take, in ticks.
    of_256: u32,
}

impl Scale {
    // A function of its own: a Cortex-M0 reaches constants within 1 KiB only.
    #[inline(never)]
    fn measured() -> Self {
        let (nothing, ()) = timed(|| ());
        let (ticks, ()) = timed(|| {
            // SAFETY: the instructions do nothing.
            unsafe { core::arch::asm!(".rept 256", "nop", ".endr", options(nomem, nostack, preserves_flags)) };
        });
        Self { nothing, of_256: ticks - nothing }
    }

    /// The number of instructions in `ticks`, rounded.
    fn instructions(&self, ticks: u32) -> u32 {
        let ticks = ticks.saturating_sub(self.nothing);
        ((u64::from(ticks) * 256 + u64::from(self.of_256) / 2) / u64::from(self.of_256)) as u32
    }
}

#[entry]
fn main() -> ! {
    let Some(mut peripherals) = cortex_m::Peripherals::take() else { panic!("the peripherals are taken once") };
    peripherals.SYST.set_clock_source(SystClkSource::Core);
    peripherals.SYST.set_reload(0x00FF_FFFF);
    peripherals.SYST.clear_current();
    peripherals.SYST.enable_counter();
    let scale = Scale::measured();
    let longest = play_tlsf();
    let (pool_allocate, pool_deallocate) = play_pool();
    let rows = [
        ("Tlsf::allocate", longest.allocate),
        ("Tlsf::allocate, refused", longest.refused),
        ("Tlsf::deallocate", longest.deallocate),
        ("Tlsf::reallocate, copying", longest.reallocate),
        ("FixedPool::allocate", pool_allocate),
        ("FixedPool::deallocate", pool_deallocate),
    ];
    hprintln!("the longest call, in instructions:");
    for (call, ticks) in rows {
        hprintln!("{:26} {:5}", call, scale.instructions(ticks));
    }
    debug::exit(debug::EXIT_SUCCESS);
    loop {
        cortex_m::asm::wfi();
    }
}

#[panic_handler]
fn panicked(info: &PanicInfo) -> ! {
    hprintln!("{}", info);
    debug::exit(debug::EXIT_FAILURE);
    loop {
        cortex_m::asm::wfi();
    }
}

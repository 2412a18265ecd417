//! The process's one allocator: its parts, how they start, and the hooks that the system calls.
#![allow(unsafe_code)]
//!
//! ```text
//!  the object is loaded ─▶ register fork handlers
//!  first slow path      ─▶ start (once): reserve addresses, set the thread-exit hook, read the options, begin to profile and to watch faults
//!  a thread's end       ─▶ its heap becomes spare, or ends
//!  fork                 ─▶ lock everything, fork, unlock
//!  background thread    ─▶ purge what has expired, and end spare heaps that have, a few times in a decay time
//! ```
//!
//! This is the only module that relies on there being one of each part; the parts (`background`, `fork`, `options`, `pressure`, `report`, `snapshot`)
//! get what they need from their callers. The entry points above take the parts from [`PROCESS`].
//!
//! Long because: it wires every part.
//!
//! Any entry point may be the first call, on any thread: before `main`, after `exit`, in a destructor of thread-local storage, in a signal
//! handler. A thread is marked as starting while [`start`] runs in it (`thread::current`), and gets no memory meanwhile.
//!
//! # Safety
//! [`PROCESS`] is the one mutable static of the crate; it lives as long as the process. Setting a thread's value for
//! the exit hook may allocate, and is done only when the allocator has started. The C library, or the loader, calls each hook as `os` says.

use crate::api::background::BackgroundThread;
use crate::api::fork::{Forks, Locks};
use crate::api::freed_early::FreedEarly;
use crate::api::live::LivePage;
use crate::api::pressure::Pressure;
use crate::api::profile_control::ProfileControl;
use crate::api::profile_files::ProfileFiles;
use crate::api::report::Event;
use crate::api::start::Start;
use crate::api::{faults, heap_map, options, report, snapshot};
use crate::config::{Harden, HeapProfiling, Mistake, key};
use crate::shared::Shared;
use crate::stats::rows::{HeapKind, HeapStats};
use crate::stats::{Details, Stats};
use crate::thread::current;
use crate::thread::drain::drain;
use crate::thread::explicit::{ExplicitHeap, make_sampled_heap, sampled_heap};
use crate::thread::gated::GatedHeap;
use crate::thread::heap::ThreadHeap;
use crate::thread::life::Threads;
use crate::thread::life::succession::Which;
use crate::thread::recorded::{self, Recordings};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use freestone_base::lock::Forker;
use freestone_base::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use freestone_os::fault::{self, Fault, Outcome};
use freestone_os::process::thread_id;
use freestone_os::{ExitHook, Inside, Os, System, pin, thread};

/// The parts of the process's allocator. What is used before the first allocation and at exit comes first, in the OS page that the
/// loader writes to anyway.
#[repr(C)]
pub(super) struct Process {
    pub(super) background: BackgroundThread,
    forks: Forks,
    pub(super) threads: Threads<System>,
    pub(super) pressure: Pressure,
    pub(super) live: LivePage,
    pub(super) profile_files: ProfileFiles,
    profile_control: ProfileControl,
    /// The heap of the threads that have none of their own; null before one is needed.
    pub(super) fallback: AtomicPtr<GatedHeap<System>>,
    /// Blocks freed where there was no heap to free them.
    pub(super) freed_early: FreedEarly,
    /// Has [`on_thread_exit`] called in each thread that has a heap of its own.
    pub(super) exit_hook: ExitHook,
    started: Start,
    /// Whether what may allocate has been done after starting: see [`start`].
    announced: AtomicBool,
    /// How many slow paths of allocation look whether the handler of faults was replaced.
    handler_looks: AtomicU32,
    pub(super) recordings: Recordings,
    pub(super) shared: Shared<System>,
}

/// The process's allocator.
pub(super) static PROCESS: Process = Process {
    background: BackgroundThread::new(background_main),
    forks: Forks::new(),
    threads: Threads::new(),
    pressure: Pressure::new(),
    live: LivePage::new(),
    profile_files: ProfileFiles::new(),
    profile_control: ProfileControl::new(),
    fallback: AtomicPtr::new(ptr::null_mut()),
    freed_early: FreedEarly::new(),
    exit_hook: ExitHook::new(),
    started: Start::new(),
    announced: AtomicBool::new(false),
    handler_looks: AtomicU32::new(0),
    recordings: Recordings::new(),
    shared: Shared::new(System),
};

/// How many slow paths of allocation look for a handler in the place of the allocator's, after that was installed: those of a runtime that starts.
const HANDLER_LOOKS: u32 = 16;

impl Process {
    /// A new explicit heap; `None` when memory runs out. Its blocks stay until it is destroyed, which nobody does before that.
    pub(super) fn explicit_heap(&'static self, level: Harden) -> Option<&'static ExplicitHeap<System>> {
        // SAFETY: `shared` is a static, and all heaps of `threads` use it.
        unsafe { self.threads.create_explicit(&self.shared, level) }
    }
}

/// Starts the allocator unless it has started. `false` if there is no memory for it, or this thread is the one that is starting it.
pub(super) fn start() -> bool {
    if current::is_starting() {
        return false;
    }
    if !PROCESS.started.is_done() {
        let before = current::begin_start();
        let is_started = PROCESS.started.call(try_start);
        current::return_to(before);
        if !is_started {
            return false;
        }
    }
    // These may allocate, and find the allocator started.
    if !PROCESS.announced.load(Ordering::Relaxed) && !PROCESS.announced.swap(true, Ordering::Relaxed) {
        register_fork_handlers();
        report::append_start(PROCESS.shared.settings().report_file());
        update_pages();
    }
    true
}

fn try_start() -> bool {
    if PROCESS.shared.pages.open().is_none() {
        return false;
    }
    PROCESS.exit_hook.set(on_thread_exit);
    let settings = PROCESS.shared.settings();
    options::apply_all(settings);
    settings.report_file().make_absolute();
    if !settings.sandbox() {
        settings.live_path().make_absolute(true);
        settings.record_path().make_absolute(false);
        PROCESS.recordings.trace.begin(settings.record_path());
    }
    heap_map::publish(&PROCESS.shared);
    PROCESS.live.begin(PROCESS.shared.settings(), || PROCESS.shared.os().now_ms());
    begin_profile();
    watch_faults();
    true
}

/// What the allocator holds now.
#[must_use]
pub(super) fn stats() -> Stats {
    snapshot::take(&PROCESS.shared, &PROCESS.threads)
}

/// Calls `visit` with what the allocator holds now, per size class and per heap; `None` if the kernel has no memory for that.
pub(super) fn with_details<R>(visit: impl FnOnce(&Details<'_>) -> R) -> Option<R> {
    snapshot::with_details(&PROCESS.shared, &PROCESS.threads, visit)
}

/// What an explicit heap holds now. First it takes back what other threads have freed.
#[must_use]
pub(super) fn stats_of_heap(heap: &ExplicitHeap<System>) -> HeapStats {
    let entered = heap.enter();
    PROCESS.freed_early.free_all(entered.own());
    drain(entered.own());
    let row = snapshot::heap_row(&PROCESS.shared, entered.own().heap(), Some(heap.holdings()));
    HeapStats { kind: HeapKind::Explicit, ..row }
}

/// Writes a state to the page of statistics if one is due, and serves requests for heap profiles. The thread holds no lock.
#[inline]
fn update_pages() {
    if PROCESS.live.is_on() {
        PROCESS.live.update_if_due(&PROCESS.shared, &PROCESS.threads);
    }
    if PROCESS.profile_control.is_on() {
        PROCESS.profile_control.serve(&PROCESS.shared, &PROCESS.profile_files, start_profile);
    }
}

/// Notes the kernel's number of the calling thread, whose heap it is now, for the page of statistics; and that it is not known, if there is none.
pub(super) fn note_thread(heap: &ThreadHeap<System>) {
    let id = if PROCESS.live.is_on() { thread_id() } else { 0 };
    heap.set_thread_id(u32::try_from(id).unwrap_or(0));
}

/// Does what is to be done from time to time where an allocation has just been served on its slow path, and the thread holds no lock.
#[inline]
pub(super) fn upkeep() {
    PROCESS.background.start_if_due(&PROCESS.shared);
    // A signal handler may have interrupted this thread while it takes a spare heap.
    if PROCESS.threads.n_spare() > 0 && !current::is_starting() {
        PROCESS.threads.end_spare(&PROCESS.shared, Which::Expired);
    }
    update_pages();
    if PROCESS.handler_looks.load(Ordering::Relaxed) > 0 {
        look_at_handler();
    }
}

/// Appends the last line of the report, if there is one, ends the trace, if calls are recorded, and removes the page of statistics.
pub(super) fn report_exit() {
    append_stats(Event::Exit);
    PROCESS.recordings.trace.finish();
    PROCESS.live.end(&PROCESS.shared, &PROCESS.threads);
    PROCESS.profile_control.end();
}

/// Starts to sample allocations; `false` without memory for it, or in a sandbox.
pub(super) fn start_profile() -> bool {
    let (shared, settings) = (&PROCESS.shared, PROCESS.shared.settings());
    let interval = settings.get(key::HEAP_PROFILE_INTERVAL) as u64;
    let [allocated, growth] =
        [key::HEAP_PROFILE_ALLOCATED, key::HEAP_PROFILE_GROWTH].map(|index| settings.get(index) as u64);
    shared.profile.set_triggers(allocated, growth);
    if shared.profile.triggers().is_set() {
        PROCESS.profile_control.serve_triggers();
    }
    !settings.sandbox()
        && (sampled_heap(shared).is_some() || make_sampled_heap(shared, || PROCESS.explicit_heap(Harden::Off)))
        && shared.profile.start(interval)
}

/// Starts what the option `heap_profile` asks for.
fn begin_profile() {
    let Some(profiling) = PROCESS.shared.settings().heap_profile() else { return };
    PROCESS.profile_files.expect_exit();
    if profiling == HeapProfiling::On {
        PROCESS.shared.profile.expect_rust();
    }
    if profiling == HeapProfiling::On && !start_profile() {
        freestone_os::report(format_args!("heap_profile: there is no memory for it; nothing is sampled"));
    }
    PROCESS.profile_control.begin(PROCESS.shared.settings(), on_profile_signal, PROCESS.shared.os().now_ms());
}

/// The signal of the option `heap_profile_signal` has come.
extern "C" fn on_profile_signal(_: c_int) {
    PROCESS.profile_control.note_signal();
    PROCESS.shared.pages.wake();
}

/// Appends what is counted now to the report. Nothing before the allocator has started: its path is not known, or is being written.
fn append_stats(event: Event) {
    if PROCESS.started.is_done() {
        let counted = || (PROCESS.shared.os().now_ms(), stats());
        report::append_stats(PROCESS.shared.settings().report_file(), event, counted);
    }
}

/// Sets the option `name` from now on.
///
/// # Errors
/// See [`options::set`]; nothing has changed then.
pub(super) fn set_option(name: &str, value: &str) -> Result<(), Mistake> {
    // Started first, so that environment and symbol, which are read at the start, do not override this value later.
    start();
    options::set(&PROCESS.shared, name, value)?;
    watch_faults();
    PROCESS.background.option_changed(&PROCESS.shared);
    Ok(())
}

/// Installs the handler of faults if some allocations are guarded, or memory is closed that the program may access by mistake.
fn watch_faults() {
    let settings = PROCESS.shared.settings();
    let is_asked = settings.guard_sample().is_some() || (settings.harden() == Harden::Full && !settings.sandbox());
    if is_asked && fault::install(on_fault) {
        PROCESS.handler_looks.store(HANDLER_LOOKS, Ordering::Relaxed);
    }
}

/// Rust's runtime finds no handler, allocates, and installs its own: if that was the first allocation, in the place of the one that it has installed.
#[cold]
fn look_at_handler() {
    fault::renew();
    let left = PROCESS.handler_looks.load(Ordering::Relaxed);
    PROCESS.handler_looks.store(left.saturating_sub(1), Ordering::Relaxed);
}

fn on_fault(fault: &Fault) -> Outcome {
    faults::judge(&PROCESS.shared, current::get().number(), fault)
}

/// The value of the option `name` as a number (see [`Settings::get`](crate::config::Settings::get)); `None` if there is no such option.
#[must_use]
pub(super) fn option(name: &str) -> Option<usize> {
    start();
    options::get(PROCESS.shared.settings(), name)
}

/// Takes its heap from a thread that exits.
///
/// The heap is taken from the thread's own pointer, not from the hook's argument: copies of the library in several link namespaces
/// (`dlmopen`) have a C library each, and these share the threads' slots for values, so one copy's value overwrites the other's.
unsafe extern "C" fn on_thread_exit(_: *mut c_void) {
    let Some(own) = recorded::own() else { return };
    if PROCESS.exit_hook.may_put_off(own.count_exit_round()) && set_exit_value(own.heap()) {
        return;
    }
    PROCESS.recordings.end(PROCESS.shared.settings().record_path());
    current::leave();
    // SAFETY: the heap was this thread's and alive; `leave` took the only pointer to it that the thread had.
    unsafe { PROCESS.threads.leave(own) };
    PROCESS.shared.pages.wake_for_work();
    PROCESS.background.thread_gone(&PROCESS.shared);
}

/// Has [`on_thread_exit`] called when this thread exits. `false` if the system cannot.
pub(super) fn set_exit_value(heap: &ThreadHeap<System>) -> bool {
    PROCESS.exit_hook.set_value(NonNull::from(heap).cast())
}

/// The background thread's start function.
extern "C" fn background_main(_: *mut c_void) -> *mut c_void {
    let sample = || append_stats(Event::Sample);
    PROCESS.background.run(&PROCESS.shared, &PROCESS.threads, sample, update_pages);
    ptr::null_mut()
}

freestone_os::constructors!(AT_LOAD: at_load, AT_UNLOAD: at_unload);

/// Allocates nothing and reads no environment: the C library may not be initialised.
extern "C" fn at_load() {
    register_fork_handlers();
    pin::pin();
    thread::count_thread_locals();
}

/// After the program's own destructors: what a program does at exit is profiled.
extern "C" fn at_unload() {
    if PROCESS.started.is_done() {
        PROCESS.profile_files.write_at_exit(PROCESS.shared.settings(), &PROCESS.shared.profile);
    }
}

fn register_fork_handlers() {
    core::hint::black_box(&AT_UNLOAD);
    // A linker takes an object out of an archive because of an undefined symbol, and this constructor comes with it.
    core::hint::black_box(&AT_LOAD);
    PROCESS.forks.register(before_fork, after_fork_in_parent, after_fork_in_child);
}

fn locks() -> Locks<'static> {
    Locks {
        pressure: &PROCESS.pressure,
        start: &PROCESS.started,
        threads: &PROCESS.threads,
        freed_early: &PROCESS.freed_early,
        shared: &PROCESS.shared,
    }
}

extern "C" fn before_fork() {
    PROCESS.forks.lock(&locks());
}

extern "C" fn after_fork_in_parent() {
    // SAFETY: the C library calls this in the thread in which it called `before_fork`, which took all locks, while the thread held no guard,
    // or none, and then none is released.
    PROCESS.forks.unlock_in_parent(&locks(), unsafe { Forker::new() });
}

extern "C" fn after_fork_in_child() {
    // SAFETY: the C library calls this in the copy of the thread in which it called `before_fork`, which took all locks, while the
    // thread held no guard, or none, and then none is released.
    PROCESS.forks.unlock_in_child(&locks(), unsafe { Forker::new() });
    PROCESS.recordings.forked(PROCESS.shared.settings().record_path());
    let own = recorded::own();
    // A signal handler that has interrupted this thread inside may find a part of the heap half changed, and must wait for no lock.
    if !Inside::is_any() {
        // From here on no lock has to be waited for: either this thread holds them all, as part of a fork within a fork, or no thread holds any.
        let had_others = PROCESS.threads.n_alive() > u32::from(own.is_some());
        PROCESS.shared.pages.adopt_purging_in_child(had_others);
        // SAFETY: the child has one thread, and `own` is its heap if it has one.
        unsafe { PROCESS.threads.orphan_others(own) };
    }
    PROCESS.background.forked(&PROCESS.shared, own.is_some());
    PROCESS.pressure.forked();
    PROCESS.live.forked(&PROCESS.shared);
    PROCESS.profile_control.forked(PROCESS.shared.os().now_ms());
    if let Some(own) = own {
        note_thread(own.heap());
    }
}

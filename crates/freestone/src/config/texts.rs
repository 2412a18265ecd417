//! What each option is by default and what it changes, as text for people, in the order of `OPTIONS`; and what profiles are for. Apart from the tables, so that a library
//! without use for it, as the one that is preloaded, does not contain it.

/// See the module header.
pub(super) static TEXTS: &[(&str, &str)] = &[
    // profile
    (
        "balanced",
        "sets several other options (docs/tuning.md has the table of profiles); explicit options override the profile",
    ),
    // decay_ms
    (
        "1000",
        "free memory that has not been used for this long is returned to the operating system, a little of it after a fiftieth of that or when a large block is freed; 4294967295: never",
    ),
    // dirty_max
    (
        "16m",
        "the most free memory that is kept for reuse, whatever its age: this, or a tenth of the memory in use if that is more, but unless it is above the default, with what is in use, no more than was in use lately and a quarter of that, or 1 MiB; while large blocks come and go, up to what was in use lately and a tenth of it, at most eight times what is in use; after bursts, half of what came and went",
    ),
    // background
    (
        "auto",
        "whether a thread of the allocator returns free memory older than decay_ms; auto: once a second thread of the program has allocated, until one is left; live, report_ms, heap_profile=ready, heap_profile_ms and heap_profile_signal start this thread in a program of one thread too, as on does: unshare, setns and other calls that need a single-threaded process then fail; off: never, and those options do not work, or only when a thread allocates",
    ),
    // purge
    (
        "dontneed",
        "how memory is returned: dontneed: at once; free: when the kernel runs short, and it counts as resident until then",
    ),
    // thp
    (
        "auto",
        "what huge pages are requested for: auto: large blocks that grow, or that are as long as earlier ones that were densely written; on: everything; off: nothing",
    ),
    // prefault
    (
        "off",
        "how physical pages are allocated when memory is mapped instead of when it is first written: touch: by writing to it; willneed, populate: by asking the kernel",
    ),
    // span_size
    (
        "64k",
        "length of the spans of size classes up to 8 KiB, rounded up to a multiple of 64k; applies to spans made from then on",
    ),
    // bin_max
    (
        "4096",
        "the most free blocks of one size class that a thread keeps; for larger classes also at most 1 MiB of them",
    ),
    // limit
    (
        "",
        "soft limit: an allocation beyond it empties caches and calls the program's pressure callback first; by default 15/16 of the control group's limit",
    ),
    // limit_hard
    ("", "hard limit: an allocation beyond it fails with ENOMEM; by default none"),
    // misuse
    (
        "abort",
        "what happens on an invalid free (double, foreign, or inside a block): a message and abort, a message, or nothing",
    ),
    // report
    (
        "",
        "appends statistics to this file, one JSON line at start and one at exit; a relative path counts from the folder in which the program starts",
    ),
    // report_ms
    (
        "0",
        "with report: appends a line at this interval as well, from the background thread: none with background=off; 0: never",
    ),
    // sandbox
    (
        "off",
        "on: after the first allocation, makes only the system calls mmap, munmap, madvise and futex (docs/sandboxes.md): no background thread, no huge pages by experience, no reading of the control group's limit, large blocks move by copying; set only at the start",
    ),
    // harden
    (
        "default",
        "how much heap misuse is detected (docs/security.md): default: double frees of small blocks, misaligned frees, damaged links, and accesses behind large blocks of new memory; checks: every free is exact, blocks have canaries and wait in a quarantine before reuse, and an operation takes a few times as long; full: checks, and freed memory is cleared, all large blocks have guards, and, with libfreestone_memory.so preloaded as well, memcpy and its kin stay inside blocks; set only before the first allocation",
    ),
    // guard_sample
    (
        "",
        "one small allocation in this many is placed between pages without access, and stays without access after its free: what is done to it that must not be done is reported with the stacks of its allocation, its free and its use; not in a sandbox, and not for blocks of Rust's global allocator below harden=checks; by default none",
    ),
    // heap_profile
    (
        "off",
        "on: samples allocations with their stacks from the start on, and writes a heap profile at exit (docs/profiling.md); ready: as on, but samples only once the program, a signal or `freestone profile PID` asks for it; not in a sandbox; set only at the start",
    ),
    // heap_profile_interval
    ("512k", "with heap_profile: one byte in this many is sampled, on average; takes effect when profiling starts"),
    // heap_profile_file
    (
        "",
        "where heap profiles are written; %p stands for the number of the process, %n for that of the profile, %w for live or peak: both are written at exit if it is there, and %% for %; by default freestone.%p.%n.heap in the current directory",
    ),
    // heap_profile_signal
    (
        "off",
        "with heap_profile: this signal starts profiling if it is not started, and writes a profile otherwise; only if the program does not handle the signal; set only at the start",
    ),
    // heap_profile_ms
    (
        "0",
        "with heap_profile: writes a profile at this interval as well, while profiling is on; 0: never; set only at the start",
    ),
    // heap_profile_allocated
    (
        "0",
        "with heap_profile: writes a profile as well whenever so many bytes were allocated since the last time; 0: never; takes effect when profiling starts",
    ),
    // heap_profile_growth
    (
        "0",
        "with heap_profile: writes a profile as well whenever live memory exceeds, by so many bytes, what was live the last time; 0: never; takes effect when profiling starts",
    ),
    // record
    (
        "",
        "records every call into this file (docs/recording.md); if it exists, into one with the process's number after its name; read at start, and not in a sandbox",
    ),
    // live
    (
        "",
        "keeps a page of statistics up to date in a file, for `freestone top`: on: $XDG_RUNTIME_DIR/freestone-%p.live, or in /tmp without that variable; or a path, in which %p stands for the process's number and %% for %, a relative one from the folder in which the program starts; off: no page. Only the user may read the file. It is removed at exit; it stays if the process ends by _exit, as the parent in daemon() does, or by a signal; not in a sandbox",
    ),
    // deepbind
    (
        "off",
        "whether the preloaded library's dlopen passes RTLD_DEEPBIND on; off: libraries that are loaded with it use this malloc, as the program does; on: they use the C library's, and neither may free what the other has allocated",
    ),
];

/// Which programs each profile is for, and what it does, in the order of `PROFILES`.
pub(super) static PURPOSES: &[&str] = &[
    "the defaults, for everything not below",
    "batch work on a dedicated machine: keeps memory and requests huge pages",
    "many processes on a small machine: returns memory quickly",
    "deadlines: allocates physical pages in advance, returns nothing on the caller's time, has no background thread",
    "services that run for long: finds misuse of small blocks by sampling; the defaults otherwise",
];

//! Which files can be changed, under which names, and which tests have to notice.

/// Some files of a package.
pub(crate) struct Module {
    pub name: &'static str,
    pub package: &'static str,
    /// Globs, as cargo-mutants takes them.
    pub files: &'static [&'static str],
}

pub(crate) const MODULES: [Module; 10] = [
    Module { name: "base", package: "freestone-base", files: &["crates/base/src/**"] },
    Module { name: "tlsf", package: "freestone-tlsf", files: &["crates/tlsf/src/**"] },
    Module { name: "pool", package: "freestone-pool", files: &["crates/pool/src/**"] },
    Module {
        name: "span",
        package: "freestone",
        files: &["crates/freestone/src/span.rs", "crates/freestone/src/span/**"],
    },
    Module {
        name: "page",
        package: "freestone",
        files: &["crates/freestone/src/page.rs", "crates/freestone/src/page/**"],
    },
    Module {
        name: "thread",
        package: "freestone",
        files: &["crates/freestone/src/thread.rs", "crates/freestone/src/thread/**"],
    },
    Module {
        name: "central",
        package: "freestone",
        files: &[
            "crates/freestone/src/central.rs",
            "crates/freestone/src/central/**",
            "crates/freestone/src/shared.rs",
            "crates/freestone/src/usage.rs",
        ],
    },
    Module {
        name: "guarded",
        package: "freestone",
        files: &["crates/freestone/src/guarded.rs", "crates/freestone/src/guarded/**"],
    },
    Module {
        name: "profile",
        package: "freestone",
        files: &[
            "crates/freestone/src/heap_profile.rs",
            "crates/freestone/src/heap_profile/**",
            "crates/freestone/src/record/**",
        ],
    },
    Module {
        name: "api",
        package: "freestone",
        files: &["crates/freestone/src/api.rs", "crates/freestone/src/api/**"],
    },
];

/// Packages, their folders, and the tests that have to notice changes to them, as cargo's arguments, with the features that are published.
pub(crate) const PACKAGES: [(&str, &str, &[&str]); 4] = [
    ("freestone-base", "crates/base", &["--tests"]),
    ("freestone-tlsf", "crates/tlsf", &["--tests", "--features", "allocator-api2"]),
    ("freestone-pool", "crates/pool", &["--tests"]),
    (
        "freestone",
        "crates/freestone",
        &[
            "--features",
            "allocator-api2,allocator-api2-02",
            "--lib",
            "--test",
            "allocator",
            "--test",
            "door",
            "--test",
            "explicit_heaps",
            "--test",
            "process",
            "--test",
            "rust_heap_profile",
            "--test",
            "threads",
        ],
    ),
];

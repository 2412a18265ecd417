//! A shared library with the crate as its allocator, loaded and unloaded by a program that has another one.
#![allow(unsafe_code)]
//! # Safety
//! The library is the example of this crate, built together with this test.
#![cfg(all(target_os = "linux", not(miri)))]

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::{env, fs, thread};

/// The example, built.
fn library() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder of the target folder");
    let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // As when all tests are built together, and with this test's features: then it is there already.
    build.args(["build", "--quiet", "--workspace", "--example", "plugin", "--target-dir"]).arg(target);
    if cfg!(feature = "allocator-api2") {
        build.args(["--features", "freestone/allocator-api2"]);
    }
    if cfg!(feature = "allocator-api2-02") {
        build.args(["--features", "freestone/allocator-api2-02"]);
    }
    let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo can be run");
    assert!(status.success(), "the plug-in does not build");
    target.join("debug/examples/libplugin.so")
}

fn is_mapped() -> bool {
    fs::read_to_string("/proc/self/maps").expect("a process may read its map").contains("libplugin")
}

#[test]
fn a_plug_in_that_is_closed_while_a_thread_has_its_heap_stays_loaded() {
    let path = CString::new(library().into_os_string().into_encoded_bytes()).expect("a path has no null");
    // SAFETY: the path is a C string; the library's constructors are the allocator's (see the header).
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "{path:?} cannot be loaded");
    // SAFETY: the library is loaded, and the name is a C string.
    let work = unsafe { libc::dlsym(handle, c"freestone_plugin_work".as_ptr()) };
    assert!(!work.is_null());
    // SAFETY: the symbol is the example's function, which has this type.
    let work = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u64) -> u64>(work) };
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(work(1000), 999 * 500);
            barrier.wait();
            barrier.wait();
            // The thread's heap goes after this.
        });
        barrier.wait();
        // SAFETY: opened above, and closed once.
        assert_eq!(unsafe { libc::dlclose(handle) }, 0);
        assert!(is_mapped());
        barrier.wait();
    });
    assert!(is_mapped());
}

//! A shared library with the crate as its allocator, loaded and unloaded by a program that has another one.
#![allow(unsafe_code)]
//! # Safety
//! The library is the example of this crate, built together with this test. The loaders' functions are declared as their documentation has them.
// Rust's programs for musl are static, and load no libraries.
#![cfg(all(any(all(target_os = "linux", not(target_env = "musl")), windows), not(miri)))]

use std::ffi::c_void;
use std::sync::Barrier;
use std::thread;

/// Loading a library by the system's loader.
#[cfg(target_os = "linux")]
mod loader {
    use freestone_testkit::again;
    use std::ffi::{CString, c_void};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::{env, fs};

    /// The example, built.
    fn library() -> PathBuf {
        // The target folder, or for another platform the folder in it that is called as the platform is.
        let outputs = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder of the target folder");
        let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // As when all tests are built together, and with this test's features: then it is there already.
        build.args(["build", "--quiet", "--workspace", "--example", "plugin", "--target-dir"]);
        if again::is_emulated() {
            let platform = outputs.file_name().expect("the name of a platform");
            build.arg(outputs.with_file_name("")).arg("--target").arg(platform);
        } else {
            build.arg(outputs);
        }
        if cfg!(feature = "allocator-api2") {
            build.args(["--features", "freestone/allocator-api2"]);
        }
        if cfg!(feature = "allocator-api2-02") {
            build.args(["--features", "freestone/allocator-api2-02"]);
        }
        let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo can be run");
        assert!(status.success(), "the plug-in does not build");
        outputs.join("debug/examples/libplugin.so")
    }

    pub(super) fn open() -> *mut c_void {
        let path = CString::new(library().into_os_string().into_encoded_bytes()).expect("a path has no null");
        // SAFETY: the path is a C string; the library's constructors are the allocator's (see the header).
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?} cannot be loaded");
        handle
    }

    pub(super) fn work(handle: *mut c_void) -> *mut c_void {
        // SAFETY: the library is loaded, and the name is a C string.
        unsafe { libc::dlsym(handle, c"freestone_plugin_work".as_ptr()) }
    }

    pub(super) fn close(handle: *mut c_void) -> bool {
        // SAFETY: `open` opened it, and it is closed once.
        unsafe { libc::dlclose(handle) == 0 }
    }

    pub(super) fn is_mapped() -> bool {
        fs::read_to_string("/proc/self/maps").expect("a process may read its map").contains("libplugin")
    }
}

/// Loading a library by the system's loader.
#[cfg(windows)]
mod loader {
    use std::env;
    use std::ffi::{CStr, CString, c_char, c_void};

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn LoadLibraryA(path: *const c_char) -> *mut c_void;
        fn GetProcAddress(library: *mut c_void, name: *const c_char) -> *mut c_void;
        fn FreeLibrary(library: *mut c_void) -> i32;
        fn GetModuleHandleA(name: *const c_char) -> *mut c_void;
    }

    const NAME: &CStr = c"plugin.dll";

    /// `cargo xtask platforms` has built it, for here cargo cannot be run.
    pub(super) fn open() -> *mut c_void {
        let test = env::current_exe().expect("a process knows its program");
        let folder = test.ancestors().nth(2).expect("a folder above that of the tests").join("examples");
        let path = folder.join(NAME.to_str().expect("ASCII")).into_os_string();
        let path = CString::new(path.into_encoded_bytes()).expect("a path has no null");
        // SAFETY: the path is a C string; the library's constructors are the allocator's (see the header).
        let handle = unsafe { LoadLibraryA(path.as_ptr()) };
        assert!(!handle.is_null(), "{path:?} cannot be loaded: `cargo build --package freestone --example plugin`");
        handle
    }

    pub(super) fn work(handle: *mut c_void) -> *mut c_void {
        // SAFETY: the library is loaded, and the name is a C string.
        unsafe { GetProcAddress(handle, c"freestone_plugin_work".as_ptr()) }
    }

    pub(super) fn close(handle: *mut c_void) -> bool {
        // SAFETY: `open` opened it, and it is closed once.
        unsafe { FreeLibrary(handle) != 0 }
    }

    pub(super) fn is_mapped() -> bool {
        // SAFETY: the name is a C string.
        unsafe { !GetModuleHandleA(NAME.as_ptr()).is_null() }
    }
}

/// Two threads have a heap of the library's, so that its background thread runs, too.
#[test]
fn a_plug_in_that_is_closed_while_a_thread_has_its_heap_stays_loaded() {
    let handle = loader::open();
    let work = loader::work(handle);
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
        assert_eq!(work(100_000), 99_999 * 50_000);
        assert!(loader::close(handle));
        assert!(loader::is_mapped());
        barrier.wait();
    });
    assert!(loader::is_mapped());
}

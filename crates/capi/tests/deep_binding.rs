//! Libraries that are loaded with `RTLD_DEEPBIND`: `c/deep_binding.c`.
//!
//! Which fault the test finds: a `dlopen` that keeps the flag, that keeps it not where it is asked to or where the program has a `malloc` of its own,
//! that is called by this library instead of the program, so that the loader searches in the wrong folders, or that is in no symbol table.

mod harness;

use harness::{Program, Way, c_compiler, crate_dir, expect_silent, is_musl, scratch, succeed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The name of the library that only the plugin finds.
const INNER: &str = "deep-binding-inner.so";

/// The plugin, with a copy of it in a folder that the plugin names.
fn plugin() -> &'static Path {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    PLUGIN.get_or_init(|| {
        let folder = scratch("deep-binding");
        let (plugin, inner) = (folder.join("plugin.so"), folder.join("inner"));
        fs::create_dir_all(&inner).expect("the folder can be written");
        let mut compile = Command::new(c_compiler());
        compile.args(["-O1", "-fno-builtin", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]);
        compile.args(["-Wl,--enable-new-dtags,-rpath,$ORIGIN/inner", "-o"]).arg(&plugin);
        succeed(compile.arg(crate_dir().join("tests/c/deep_binding_plugin.c")).arg("-ldl"));
        fs::copy(&plugin, inner.join(INNER)).expect("the folder can be written");
        plugin
    })
}

fn run(flags: &[&str], option: &str, expected: &str) {
    if is_musl() {
        println!("skipped: musl has no such flag");
        return;
    }
    for way in [Way::Preload, Way::Shared] {
        let mut command = Program::with_flags("deep_binding.c", way, &[flags, &["-ldl"]].concat()).command();
        command.env("FREESTONE_DEEPBIND", option).arg(plugin()).args([INNER, expected]);
        expect_silent(&mut command, way);
    }
}

#[test]
fn a_library_that_prefers_its_own_functions_uses_the_malloc_of_the_program() {
    run(&[], "off", "shares");
}

#[test]
fn a_library_may_keep_the_malloc_of_the_c_library() {
    run(&[], "on", "keeps");
}

#[test]
fn a_program_with_a_malloc_of_its_own_loads_its_libraries_as_it_says() {
    run(&["-DOWN", "-rdynamic"], "off", "keeps");
}

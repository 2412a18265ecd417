//! An installed tree is found by pkg-config and CMake, and the examples run on it.

mod harness;

use harness::{crate_dir, installed, library_dir, scratch, succeed};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Lays a tree out as `cargo xtask install` does, from the build that the tests use.
fn install(prefix: &Path) {
    let (lib, capi) = (prefix.join("lib"), crate_dir());
    for folder in ["lib/pkgconfig", "lib/cmake/freestone", "include"] {
        fs::create_dir_all(prefix.join(folder)).expect("the folder can be made");
    }
    fs::copy(library_dir().join("libfreestone.so"), lib.join("libfreestone.so.0")).expect("the library is built");
    fs::remove_file(lib.join("libfreestone.so")).ok();
    std::os::unix::fs::symlink("libfreestone.so.0", lib.join("libfreestone.so")).expect("a link can be made");
    fs::copy(library_dir().join("libfreestone.a"), lib.join("libfreestone.a")).expect("the archive is built");
    for header in fs::read_dir(capi.join("include")).expect("the headers are there") {
        let header = header.expect("an entry").path();
        fs::copy(&header, prefix.join("include").join(header.file_name().expect("a name"))).expect("a header");
    }
    for (template, to) in [
        ("freestone.pc.in", "lib/pkgconfig/freestone.pc"),
        ("freestone-config.cmake.in", "lib/cmake/freestone/freestone-config.cmake"),
    ] {
        let text = fs::read_to_string(capi.join("pkg").join(template)).expect("the template is there");
        let text = text.replace("@PREFIX@", &prefix.to_string_lossy()).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        assert!(!text.contains('@'), "{template} has a place that nobody fills");
        fs::write(prefix.join(to), text).expect("the tree can be written");
    }
}

#[test]
fn pkg_config_finds_it_and_the_c_example_runs() {
    if !installed("pkg-config") {
        return;
    }
    let prefix = scratch("install-c");
    install(&prefix);
    let flags = succeed(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "freestone"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    );
    let program = prefix.join("request_heap");
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror"]).arg(crate_dir().join("examples/request_heap.c"));
    succeed(compile.args(flags.split_whitespace()).arg("-o").arg(&program));
    let said = succeed(Command::new(&program).env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert!(said.starts_with("request 0: 18890 characters\n"), "{said}");
}

#[test]
fn cmake_finds_it_and_the_cpp_example_runs() {
    if !installed("cmake") {
        return;
    }
    let prefix = scratch("install-cpp");
    install(&prefix);
    let source = prefix.join("project");
    fs::create_dir_all(&source).expect("the folder can be made");
    let example = crate_dir().join("examples/watch_memory.cpp");
    let project = format!(
        "cmake_minimum_required(VERSION 3.16)\nproject(example CXX)\nset(CMAKE_CXX_STANDARD 17)\nfind_package(freestone REQUIRED)\n\
         add_executable(shared {0})\ntarget_link_libraries(shared freestone::freestone)\n\
         add_executable(static {0})\ntarget_link_libraries(static freestone::static)\n",
        example.display()
    );
    fs::write(source.join("CMakeLists.txt"), project).expect("the project can be written");
    let build = prefix.join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&source).arg("-B").arg(&build);
    succeed(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    succeed(Command::new("cmake").arg("--build").arg(&build));
    for name in ["shared", "static"] {
        let said = succeed(Command::new(build.join(name)).env("LD_LIBRARY_PATH", prefix.join("lib")));
        assert!(said.contains("purged"), "{said}");
    }
}

//! An installed tree is found by pkg-config and CMake, and the examples run on it.

mod harness;

use harness::{crate_dir, installed, scratch, succeed, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// An installed tree, made once by `cargo xtask install`.
fn installed_tree() -> &'static Path {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        let prefix = scratch("installed");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut install = Command::new(cargo);
        install.args(["run", "--quiet", "--package", "xtask", "--", "install", "--prefix"]).arg(&prefix);
        succeed(install.current_dir(crate_dir().join("../..")));
        prefix
    })
}

#[test]
fn pkg_config_finds_it_and_the_c_example_runs() {
    if !installed("pkg-config") {
        return;
    }
    let prefix = installed_tree();
    let flags = succeed(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "freestone"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    );
    let program = scratch("examples").join("request_heap");
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-Wall", "-Wextra", "-Werror"]).arg(crate_dir().join("examples/request_heap.c"));
    succeed(compile.args(flags.split_whitespace()).arg("-o").arg(&program));
    let said = succeed(Command::new(&program).env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert!(said.starts_with("request 0: 18890 characters\n"), "{said}");
}

#[test]
fn the_libraries_of_tlsf_and_pools_are_found_each_by_itself() {
    let prefix = installed_tree();
    let source = crate_dir().join("tests/c/freestanding.c");
    if installed("pkg-config") {
        for (name, define) in [("freestone_tlsf", "-DTLSF"), ("freestone_pool", "-DPOOL")] {
            let mut ask = Command::new("pkg-config");
            let flags =
                succeed(ask.args(["--cflags", "--libs", name]).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
            let program = scratch("examples").join(name);
            let mut compile = Command::new("cc");
            compile
                .args(["-std=gnu11", "-ffreestanding", "-fno-stack-protector", "-static", "-nostdlib", define])
                .arg(&source);
            succeed(compile.args(flags.split_whitespace()).arg("-o").arg(&program));
            succeed(&mut Command::new(&program));
        }
    }
    if installed("cmake") {
        let folder = scratch("examples").join("parts");
        fs::create_dir_all(&folder).expect("the folder can be made");
        let project = |components: &str| {
            format!(
                "cmake_minimum_required(VERSION 3.16)\nproject(parts C)\nfind_package(freestone 0.1 REQUIRED COMPONENTS {components})\n\
                 add_executable(both {})\ntarget_compile_definitions(both PRIVATE TLSF POOL ALL)\n\
                 target_compile_options(both PRIVATE -ffreestanding -fno-stack-protector)\n\
                 target_link_libraries(both freestone::tlsf freestone::pool -static -nostdlib)\n",
                source.display()
            )
        };
        let configure = |components: &str| {
            fs::write(folder.join("CMakeLists.txt"), project(components)).expect("the project can be written");
            let mut cmake = Command::new("cmake");
            cmake.arg("-S").arg(&folder).arg("-B").arg(folder.join("build"));
            cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())).output().expect("cmake can be run")
        };
        let refused = configure("tlsf nonsense");
        assert!(!refused.status.success() && text(&refused).contains("no component nonsense"), "{}", text(&refused));
        assert!(configure("malloc tlsf pool").status.success());
        succeed(Command::new("cmake").arg("--build").arg(folder.join("build")));
        succeed(&mut Command::new(folder.join("build/both")));
    }
}

#[test]
fn the_checked_memory_functions_are_installed_beside_it() {
    let lib = installed_tree().join("lib");
    let preload = ["libfreestone.so", "libfreestone_memory.so.0"].map(|name| lib.join(name).display().to_string());
    let mut command = Command::new("ls");
    command.arg(&lib).env("LD_PRELOAD", preload.join(" ")).env("FREESTONE_HARDEN", "full");
    assert!(succeed(&mut command).contains("libfreestone_memory.so.0.1.0\n"));
}

#[test]
fn cmake_finds_it_and_the_cpp_example_runs() {
    if !installed("cmake") {
        return;
    }
    let prefix = installed_tree();
    let source = scratch("examples").join("project");
    fs::create_dir_all(&source).expect("the folder can be made");
    let example = crate_dir().join("examples/watch_memory.cpp");
    let project = format!(
        "cmake_minimum_required(VERSION 3.16)\nproject(example CXX)\nset(CMAKE_CXX_STANDARD 17)\nfind_package(freestone 0.1 REQUIRED)\n\
         add_executable(shared {0})\ntarget_link_libraries(shared freestone::freestone)\n\
         add_executable(static {0})\ntarget_link_libraries(static freestone::static)\n",
        example.display()
    );
    fs::write(source.join("CMakeLists.txt"), project).expect("the project can be written");
    let build = scratch("examples").join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&source).arg("-B").arg(&build);
    succeed(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    succeed(Command::new("cmake").arg("--build").arg(&build));
    for name in ["shared", "static"] {
        let said = succeed(Command::new(build.join(name)).env("LD_LIBRARY_PATH", prefix.join("lib")));
        assert!(said.contains("purged"), "{said}");
    }
}

#[test]
fn cmake_takes_no_other_minor_version() {
    if !installed("cmake") {
        return;
    }
    let prefix = installed_tree();
    let source = scratch("examples").join("versions");
    fs::create_dir_all(&source).expect("the folder can be made");
    let configure = |request: &str| {
        let project = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(versions NONE)\nfind_package(freestone {request} QUIET)\n\
             message(STATUS \"found=${{freestone_FOUND}} \")\n"
        );
        fs::write(source.join("CMakeLists.txt"), project).expect("the project can be written");
        let build = source.join(format!("build-{request}"));
        let mut cmake = Command::new("cmake");
        cmake.arg("-S").arg(&source).arg("-B").arg(&build).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
        succeed(&mut cmake).contains("found=1 ")
    };
    let (found, refused): (Vec<&str>, Vec<&str>) = ["0.1", "0.1.0", "0.1.99", "0.2", "0.0", "1.0", "0.1.0 EXACT", ""]
        .into_iter()
        .partition(|&request| configure(request));
    assert_eq!(found, ["0.1", "0.1.0", "0.1.0 EXACT", ""]);
    assert_eq!(refused, ["0.1.99", "0.2", "0.0", "1.0"]);
}

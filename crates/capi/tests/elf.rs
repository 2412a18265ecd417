//! The shared library's symbols, segments and dependencies, and the header under compilers.

mod harness;

use harness::{
    Program, Way, archive, c_compiler, crate_dir, foreign_target, is_musl, scratch, shared_library, succeed,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn readelf(option: &str) -> String {
    succeed(Command::new("readelf").arg("--wide").arg(option).arg(shared_library()))
}

/// Functions that the C headers declare.
fn declared() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for header in fs::read_dir(crate_dir().join("include")).expect("the headers are there") {
        let path = header.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "h") {
            continue;
        }
        let text = fs::read_to_string(path).expect("a header is text");
        for line in text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_alphabetic())) {
            let Some((before, _)) = line.split_once('(') else { continue };
            let name: String =
                before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("").into();
            if !name.is_empty() && name.chars().any(|c| c.is_ascii_lowercase()) {
                names.insert(name);
            }
        }
    }
    names
}

/// The operators of C++17 that a program may replace. The compiler declares them.
const OPERATORS: [&str; 20] = [
    "operator delete(void*)",
    "operator delete(void*, std::align_val_t)",
    "operator delete(void*, std::align_val_t, std::nothrow_t const&)",
    "operator delete(void*, std::nothrow_t const&)",
    "operator delete(void*, unsigned long)",
    "operator delete(void*, unsigned long, std::align_val_t)",
    "operator delete[](void*)",
    "operator delete[](void*, std::align_val_t)",
    "operator delete[](void*, std::align_val_t, std::nothrow_t const&)",
    "operator delete[](void*, std::nothrow_t const&)",
    "operator delete[](void*, unsigned long)",
    "operator delete[](void*, unsigned long, std::align_val_t)",
    "operator new(unsigned long)",
    "operator new(unsigned long, std::align_val_t)",
    "operator new(unsigned long, std::align_val_t, std::nothrow_t const&)",
    "operator new(unsigned long, std::nothrow_t const&)",
    "operator new[](unsigned long)",
    "operator new[](unsigned long, std::align_val_t)",
    "operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)",
    "operator new[](unsigned long, std::nothrow_t const&)",
];

/// What `nm` lists of a file, demangled: type and name of each symbol.
fn symbols(options: &[&str], file: &Path) -> Vec<(String, String)> {
    let listed = succeed(Command::new("nm").arg("-C").args(options).arg(file));
    let symbols = listed.lines().filter_map(|line| {
        // Address, type, name; an undefined symbol has no address.
        let mut words = line.trim_start_matches(|c: char| c.is_ascii_hexdigit()).trim_start().splitn(2, ' ');
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    symbols.collect()
}

#[test]
fn every_operator_is_exported_and_a_programs_own_replaces_that_of_the_archive() {
    let expected: BTreeSet<String> = OPERATORS.map(str::to_owned).into();
    for (options, file) in [(&["-D", "--defined-only"][..], shared_library()), (&["--defined-only"], archive())] {
        let operators = symbols(options, &file).into_iter().filter(|(_, name)| name.starts_with("operator "));
        let (weak, others): (Vec<_>, Vec<_>) = operators.partition(|(kind, _)| kind == "W");
        assert_eq!(weak.into_iter().map(|(_, name)| name).collect::<BTreeSet<_>>(), expected, "{}", file.display());
        assert!(others.is_empty(), "{others:?}");
    }
}

#[test]
fn every_exported_symbol_is_declared_and_every_declared_one_exported() {
    let exported: BTreeSet<String> = symbols(&["-D", "--defined-only"], &shared_library())
        .into_iter()
        .map(|(_, name)| name)
        .filter(|name| !name.starts_with("operator "))
        .collect();
    let mut declared = declared();
    // The C library's headers declare it, and some that no header declares are glibc's other names for the same functions.
    let of_glibc = ["dlopen", "cfree"].into_iter().map(str::to_owned);
    let others =
        ["malloc", "free", "calloc", "realloc", "memalign", "valloc", "pvalloc"].map(|name| format!("__libc_{name}"));
    declared.extend(of_glibc.chain(others).filter(|_| !is_musl()));
    assert!(exported.len() > 25, "{exported:?}");
    assert_eq!(exported.difference(&declared).collect::<Vec<_>>(), Vec::<&String>::new(), "exported, not declared");
    assert_eq!(declared.difference(&exported).collect::<Vec<_>>(), Vec::<&String>::new(), "declared, not exported");
}

/// The loader warns of a protected function whose address a program takes that is not position-independent.
#[test]
fn no_exported_symbol_is_protected() {
    let symbols = readelf("--dyn-syms");
    assert!(!symbols.contains("PROTECTED"), "{symbols}");
}

#[test]
fn a_program_may_take_all_objects_of_the_archive() {
    if foreign_target().is_some() {
        return;
    }
    let archive = archive().display().to_string();
    let flags = ["-Wl,--whole-archive", &archive, "-Wl,--no-whole-archive"];
    let said = succeed(&mut Program::with_flags("version.c", Way::System, &flags).command());
    assert_eq!(said.trim(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_archive_exports_exactly_what_the_headers_declare() {
    let symbols = succeed(Command::new("readelf").args(["--wide", "--symbols"]).arg(archive()));
    let visible: BTreeSet<String> = symbols
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        // Number, value, size, type, binding, visibility, section, name.
        .filter(|words| words.len() == 8 && words[4] != "LOCAL" && words[5] == "DEFAULT" && words[6] != "UND")
        .map(|words| words[7].to_owned())
        // Names with an underscore in front are the compiler's; those with a bracket are patterns of what the shared library exports, whose `dlopen` is
        // exported as this function is.
        .filter(|name| !name.starts_with('_') && !name.contains('[') && name != "freestone_0_1_0_dlopen")
        .collect();
    assert_eq!(visible, declared());
}

#[test]
fn header_and_library_name_the_packages_version() {
    let text = fs::read_to_string(crate_dir().join("include/freestone.h")).expect("the header is text");
    let number = |part: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(&format!("#define FREESTONE_VERSION_{part} ")));
        value.unwrap_or_else(|| panic!("no FREESTONE_VERSION_{part}")).to_owned()
    };
    assert_eq!(["MAJOR", "MINOR", "PATCH"].map(number).join("."), env!("CARGO_PKG_VERSION"));
    let said = succeed(&mut Program::new("version.c", Way::Shared).command());
    assert_eq!(said.trim(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn thread_local_storage_is_at_most_16_bytes_and_needs_no_call() {
    let segments = readelf("--segments");
    let tls = segments.lines().find(|line| line.trim_start().starts_with("TLS ")).expect("a TLS segment");
    let size = tls.split_whitespace().nth(5).and_then(|size| size.strip_prefix("0x")).expect("its size in memory");
    assert!(usize::from_str_radix(size, 16).expect("a number") <= 16, "{tls}");
    let symbols = succeed(Command::new("nm").arg("-D").arg(shared_library()));
    assert!(!symbols.contains("__tls_get_addr"), "{symbols}");
}

/// A function that the library calls by its public name is one that a program may replace; and the operators learn from the slots of `bindings`, which
/// a reference of another kind replaces, whose `malloc` and `free` the process has.
#[test]
fn only_the_operators_refer_to_allocation_functions_by_names_that_programs_may_replace() {
    if cfg!(not(target_arch = "x86_64")) || foreign_target().is_some() {
        return;
    }
    let relocations = readelf("--relocs");
    let kind_of = |name: &str| -> Vec<&str> {
        let named = relocations.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        named
            .filter(|words| words.get(4) == Some(&name))
            .map(|words| words[2])
            .filter(|kind| *kind != "R_X86_64_64")
            .collect()
    };
    for name in ["malloc", "free", "_Znwm", "_ZdlPv"] {
        assert_eq!(kind_of(name), ["R_X86_64_JUMP_SLOT"], "{name} in:\n{relocations}");
    }
    for name in ["calloc", "memalign", "aligned_alloc", "posix_memalign", "malloc_usable_size", "_Znam", "_ZdaPv"] {
        assert!(kind_of(name).is_empty(), "{name} in:\n{relocations}");
    }
}

/// Its file is in the memory of every process. Says which sections there are, so that a look at the numbers tells what has grown.
#[test]
fn the_stripped_library_is_at_most_350_kib() {
    if cfg!(not(target_arch = "x86_64")) || foreign_target().is_some() || is_musl() {
        eprintln!("skipped: the bound is that of x86-64 with glibc");
        return;
    }
    let stripped = scratch("stripped").join("libfreestone.so");
    succeed(Command::new("strip").arg("-o").arg(&stripped).arg(shared_library()));
    let bytes = fs::metadata(&stripped).expect("strip has written it").len();
    let sections = succeed(Command::new("size").arg("-A").arg(&stripped));
    assert!(bytes <= 350 << 10, "{bytes} bytes\n{sections}");
}

/// gdb calls `malloc` for each text in what its user has it evaluate, with the type that the debug information says.
#[test]
fn debuggers_know_what_malloc_returns() {
    let entries = readelf("--debug-dump=info");
    let named = |entry: &&str| {
        let mut names = entry.lines().filter(|line| line.contains("DW_AT_name"));
        entry.starts_with("subprogram)") && names.any(|line| line.ends_with(" malloc"))
    };
    let functions: Vec<&str> = entries.split("(DW_TAG_").filter(named).collect();
    assert!(!functions.is_empty(), "no debug information of malloc");
    for function in functions {
        assert!(function.contains("DW_AT_type"), "(DW_TAG_{function}");
    }
}

#[test]
fn the_library_needs_only_the_c_library_and_is_never_unloaded() {
    let dynamic = readelf("--dynamic");
    let needed: Vec<&str> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert_eq!(needed.len(), 1, "{needed:?}");
    assert!(needed[0].contains(if is_musl() { "[libc.so]" } else { "[libc.so.6]" }), "{needed:?}");
    assert!(dynamic.contains("[libfreestone.so.0]"), "{dynamic}");
    assert!(dynamic.lines().any(|line| line.contains("FLAGS_1") && line.contains("NODELETE")), "{dynamic}");
}

#[test]
fn the_header_is_clean_in_c11_and_cpp17() {
    let folder = scratch("headers");
    let cpp = if foreign_target().is_none() { Some(("c++".to_owned(), "-std=c++17", "cpp")) } else { None };
    for (compiler, standard, suffix) in [(c_compiler(), "-std=c11", "c")].into_iter().chain(cpp) {
        let source = folder.join(format!("includes.{suffix}"));
        fs::write(&source, "#include <freestone.h>\nint main(void) { return 0; }\n")
            .expect("the folder can be written");
        let mut compile = Command::new(compiler);
        compile.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"]);
        succeed(compile.arg(crate_dir().join("include")).arg(&source));
    }
}

//! Links rpmalloc's own definitions of the malloc family away.
//!
//! Its `preload` feature is wanted for the heap it gives every thread at first use, but it also defines `malloc` and the rest
//! inside a static library, whose symbols a Rust library does not export. The linker keeps the first definition: ours.
fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,--allow-multiple-definition");
}

//! Under the system's allocator.
fn main() {
    rust_pairs::run("system");
}

//! Under the `mimalloc` crate.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    rust_pairs::run("mimalloc");
}

//! Under Freestone.
#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

fn main() {
    rust_pairs::run("freestone");
}

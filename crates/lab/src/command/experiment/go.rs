//! Go's half of experiment A: runs the benchmark of the Go module and reads its output.

use crate::allocator::checkout::Checkout;
use crate::process::child::{self, End};
use crate::process::command_file;
use crate::progress;
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Duration;

/// How long the benchmark may take.
const LIMIT: Duration = Duration::from_secs(300);

/// One line of the benchmark.
pub(super) struct Figure {
    /// What allocated: one of [`crate::show::published::arena::GO_ALLOCATORS`].
    pub(super) allocator: String,
    /// `1KiB`, `10KiB`, …
    pub(super) size: String,
    /// Nanoseconds per pair of allocation and free.
    pub(super) ns: f64,
}

/// Runs the benchmark.
///
/// # Errors
/// Go or the module is missing, or the benchmark fails.
pub(super) fn bench() -> Result<Vec<Figure>> {
    if command_file::find("go").is_err() {
        bail!("Go is not installed (go.dev/dl)");
    }
    let module = Checkout::of_this_command()
        .map(|checkout| checkout.root.join("go"))
        .filter(|module| module.join("bench").is_dir());
    let module =
        module.context("its benchmark is in a checkout of freestone, and this command does not run from one")?;
    let spinner = progress::spinner("Go's half of experiment A");
    let finished = child::run(
        Command::new("go")
            .args(["test", "-run", "^$", "-bench", "^BenchmarkPair$", "-benchtime", "200ms", "./bench"])
            .env("GOEXPERIMENT", "arenas")
            .current_dir(&module),
        LIMIT,
    );
    spinner.finish_and_clear();
    let finished = finished.context("go could not be started")?;
    let text = String::from_utf8_lossy(&finished.stdout);
    match finished.end {
        End::Exited(status) if status.success() => {}
        End::Exited(status) => bail!("go test ended with {status}: {}", text.lines().last().unwrap_or_default()),
        End::TimedOut => bail!("go test took longer than {} minutes", LIMIT.as_secs() / 60),
        End::Interrupted => bail!("interrupted"),
    }
    let figures: Vec<Figure> = text.lines().filter_map(parse).collect();
    if figures.is_empty() {
        bail!("go test printed no result of BenchmarkPair; is the checkout older than this command?");
    }
    Ok(figures)
}

/// Reads `BenchmarkPair/alloc=tlsf/size=1KiB-2   12345   14.3 ns/op …`.
fn parse(line: &str) -> Option<Figure> {
    let mut words = line.split_whitespace();
    let name = words.next()?.strip_prefix("BenchmarkPair/")?;
    let ns = words.nth(1)?.parse().ok()?;
    let part = |key: &str| name.split('/').find_map(|part| part.strip_prefix(key));
    let size = part("size=")?;
    Some(Figure { allocator: part("alloc=")?.into(), size: size.split('-').next()?.into(), ns })
}

#[cfg(test)]
mod tests {
    use crate::command::experiment::go::parse;

    #[test]
    fn a_line_of_the_benchmark_is_read_and_others_are_not() {
        let figure = parse("BenchmarkPair/alloc=tlsf/size=10KiB-2   	 9000000	  13.10 ns/op	 0 B/op").unwrap();
        assert_eq!((figure.allocator.as_str(), figure.size.as_str(), figure.ns), ("tlsf", "10KiB", 13.1));
        assert!(parse("ok  	github.com/freestone-alloc/freestone/go/bench	9.1s").is_none());
    }
}

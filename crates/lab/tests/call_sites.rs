//! `freestone record --stacks`, and the call sites that `freestone trace` shows then.

mod harness;

use harness::{command, figures, file, freestone, holds, names_beside, printed, program, refuses, succeeded};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Two functions that allocate, one ten times as much as the other.
const SITES: &str = r"
#include <stdlib.h>
__attribute__((noinline)) void *much(void) { void *block = malloc(1000); *(volatile char *)block = 1; return block; }
__attribute__((noinline)) void *little(void) { void *block = malloc(100); *(volatile char *)block = 1; return block; }
int main(void) {
    for (int i = 0; i < 5000; i++) { free(much()); free(little()); }
    return 0;
}";

#[test]
fn a_trace_recorded_with_stacks_shows_call_sites_and_a_copy_without_them_has_no_addresses() {
    let Some(program) = program("sites", SITES) else { return };
    let trace = file("sites.trace");
    succeeded(&command(&["record", "--stacks=1k", "-o", &trace, "--", &program]).output().expect("the lab runs"));
    let shown = printed(&["trace", &trace]);
    holds(&shown, &["Call sites", "much", "little"]);
    assert!(shown.find("much") < shown.find("little"), "{shown}");
    let seen = figures(&trace);
    let per_call = seen["used_bytes"].as_f64().expect("a number") / seen["events"].as_f64().expect("a number");
    assert!(per_call <= 8.0 && seen["call_sites"]["sites"][0]["stack"].is_array(), "{per_call}");

    let stripped = file("sites-stripped.trace");
    succeeded(&freestone(&["trace", &trace, "--strip", &stripped]));
    assert!(figures(&stripped)["call_sites"].is_null());
    refuses(&["record", "--stacks", "--strip", "--", "true"], &["cannot be used with"]);
    refuses(&["record", "--stacks=0", "--", "true"], &["--stacks", "out of range", "takes 1 to "]);
    let bad = ["record", "-a", "freestone:decay_ms=abc", "--", "true"];
    refuses(&bad, &["'freestone:decay_ms=abc'", "'abc' is not a number", "decay_ms takes 0 to "]);

    // The earlier trace is replaced with the profile beside it.
    succeeded(&command(&["record", "-o", &trace, "--", &program]).output().expect("the lab runs"));
    assert!(figures(&trace)["call_sites"].is_null());
    let left = fs::read_dir(Path::new(&trace).parent().expect("a folder")).expect("it can be read");
    let is_profile = |name: String| name.starts_with("sites.trace.") && name.ends_with(".heap");
    assert!(!left.flatten().any(|entry| is_profile(entry.file_name().to_string_lossy().into_owned())));
}

/// Allocates 100 MB, or 10 kB and then goes on as a program that does.
const REPLACED: &str = r"
#include <stdlib.h>
#include <unistd.h>
static void *kept[1000];
__attribute__((noinline)) void in_first(void) { for (int i = 0; i < 10; i++) kept[i] = malloc(1000); }
__attribute__((noinline)) void in_second(void) { for (int i = 0; i < 1000; i++) kept[i] = malloc(100000); }
int main(int n, char **arguments) {
    if (n > 1) { in_second(); return 0; }
    in_first();
    return execl(arguments[0], arguments[0], arguments[0], NULL);
}";

/// Allocates 100 MB, and then 10 kB in a child.
const FORKED: &str = r"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *kept[1010];
__attribute__((noinline)) void in_parent(void) { for (int i = 0; i < 1000; i++) kept[i] = malloc(100000); }
__attribute__((noinline)) void in_child(void) { for (int i = 0; i < 10; i++) kept[1000 + i] = malloc(1000); }
int main(void) {
    in_parent();
    if (fork() == 0) { in_child(); exit(0); }
    return wait(NULL) < 0;
}";

/// The traces at `trace` and beside it, the first one first, as `freestone trace` has them.
fn all_figures(trace: &str) -> Vec<Value> {
    let mut names = names_beside(trace);
    names.retain(|name| !name.ends_with(".heap"));
    names.sort_unstable();
    names.iter().map(|name| figures(&file(name))).collect()
}

#[test]
fn call_sites_are_of_the_program_whose_trace_it_is_and_a_child_has_its_parents_too() {
    let (replaced, forked) = (program("replaced", REPLACED), program("forked", FORKED));
    let (Some(replaced), Some(forked)) = (replaced, forked) else { return };
    let trace = |name: &str, program: &str| {
        let trace = file(name);
        names_beside(&trace).iter().for_each(|old| fs::remove_file(file(old)).expect("an old trace"));
        succeeded(&freestone(&["record", "--stacks=1k", "-o", &trace, "--", program]));
        all_figures(&trace)
    };
    let one_after_the_other = trace("replaced.trace", &replaced);
    let [first, second] = one_after_the_other.as_slice() else { panic!("{one_after_the_other:?}") };
    assert!(first["call_sites"].is_null(), "{first}");
    holds(&second["call_sites"].to_string(), &["in_second"]);

    let parent_and_child = trace("forked.trace", &forked);
    let [parent, child] = parent_and_child.as_slice() else { panic!("{parent_and_child:?}") };
    assert_eq!(parent["warnings"], json!([]));
    holds(&child["call_sites"].to_string(), &["in_parent", "in_child"]);
    holds(&child["warnings"].to_string(), &["forked from another", "include what that had allocated"]);
}

//! Each call of the kernel fails, in every micro workload: the n-th, once or from then on, completely or half-way.
//!
//! Afterwards: every call returned null or a valid block, live blocks have their contents, nothing was written where nothing is mapped, `check`
//! holds, and when all is freed and given back, the kernel has mapped as many bytes as the page heap's counts say.

mod play;
mod workloads;

use crate::config::key;
use crate::testing::World;
use freestone_os::Errno;
use freestone_os::fake::Failure;
use play::Play;
use std::format;
use std::string::String;
use std::vec::Vec;
use workloads::{Setting, WORKLOADS, Workload};

const MIB: usize = 1 << 20;

fn world_for(option: Setting) -> World {
    let world = World::new(4096);
    if let Some((index, value)) = option {
        world.set(index, value);
        if index == key::THP {
            world.os().give_huge_pages(2 * MIB);
        }
    }
    world
}

/// Runs a workload while the kernel fails as planned; returns what went wrong.
fn run(workload: Workload, option: Setting, failure: Failure, half_way: bool) -> Result<(), String> {
    let case = || {
        let world = world_for(option);
        if half_way {
            world.os().plan_half_way(failure);
        } else {
            world.os().plan(Some(failure));
        }
        let mut play = Play::new(&world);
        workload(&mut play);
        play.check();
        world.os().plan(None);
        // Otherwise the address range could not be reserved, and what was mapped of it could not be unmapped.
        let is_open = world.shared.pages.layout().n_pages > 0;
        play.end(if is_open { 0 } else { world.os().committed_bytes() });
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(case))
        .map_err(|_| format!("{failure:?}, half-way: {half_way}"))
}

#[test]
#[cfg_attr(miri, ignore = "thousands of worlds; the streams of `any/tests.rs` fail calls under miri")]
fn whatever_call_of_the_kernel_fails_the_heap_is_whole_and_nothing_is_lost() {
    let (mut n_cases, mut wrong) = (0, Vec::new());
    for (name, workload, option) in WORKLOADS {
        let world = world_for(option);
        world.os().plan(None);
        let mut whole = Play::new(&world);
        workload(&mut whole);
        let n_calls = world.os().n_calls();
        whole.end(0);
        for nth_call in 0..n_calls {
            for errno in [Errno::NOMEM, Errno::AGAIN, Errno::INVAL, Errno::FAULT] {
                for (for_good, half_way) in [(false, false), (false, true), (true, false), (true, true)] {
                    n_cases += 1;
                    let failure = Failure { nth_call, errno, for_good };
                    wrong.extend(run(workload, option, failure, half_way).err().map(|what| format!("{name}: {what}")));
                }
            }
            // The address is taken by another mapping.
            n_cases += 1;
            let failure = Failure { nth_call, errno: Errno::EXIST, for_good: false };
            wrong.extend(run(workload, option, failure, true).err().map(|what| format!("{name}: {what}")));
        }
        std::println!("{name}: {n_calls} calls");
    }
    std::println!("{n_cases} cases of a failing call");
    assert!(wrong.is_empty(), "{} cases went wrong: {:#?}", wrong.len(), wrong.iter().take(20).collect::<Vec<_>>());
}

//! A central list that refills caches: with one object at a time, or with a batch whose size is known before the walk.
//!
//! Source: experiment C (Go's mcentral): `n = min(wanted, capacity - in use)`, one lock, one walk, one splice, compared with taking the lock for
//! every object. The lists belong to the workload (indices linked in an array), so that only the refill differs. Threads refill a cache, use
//! it up, and return the objects in the same way. An operation is one object.
//!
//! Does not show: any allocator; `binary_trees` shows what remains of the difference in a whole program (published: -8.7 %).

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use std::sync::{Arc, Mutex};
use std::thread;

pub(crate) static WORKLOAD: Workload = Workload {
    name: "central_refill",
    models: "threads that refill caches from one central list",
    hides: "the allocator: the lists belong to the workload",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [4_000_000, 10_000_000, 60_000_000], "objects in total").at_least_one(),
        Param::fixed("threads", 2, "threads").at_least_one(),
        Param::fixed("wanted", 32, "objects that a cache requests"),
        Param::fixed("batch", 1, "1: one lock for the whole refill; 0: one for each object"),
    ],
    run,
    run_on_null: None,
};

/// A free list of objects; each holds the index of the next.
struct Central {
    next: Vec<u32>,
    head: u32,
    free: usize,
}

const END: u32 = u32::MAX;

impl Central {
    fn new(objects: u32) -> Self {
        Self { next: (1..objects).chain([END]).collect(), head: 0, free: objects as usize }
    }

    /// Moves up to `wanted` objects into `cache`; their number is known before the walk.
    fn take(&mut self, wanted: usize, cache: &mut Vec<u32>) {
        for _ in 0..wanted.min(self.free) {
            cache.push(self.head);
            self.head = self.next[self.head as usize];
        }
        self.free -= wanted.min(self.free);
    }

    /// Returns an object.
    fn give(&mut self, object: u32) {
        self.next[object as usize] = self.head;
        self.head = object;
        self.free += 1;
    }
}

fn run(params: &Params, meter: &mut Meter) -> Outcome {
    let (threads, wanted) = (params.get("threads").max(1), params.size("wanted").max(1));
    let refills = params.get("ops").div_ceil(threads * wanted as u64);
    let batched = params.get("batch") != 0;
    let objects = (threads as usize * wanted) as u32;
    let central = Arc::new(Mutex::new(Central::new(objects)));
    let taken: u64 = meter.section(|_| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let central = Arc::clone(&central);
                thread::spawn(move || refill_and_return(&central, refills, wanted, batched))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(0)).sum()
    });
    if central.lock().is_ok_and(|central| central.free != objects as usize) {
        broken("the central list lost an object");
    }
    Outcome::new(taken, taken)
}

fn refill_and_return(central: &Mutex<Central>, refills: u64, wanted: usize, batched: bool) -> u64 {
    let mut cache = Vec::with_capacity(wanted);
    let mut taken = 0;
    for _ in 0..refills {
        if batched {
            if let Ok(mut central) = central.lock() {
                central.take(wanted, &mut cache);
            }
        } else {
            for _ in 0..wanted {
                if let Ok(mut central) = central.lock() {
                    central.take(1, &mut cache);
                }
            }
        }
        taken += cache.len() as u64;
        give_back(central, &mut cache, batched);
    }
    taken
}

fn give_back(central: &Mutex<Central>, cache: &mut Vec<u32>, batched: bool) {
    if batched {
        if let Ok(mut central) = central.lock() {
            cache.drain(..).for_each(|object| central.give(object));
        }
    } else {
        for object in cache.drain(..) {
            if let Ok(mut central) = central.lock() {
                central.give(object);
            }
        }
    }
}

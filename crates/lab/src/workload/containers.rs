//! Containers of the standard library: strings, vectors and hash maps, as ordinary programs use them.
//!
//! - `string_churn`: strings are built, joined, split and dropped, as a text-processing service does.
//! - `vec_growth`: many vectors grow from empty to 32 elements by pushing (freestone's own goal).
//! - `hash_map`: a map with string keys is filled while every fourth insertion also removes a key; it rehashes as it grows.
//!
//! The hash function has a fixed key, so that runs repeat.
//!
//! Does not show: the allocator alone; copying and hashing are part of the time.

use crate::workload::definition::{Outcome, PrimaryFigure, Workload};
use crate::workload::failure::broken;
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::random::Random;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;

pub(crate) static STRINGS: Workload = Workload {
    name: "string_churn",
    models: "text that is built, joined, split and dropped",
    hides: "the allocator alone: copying is part of the time",
    shows: PrimaryFigure::Time,
    params: &[Param::scaled("ops", [300_000, 1_000_000, 5_000_000], "sentences").at_least_one()],
    run: strings,
    run_on_null: None,
};

pub(crate) static VECTORS: Workload = Workload {
    name: "vec_growth",
    models: "vectors that grow from empty by pushing",
    hides: "vectors that are created with the right capacity",
    shows: PrimaryFigure::Time,
    params: &[
        Param::scaled("ops", [2_000_000, 5_000_000, 30_000_000], "vectors").at_least_one(),
        Param::fixed("elements", 32, "elements of 8 bytes in each"),
    ],
    run: vectors,
    run_on_null: None,
};

pub(crate) static MAP: Workload = Workload {
    name: "hash_map",
    models: "a map with string keys that grows while keys are removed",
    hides: "the allocator alone: hashing is part of the time",
    shows: PrimaryFigure::Time,
    params: &[Param::scaled("ops", [500_000, 1_500_000, 8_000_000], "insertions").at_least_one()],
    run: map,
    run_on_null: None,
};

fn strings(params: &Params, meter: &mut Meter) -> Outcome {
    let ops = params.get("ops");
    let checksum = meter.section(|_| {
        let mut random = Random::new(1);
        let mut kept: Vec<String> = (0..256).map(|_| String::new()).collect();
        let mut checksum = 0_u64;
        for turn in 0..ops {
            let words: Vec<String> = (0..random.within(2, 12)).map(|_| format!("word-{:x}", random.next())).collect();
            let sentence = words.join(" ");
            let upper: Vec<String> = sentence.split(' ').map(str::to_uppercase).collect();
            if upper.len() != words.len() {
                broken("a sentence lost a word");
            }
            checksum = checksum.wrapping_add(sentence.bytes().map(u64::from).sum());
            kept[turn as usize % 256] = upper.concat();
        }
        checksum
    });
    Outcome::new(ops, checksum)
}

fn vectors(params: &Params, meter: &mut Meter) -> Outcome {
    let (ops, elements) = (params.get("ops"), params.get("elements"));
    let checksum = meter.section(|_| {
        let mut checksum = 0_u64;
        for seed in 0..ops {
            let mut vector = Vec::new();
            for element in 0..elements {
                vector.push(black_box(element + seed));
            }
            checksum = checksum.wrapping_add(vector.iter().sum::<u64>());
            black_box(vector);
        }
        checksum
    });
    let all =
        (0..ops).fold(0_u64, |sum, seed| sum.wrapping_add(elements * seed + elements * elements.saturating_sub(1) / 2));
    if checksum != all {
        broken("a vector lost an element while it grew");
    }
    Outcome::new(ops, checksum)
}

fn map(params: &Params, meter: &mut Meter) -> Outcome {
    let ops = params.get("ops");
    let checksum = meter.section(|_| {
        let mut map: HashMap<String, Vec<u64>, BuildHasherDefault<DefaultHasher>> = HashMap::default();
        let mut random = Random::new(2);
        let mut checksum = 0_u64;
        for turn in 0..ops {
            let key = format!("key-{}", random.below(ops as usize / 4 + 1));
            map.entry(key).or_default().push(turn);
            if turn % 4 == 3 {
                let gone = map.remove(&format!("key-{}", random.below(ops as usize / 4 + 1)));
                checksum = checksum.wrapping_add(gone.map_or(0, |values| values.iter().sum()));
            }
        }
        checksum.wrapping_add(map.values().flatten().sum())
    });
    Outcome::new(ops, checksum)
}

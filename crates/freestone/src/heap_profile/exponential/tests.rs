extern crate std;
use super::*;
use crate::random::RandomNumbers;

#[test]
fn logarithm_and_exponential_are_those_of_the_standard_library() {
    for n in (1..2000).step_by(if cfg!(miri) { 37 } else { 1 }) {
        let x = f64::from(n) * f64::from(n) / 7919.0;
        assert!((ln(x) - x.ln()).abs() < 1e-9 * (1.0 + x.ln().abs()), "{x}");
        let exact = -(-x).exp_m1();
        assert!((one_less_exp(x) - exact).abs() < 1e-14, "{x}");
        let small = x * 1e-9;
        assert!((one_less_exp(small) / -(-small).exp_m1() - 1.0).abs() < 1e-13, "{small}");
    }
    assert!(ln(f64::MIN_POSITIVE) < -700.0);
}

#[test]
fn the_smallest_and_the_largest_random_number_have_a_distance_too() {
    assert!((bytes_until(1, 0) - 54.0 * LN_2).abs() < 1e-9);
    assert!((0.0..1e-9).contains(&bytes_until(1, u64::MAX)));
}

#[test]
fn a_block_is_sampled_as_often_as_its_weight_says() {
    const DRAWS: u32 = if cfg!(miri) { 300 } else { 100_000 };
    let (random, interval) = (RandomNumbers::new(), 4096);
    for block_bytes in [16usize, 1024, 4096, 32_768] {
        let until = |_| allocations_until(interval, block_bytes, random.draw(|| 1)) as f64;
        let mean = (0..DRAWS).map(until).sum::<f64>() / f64::from(DRAWS);
        let chance = -(-(block_bytes as f64) / interval as f64).exp_m1();
        // A geometric number has this standard deviation; the mean of so many has it divided by the root of their count.
        let sigma = (1.0 - chance).sqrt() / chance / f64::from(DRAWS).sqrt();
        assert!((mean - 1.0 / chance).abs() < 4.0 * sigma + 1e-9, "{block_bytes}: {mean}, not {}", 1.0 / chance);
        let (blocks, bytes) = weight_of(block_bytes, interval).estimate();
        assert!((blocks * chance - 1.0).abs() < 1e-4 && (bytes * chance / block_bytes as f64 - 1.0).abs() < 1e-3);
    }
}

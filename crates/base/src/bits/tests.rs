use super::*;

#[test]
fn lowest_set_from_agrees_with_a_loop_on_every_16_bit_word() {
    for word in (0..=u16::MAX as u64).step_by(if cfg!(miri) { 509 } else { 1 }) {
        for from in 0..=17 {
            let expected = (from..16).find(|bit| word >> bit & 1 == 1);
            assert_eq!(lowest_set_from(word, from), expected);
        }
    }
    assert_eq!(lowest_set_from(u64::MAX, 64), None);
    assert_eq!(lowest_set_from(1 << 63, 63), Some(63));
}

#[test]
fn two_level_log2_never_skips_a_step_and_never_goes_back() {
    for sub_log2 in 0..6 {
        let mut last = 0;
        for value in 0..if cfg!(miri) { 2_000 } else { 100_000 } {
            let step = two_level_log2(value, sub_log2);
            assert!(step == last || step == last + 1, "value {value}: {last} then {step}");
            last = step;
        }
    }
}

#[test]
fn each_doubling_has_its_own_steps_of_equal_length() {
    for sub_log2 in 0..6 {
        let steps = 1usize << sub_log2;
        (0..steps).for_each(|value| assert_eq!(two_level_log2(value, sub_log2), value));
        for first in sub_log2..usize::BITS {
            for second in 0..steps {
                let least = (1usize << first) + second * ((1usize << first) >> sub_log2);
                let index = (first - sub_log2 + 1) as usize * steps + second;
                assert_eq!(two_level_log2(least, sub_log2), index, "{least} in {steps} steps");
                let longest = least + (((1usize << first) >> sub_log2) - 1);
                assert_eq!(two_level_log2(longest, sub_log2), index, "{longest} in {steps} steps");
            }
        }
    }
}

#[test]
fn log2_floor_is_the_highest_bit() {
    for bit in 0..usize::BITS {
        assert_eq!(log2_floor(1 << bit), bit);
        assert_eq!(log2_floor(usize::MAX >> (usize::BITS - 1 - bit)), bit);
    }
}

use super::*;

#[test]
fn every_byte_of_a_block_is_cleared_and_none_behind_it() {
    for size in (0..300).step_by(if cfg!(miri) { 37 } else { 1 }) {
        let mut block = [0x5a; 300];
        write(&mut block[..size]);
        assert!(block[..size].iter().all(|&byte| byte == 0) && block[size..].iter().all(|&byte| byte == 0x5a));
    }
}

#[test]
fn a_write_to_any_byte_is_seen_where_it_is() {
    for size in [1, 7, 8, 63, 64, 65, 200, 4096] {
        let mut block = std::vec![0; size];
        assert_eq!(damage(&block), None);
        for at in (0..size).step_by(if cfg!(miri) { 61 } else { 1 }) {
            block[at] = 1;
            assert_eq!(damage(&block), Some(at), "of {size}");
            block[at] = 0;
        }
    }
}

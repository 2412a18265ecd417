//! Blocks set aside.
use super::*;

fn starts(blocks: &Blocks, numbers: impl IntoIterator<Item = usize>) -> Vec<*mut u8> {
    numbers.into_iter().map(|at| blocks.start(at)).collect()
}

/// A bin with `len` blocks, of which the highest number is the first; beside it are those from `len` on.
fn with(blocks: &Blocks, len: usize, n_aside: usize) -> Bins {
    let bins = Bins::empty();
    (len..len + n_aside).for_each(|at| bins.put(blocks.free_block(at)));
    bins.set_aside(CLASS);
    (0..len).for_each(|at| bins.put(blocks.free_block(at)));
    assert_eq!((bins.len(CLASS), bins.len_with_aside(CLASS)), (len as i64, (len + n_aside) as i64));
    bins
}

#[test]
fn all_blocks_are_set_aside_once() {
    let blocks = Blocks::new(5);
    let bins = with(&blocks, 0, 0);
    bins.set_aside(CLASS);
    assert!(!bins.has_aside(CLASS) && bins.len(CLASS) == 0, "there are none");
    let bins = with(&blocks, 2, 3);
    bins.set_aside(CLASS);
    assert_eq!((bins.len(CLASS), bins.len_with_aside(CLASS)), (2, 5), "some are aside already");
    assert_eq!(pop_all(&bins), starts(&blocks, [1, 0]));
    assert_eq!(bins.put_back(CLASS, || View::EMPTY), Ok(true));
    assert_eq!(pop_all(&bins), starts(&blocks, [4, 3, 2]));
}

#[test]
fn a_bin_of_which_blocks_are_aside_is_idle_if_none_was_allocated() {
    let blocks = Blocks::new(3);
    let bins = with(&blocks, 0, 3);
    assert!(bins.is_idle_since_last_asked(CLASS));
}

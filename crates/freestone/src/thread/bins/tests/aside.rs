//! Blocks set aside: every number of blocks that a cut can find, keep, and have beside the bin.
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
fn a_cut_leaves_as_many_as_it_should_and_loses_none_whatever_is_aside() {
    let blocks = Blocks::new(12);
    for (len, n_aside) in (0..9).flat_map(|len| [0, 1, 3].map(|n_aside| (len, n_aside))) {
        for keep in 0..len + 3 {
            let bins = with(&blocks, len, n_aside);
            let stay = bins.set_aside_all_but(CLASS, keep as i64, len as i64, &View::EMPTY);
            let (case, kept) = (std::format!("{keep} of {len}, and {n_aside}"), keep.min(len));
            assert_eq!((stay, bins.len(CLASS)), (kept as i64, kept as i64), "{case}");
            assert_eq!(bins.len_with_aside(CLASS), (len + n_aside) as i64, "{case}");
            assert_eq!(bins.has_aside(CLASS), n_aside + len - kept > 0, "{case}");
            // The newest stay if these are few, and no link has to be followed to the blocks aside.
            let is_cut_behind = n_aside == 0 && keep <= len - kept;
            let stays: Vec<_> =
                if is_cut_behind { (len - kept..len).rev().collect() } else { (0..kept).rev().collect() };
            assert!((0..len).all(|at| bins.contains(CLASS, blocks.start(at).cast(), &View::EMPTY)), "{case}");
            assert_eq!(pop_all(&bins), starts(&blocks, stays), "{case}");
            let comes_back = bins.len_with_aside(CLASS);
            assert_eq!(bins.put_back(CLASS, || View::EMPTY), Ok(comes_back > 0), "{case}");
            assert_eq!((bins.len(CLASS), bins.has_aside(CLASS)), (comes_back, false), "{case}");
            assert_eq!(pop_all(&bins).len() as i64, comes_back, "{case}");
        }
    }
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

use super::*;
use crate::config::{Settings, key};

const CLASS: usize = 3;

/// Whether the bound on bytes free inside spans is passed, if it is `bound_bytes`.
fn has_more_than(usage: &Usage, bound_bytes: usize) -> bool {
    let settings = Settings::new();
    settings.set(key::DIRTY_MAX, std::format!("{bound_bytes}").as_bytes()).unwrap();
    usage.exceeds_bound_in_spans(&settings, false)
}

#[test]
fn free_blocks_are_published_as_bytes_and_once() {
    let (accounts, usage) = (Accounts::new(), Usage::new());
    accounts.add_free(CLASS, 10);
    accounts.add_free(CLASS, -4);
    accounts.publish_free(&usage);
    accounts.publish_free(&usage);
    let bytes = 6 * block_bytes(CLASS);
    assert!(has_more_than(&usage, bytes - 1) && !has_more_than(&usage, bytes));
}

#[test]
fn only_the_change_of_live_blocks_is_published() {
    let (accounts, usage) = (Accounts::new(), Usage::new());
    accounts.publish_live(CLASS, 100, &usage);
    accounts.publish_live(CLASS, 100, &usage);
    accounts.publish_live(CLASS, 150, &usage);
    assert_eq!(usage.peak_live_bytes(), 150 * block_bytes(CLASS) as u64);
    accounts.publish_live(CLASS, 20, &usage);
    accounts.publish_live(CLASS + 1, 1, &usage);
    assert_eq!(usage.peak_live_bytes(), 150 * block_bytes(CLASS) as u64, "the peak stays");
}

#[test]
fn a_cached_run_that_comes_and_goes_is_not_published_unless_more_is_live_than_was() {
    let (accounts, usage) = (Accounts::new(), Usage::new());
    accounts.publish_large(1 << 20, &usage);
    assert!(!accounts.add_large(-65536));
    assert_eq!(accounts.unpublished_large(), -65536);
    assert!(!accounts.add_large(65536), "as before");
    assert!(accounts.add_large(65536), "one more than was published");
    accounts.publish_large(0, &usage);
    assert_eq!((accounts.unpublished_large(), usage.peak_live_bytes()), (0, (1 << 20) + 65536));
}

#[test]
fn what_was_counted_is_published_with_the_next_change() {
    let (accounts, usage) = (Accounts::new(), Usage::new());
    accounts.publish_large(1 << 20, &usage);
    let _ = accounts.add_large(-(1 << 20));
    accounts.publish_large(1 << 20, &usage);
    assert_eq!(usage.peak_live_bytes(), 1 << 20, "two blocks were never live at once");
}

use super::*;
use alloc::collections::BTreeSet;

const N_PAGES: usize = 200;

#[test]
fn it_is_a_set_of_pages_whatever_ranges_are_put_in_and_taken_out() {
    let (mut set, mut others, mut shadow) = (PageSet::with_room(N_PAGES), PageSet::with_room(N_PAGES), BTreeSet::new());
    others.set(30..130, true);
    let mut random = 1_u64;
    let mut draw = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % below
    };
    for _ in 0..if cfg!(miri) { 30 } else { 3000 } {
        let start = draw(N_PAGES);
        let pages = start..start + draw(N_PAGES - start + 1);
        let are_in = draw(2) == 0;
        set.set(pages.clone(), are_in);
        pages.for_each(|page| _ = if are_in { shadow.insert(page) } else { shadow.remove(&page) });
        let asked = draw(N_PAGES)..N_PAGES - draw(20);
        assert_eq!(set.has_all(asked.clone()), asked.clone().all(|page| shadow.contains(&page)), "{asked:?}");
        assert_eq!(set.has_any(asked.clone()), asked.clone().any(|page| shadow.contains(&page)), "{asked:?}");
        assert_eq!(set.len(), shadow.len());
        assert!(set.pages().eq(shadow.iter().copied()));
        assert!(set.without(&others).eq(shadow.iter().copied().filter(|page| !(30..130).contains(page))));
    }
}

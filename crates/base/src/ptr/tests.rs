#![allow(unsafe_code)]
use super::*;

/// Permissive by nature: an exposed address is what `from_exposed` exists for.
#[test]
#[cfg_attr(miri, ignore = "Miri runs this crate with strict provenance")]
fn an_exposed_address_leads_back_to_its_memory() {
    let mut value = 7u32;
    let address = expose(&raw mut value);
    assert_eq!(address, (&raw const value).addr());
    let back: *mut u32 = from_exposed(address);
    // SAFETY: the address of `value`, which lives and was exposed above.
    unsafe { *back += 1 };
    assert_eq!(value, 8);
}

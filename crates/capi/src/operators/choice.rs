//! Whose functions the operators call: chosen once, when the object is loaded. `bindings` has the picture.
#![allow(unsafe_code)]
//!
//! # Safety
//! The loader has relocated the object before it runs constructors, and runs them before any code calls a function of the object.

use super::bindings::{bindings, call_bound};
use super::{delete, mixture, new, slots};
use heap::door;

/// Among the first constructors of the object.
#[used]
#[unsafe(link_section = ".init_array.00000")]
static AT_LOAD: extern "C" fn() = choose;

/// Leaves the shortcut open if all names are bound to the library's functions.
extern "C" fn choose() {
    let bound = bindings();
    let (operators, object) = (&bound.operators, &bound.object);
    let allocators = [
        (bound.malloc as usize, object.malloc),
        (bound.free as usize, object.free),
        (bound.aligned_alloc as usize, object.aligned_alloc),
    ];
    let operators = [
        (operators.new as usize, new::new as *const () as usize),
        (operators.new_array as usize, new::new_array as *const () as usize),
        (operators.new_aligned as usize, new::new_aligned as *const () as usize),
        (operators.new_array_aligned as usize, new::new_array_aligned as *const () as usize),
        (operators.delete as usize, delete::delete as *const () as usize),
        (operators.delete_array as usize, delete::delete_array as *const () as usize),
        (operators.delete_aligned as usize, delete::delete_aligned as *const () as usize),
        (operators.delete_array_aligned as usize, delete::delete_array_aligned as *const () as usize),
    ];
    let is_ours = |&(address, ours): &(usize, usize)| {
        // SAFETY: header and section are this object's, and it is relocated.
        address == ours || unsafe { slots::contain(object.header, object.dynamic, ours) }
    };
    let follows = !allocators.iter().all(is_ours);
    if follows || !operators.iter().all(is_ours) {
        // SAFETY: this is a constructor, and no code has called a function of the object yet.
        unsafe { call_bound(follows) };
    }
    door::judge_families(mixture::has_none);
}

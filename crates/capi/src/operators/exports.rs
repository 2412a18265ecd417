//! The mangled names.
#![allow(unsafe_code)]
//!
//! They are weak, as those of a C++ runtime are: a program that defines some of them and links against the archive gets its own. Rust cannot
//! define a weak symbol, so the assembler does, by giving the functions of [`new`](super::new) and [`delete`](super::delete) a second name.
//!
//! rustc passes the linker a list of the names to export, and everything else becomes local. It lists the names of Rust functions and statics;
//! [`EXPORTED`] is one, and its name is a pattern, as such lists may contain them.
//!
//! # Safety
//! Each name is given to a function of the signature that the C++ ABI says. A mangled name is nw for new, na for new[], dl for delete or da for
//! delete[], and then the parameters: m is a size, Pv a pointer, St11align_val_t an alignment, RKSt9nothrow_t the tag.

use super::{delete, new};
use core::ffi::CStr;

/// Matches the names below, in the list of what the linker exports.
#[unsafe(export_name = "_Z[nd][wal]*")]
static EXPORTED: u8 = 0;

/// A name that ends with a zero, as C has it.
const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a zero is missing, or not at the end"),
    }
}

macro_rules! exports {
    ($($name:literal = $function:path),* $(,)?) => {
        core::arch::global_asm!(
            $(concat!(".weak ", $name), concat!(".set ", $name, ", {}"),)*
            $(sym $function,)*
        );

        /// Whether `is_wanted` says so of any name and the address of the function here that has it.
        #[inline(never)]
        pub(super) fn any(is_wanted: &dyn Fn(&'static CStr, usize) -> bool) -> bool {
            $(is_wanted(const { c_name(concat!($name, "\0")) }, $function as *const () as usize))||*
        }
    };
}

exports! {
    "_Znwm" = new::new,
    "_Znam" = new::new_array,
    "_ZnwmRKSt9nothrow_t" = new::new_nothrow,
    "_ZnamRKSt9nothrow_t" = new::new_array_nothrow,
    "_ZnwmSt11align_val_t" = new::new_aligned,
    "_ZnamSt11align_val_t" = new::new_array_aligned,
    "_ZnwmSt11align_val_tRKSt9nothrow_t" = new::new_aligned_nothrow,
    "_ZnamSt11align_val_tRKSt9nothrow_t" = new::new_array_aligned_nothrow,
    "_ZdlPv" = delete::delete,
    "_ZdaPv" = delete::delete_array,
    "_ZdlPvm" = delete::delete_sized,
    "_ZdaPvm" = delete::delete_array_sized,
    "_ZdlPvRKSt9nothrow_t" = delete::delete_nothrow,
    "_ZdaPvRKSt9nothrow_t" = delete::delete_array_nothrow,
    "_ZdlPvSt11align_val_t" = delete::delete_aligned,
    "_ZdaPvSt11align_val_t" = delete::delete_array_aligned,
    "_ZdlPvmSt11align_val_t" = delete::delete_sized_aligned,
    "_ZdaPvmSt11align_val_t" = delete::delete_array_sized_aligned,
    "_ZdlPvSt11align_val_tRKSt9nothrow_t" = delete::delete_aligned_nothrow,
    "_ZdaPvSt11align_val_tRKSt9nothrow_t" = delete::delete_array_aligned_nothrow,
}

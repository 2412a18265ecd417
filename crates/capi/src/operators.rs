//! The C++ operators `new` and `delete`, all forms of C++17.
//!
//! | file | owns |
//! |---|---|
//! | [`new`] | the forms that allocate |
//! | [`delete`] | the forms that free |
//! | [`failure`] | no memory: the new-handler, `std::bad_alloc`, and what the C++ runtime must do for that |
//! | [`bindings`] | whose functions the process uses |
//! | [`choice`] | whether the operators call these, chosen when the library is loaded |
//! | [`shortcut`] | the hot paths, which can be closed |
//! | [`slots`] | where an object's calls go |
//! | [`mixture`] | whether a part of the process has other operators |
//! | [`exports`] | the mangled names |
//!
//! A form takes the hot path of `malloc` or `free`. It goes another way where the process is not wholly ours (`bindings`): the operators of a C++
//! runtime call `malloc` and `free`, whoever defines them, and each form that the standard defines by another form calls that one, whoever
//! defines it. So do these, and a program that replaces any of them sees its own called.
//!
//! The library depends on no C++ runtime: it calls what it finds of one, and C programs can load it.
//!
//! `delete` finds the class of a block in the page map, as `free` does, whatever size and alignment it is told: a wrong size, which other
//! allocators let pass, corrupts nothing here. A watched heap, with the option `harden` at `checks` or above, reports it, and a block that the wrong
//! form deletes. `docs/decisions/0022-the-cpp-operators.md` has the measurements.
//!
//! # Exceptions
//! They pass through the frames of this library, which own nothing and have unwind tables (the platform's default). The functions of the program
//! that may throw, and those here that call them, are declared `extern "C"` or are Rust's, not `extern "C-unwind"`: a build that aborts
//! on panics would end the process when an exception reaches a frame of a function that may unwind (RFC 2945), and leaves other frames alone.
//! The hot functions leave by a jump, so that their frame has gone by then. `tests/operators.rs` throws through each form, in each
//! way of linking.

pub(crate) mod bindings;
mod choice;
mod delete;
mod exports;
mod failure;
mod mixture;
mod new;
mod shortcut;
mod slots;

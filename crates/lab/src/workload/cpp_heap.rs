//! C++'s operators as a heap under test.
//!
//! A C++ program calls `operator new` and `delete`. Libraries of allocators export them beside `malloc`; under others, the C++ library's call `malloc` and
//! `free`. [`CppHeap`] calls those that a C++ program would: the first of the name in the order in which libraries were loaded, the C++ library last.
//!
//! # Safety
//! Every block comes from `operator new` with the requested size, and goes back to it once, because releasing consumes it. The functions have the signatures
//! that the C++ ABI for 64-bit processors gives them.
#![allow(unsafe_code)]

use crate::workload::params::{Param, Params};
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::Heap;
use crate::workload::{failure, loaded_allocator};
use std::ffi::{CStr, c_void};
use std::hint::black_box;
use std::ptr::NonNull;

/// The parameter of workloads that can call the operators.
pub(crate) const PARAM: Param =
    Param::fixed("operators", 0, "0: malloc and free; 1: C++'s new and delete; 2: new, and delete with the size");

/// The C++ library, which a program that is not in C++ has to load.
const LIBRARY: &CStr = c"libstdc++.so.6";

type New = unsafe extern "C" fn(usize) -> *mut c_void;
type Delete = unsafe extern "C" fn(*mut c_void);
type DeleteSized = unsafe extern "C" fn(*mut c_void, usize);

/// The operators of this process.
#[derive(Clone, Copy)]
pub(crate) struct CppHeap {
    new: New,
    delete: Delete,
    /// Called in place of `delete`, if sizes are to be said.
    delete_sized: Option<DeleteSized>,
}

impl CppHeap {
    /// The operators, if [`PARAM`] asks for them; ends the process if there are none.
    pub(crate) fn asked_for(params: &Params) -> Option<Self> {
        let says_size = match params.get(PARAM.name) {
            0 => return None,
            operators => operators > 1,
        };
        // SAFETY: the C++ library may be loaded at any time, and stays loaded.
        unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        let find = |name: &CStr| {
            let address = loaded_allocator::symbol(name);
            if address.is_null() { failure::lacks(name, LIBRARY) } else { address }
        };
        // SAFETY: the ABI gives this name to `operator new(std::size_t)`.
        let new = unsafe { std::mem::transmute::<*mut c_void, New>(find(c"_Znwm")) };
        // SAFETY: the ABI gives this name to `operator delete(void *)`.
        let delete = unsafe { std::mem::transmute::<*mut c_void, Delete>(find(c"_ZdlPv")) };
        // SAFETY: the ABI gives this name to `operator delete(void *, std::size_t)`.
        let sized = || unsafe { std::mem::transmute::<*mut c_void, DeleteSized>(find(c"_ZdlPvm")) };
        Some(Self { new, delete, delete_sized: says_size.then(sized) })
    }
}

impl Heap for CppHeap {
    const KEEPS_CONTENTS: bool = true;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        // SAFETY: `operator new` accepts every size. It does not return if there is no memory: no frame here catches its exception, so the process ends.
        let address = unsafe { (self.new)(black_box(size)) };
        match NonNull::new(address.cast()) {
            // SAFETY: `operator new` just returned these `size` bytes for this block alone.
            Some(address) => unsafe { Block::adopt(address, size) },
            None => failure::exhausted(size),
        }
    }

    #[inline]
    fn release(&self, block: Block) {
        let address = block.start().as_ptr().cast();
        match self.delete_sized {
            // SAFETY: `operator new` returned the address for this size, and the block is consumed here, so it is freed once.
            Some(delete_sized) => unsafe { delete_sized(address, block.size()) },
            // SAFETY: as above.
            None => unsafe { (self.delete)(address) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::params::Scale;

    static SPECS: [Param; 1] = [PARAM];

    #[test]
    fn blocks_come_from_new_and_go_back_to_either_delete_and_without_the_parameter_there_are_none() {
        for operators in 0..3 {
            let given = format!("operators={operators}");
            let params = Params::resolve(&SPECS, Scale::Quick, &[given]).expect("the parameter exists");
            let heap = CppHeap::asked_for(&params);
            assert_eq!(heap.is_some(), operators > 0);
            let Some(heap) = heap else { continue };
            assert_eq!(heap.delete_sized.is_some(), operators == 2);
            let blocks: Vec<Block> = (0..1000).map(|size| heap.allocate(size)).collect();
            for (tag, block) in blocks.iter().enumerate() {
                block.stamp(tag as u64);
            }
            for (tag, block) in blocks.into_iter().enumerate() {
                heap.verify(&block, tag as u64);
                heap.release(block);
            }
        }
    }
}

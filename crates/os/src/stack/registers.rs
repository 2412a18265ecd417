//! The registers that a stack is found by.
#![allow(unsafe_code)]
//!
//! # Safety
//! The assembly copies registers and changes nothing. A signal's context is read as the C library declares it.

/// The instructions that copy the link register, the code address, the stack pointer and the frame pointer. The link register first: of the four, the compiler may
/// have chosen that one alone for what another instruction writes.
#[cfg(all(target_arch = "aarch64", not(miri)))]
macro_rules! copy_registers {
    () => {
        "mov {link}, x30\n adr {code}, .\n mov {stack}, sp\n mov {frame}, x29"
    };
}

/// As above.
#[cfg(all(target_arch = "riscv64", not(miri)))]
macro_rules! copy_registers {
    () => {
        "mv {link}, ra\n auipc {code}, 0\n mv {stack}, sp\n mv {frame}, s0"
    };
}

/// Registers of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The instruction that it executes, or returns to.
    pub code: usize,
    /// The stack pointer.
    pub stack: usize,
    /// The frame pointer, if the code has one.
    pub frame: usize,
    /// The link register, which has the return address of a function that calls none; 0 where the processor has none.
    pub link: usize,
}

impl Registers {
    /// Those of the function that this is inlined into; `None` where they cannot be read.
    ///
    /// ```
    /// use freestone_os::stack::{OwnStack, Registers, Stack, hash_of};
    ///
    /// if let Some(at) = Registers::here() {
    ///     let (own, mut stack) = (OwnStack::new(), Stack::<16>::EMPTY);
    ///     let _ = stack.take_own(at, &own);
    ///     assert_eq!(stack.addresses().first(), Some(&at.code));
    ///     let hash = Stack::<16>::known_hash(&at, &own);
    ///     assert!(hash.is_none_or(|hash| hash == hash_of(stack.addresses())));
    /// }
    /// ```
    #[must_use]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub fn here() -> Option<Self> {
        let (code, stack, frame);
        // SAFETY: the instructions copy three registers.
        unsafe {
            core::arch::asm!(
                "lea {code}, [rip]", "mov {stack}, rsp", "mov {frame}, rbp",
                code = out(reg) code, stack = out(reg) stack, frame = out(reg) frame,
                options(nomem, nostack, preserves_flags),
            );
        }
        Some(Self { code, stack, frame, link: 0 })
    }

    /// Those of the function that this is inlined into; `None` where they cannot be read.
    #[must_use]
    #[cfg(all(any(target_arch = "aarch64", target_arch = "riscv64"), not(miri)))]
    #[inline(always)]
    pub fn here() -> Option<Self> {
        let (code, stack, frame, link);
        // SAFETY: the instructions copy four registers.
        unsafe {
            core::arch::asm!(
                copy_registers!(),
                code = out(reg) code, stack = out(reg) stack, frame = out(reg) frame, link = out(reg) link,
                options(nomem, nostack, preserves_flags),
            );
        }
        Some(Self { code, stack, frame, link })
    }

    /// Those of the function that this is inlined into; `None` where they cannot be read.
    #[must_use]
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
    #[inline(always)]
    pub fn here() -> Option<Self> {
        None
    }

    /// Those of a thread that a signal interrupted, and whether it was about to write, if that is known.
    #[cfg(all(door = "linux", target_arch = "x86_64"))]
    pub(crate) fn of_context(context: &libc::ucontext_t) -> Option<(Self, Option<bool>)> {
        /// Of the processor's error code: the access was a write.
        const WRITE: i64 = 2;
        let of = |register: libc::c_int| context.uc_mcontext.gregs[register as usize] as usize;
        let registers = Self { code: of(libc::REG_RIP), stack: of(libc::REG_RSP), frame: of(libc::REG_RBP), link: 0 };
        Some((registers, Some(of(libc::REG_ERR) as i64 & WRITE != 0)))
    }

    /// Those of a thread that a signal interrupted.
    #[cfg(all(door = "linux", target_arch = "aarch64"))]
    pub(crate) fn of_context(context: &libc::ucontext_t) -> Option<(Self, Option<bool>)> {
        let machine = &context.uc_mcontext;
        let registers = Self {
            code: machine.pc as usize,
            stack: machine.sp as usize,
            frame: machine.regs[29] as usize,
            link: machine.regs[30] as usize,
        };
        Some((registers, None))
    }

    /// Those of a thread that a signal interrupted.
    #[cfg(all(door = "linux", target_arch = "riscv64"))]
    pub(crate) fn of_context(context: &libc::ucontext_t) -> Option<(Self, Option<bool>)> {
        let of = |register: usize| context.uc_mcontext.__gregs[register] as usize;
        let registers =
            Self { code: of(libc::REG_PC), stack: of(libc::REG_SP), frame: of(libc::REG_S0), link: of(libc::REG_RA) };
        Some((registers, None))
    }

    /// Those of a thread that a signal interrupted; `None` where that is not known.
    #[cfg(all(door = "linux", not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
    pub(crate) fn of_context(_context: &libc::ucontext_t) -> Option<(Self, Option<bool>)> {
        None
    }
}

/// A return address without the bits that AArch64 signs it with.
pub(super) fn plain(code: usize) -> usize {
    /// What a user address has at most.
    const ADDRESS_BITS: u32 = 48;
    if cfg!(target_arch = "aarch64") { code & ((1 << ADDRESS_BITS) - 1) } else { code }
}

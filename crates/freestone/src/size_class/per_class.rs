//! One of something for each size class.

use super::{N_CLASSES, no_class};
use core::ops::Index;

/// One `T` for each size class, by the class's number. A number that is no class panics.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct PerClass<T>([T; N_CLASSES]);

impl<T> PerClass<T> {
    /// Those of an array.
    pub(crate) const fn new(all: [T; N_CLASSES]) -> Self {
        Self(all)
    }

    /// All, by class.
    pub(crate) fn iter(&self) -> core::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// That of a class, unchecked.
    ///
    /// # Safety
    /// - `class` is below [`N_CLASSES`].
    #[inline(always)]
    #[expect(unsafe_code, reason = "the hot paths index without a check")]
    pub(crate) unsafe fn get_unchecked(&self, class: usize) -> &T {
        // SAFETY: the class is below the array's length (this function's contract).
        unsafe { self.0.get_unchecked(class) }
    }
}

impl<T> Index<usize> for PerClass<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, class: usize) -> &T {
        if class >= N_CLASSES {
            no_class();
        }
        &self.0[class]
    }
}

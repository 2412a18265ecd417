//! Functions that the loader calls: one of the first constructors of the object that contains the allocator, and one of its last destructors.

/// Defines two statics, which have a function each called by the loader: when the object that contains them is loaded, and when it is unloaded or the
/// process ends. The code names the statics somewhere, so that the linker keeps them.
#[cfg(door = "linux")]
#[macro_export]
macro_rules! constructors {
    ($at_load:ident: $load:expr, $at_unload:ident: $unload:expr) => {
        /// One of the first constructors of the object that contains the allocator.
        #[used]
        #[unsafe(link_section = ".init_array.00000")]
        static $at_load: extern "C" fn() = $load;

        /// Among the last destructors of the object that contains the allocator.
        #[used]
        #[unsafe(link_section = ".fini_array.00000")]
        static $at_unload: extern "C" fn() = $unload;
    };
}

/// Defines two statics; the loader calls neither function. Where the process can fork, the allocator registers its handlers when it starts; there
/// is nothing else to do early, and nothing at exit.
#[cfg(not(door = "linux"))]
#[macro_export]
macro_rules! constructors {
    ($at_load:ident: $load:expr, $at_unload:ident: $unload:expr) => {
        /// A constructor that nobody calls here.
        static $at_load: extern "C" fn() = $load;

        /// A destructor that nobody calls here.
        static $at_unload: extern "C" fn() = $unload;
    };
}

//! Names of C++ and Rust as people write them.

use cpp_demangle::Symbol;

/// The readable form of a symbol's name; the name itself if it is not mangled. Hashes at the end of Rust names are left out.
pub(crate) fn demangled(name: &str) -> String {
    // The legacy names of Rust are valid names of C++ too, so Rust comes first.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z")
        && let Ok(symbol) = Symbol::new(name)
        && let Ok(text) = symbol.demangle()
    {
        return text;
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn rust_cpp_and_plain_names() {
        assert_eq!(demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(demangled("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(
            demangled("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_Zbroken"), "_Zbroken");
    }
}

//! Attributes of items: whether an item exists in test builds only.

use syn::{Attribute, Item};

/// Whether `#[cfg(…)]` selects test builds only: it names `test`, and not inside `not(…)`.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.filter_map(|attribute| attribute.meta.require_list().ok()).any(|list| names_test(list.tokens.clone()))
}

fn names_test(tokens: proc_macro2::TokenStream) -> bool {
    let mut before = String::new();
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Ident(name) if name == "test" => return true,
            proc_macro2::TokenTree::Group(group) if before != "not" && names_test(group.stream()) => return true,
            other => before = other.to_string(),
        }
    }
    false
}

/// The attributes of an item.
pub(crate) fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn is_test_item(item: &Item) -> bool {
    is_for_tests(attributes_of(item))
}

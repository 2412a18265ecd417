//! Untyped pointers: a `c_void` in a field or a parameter can hide a type of a layer above, so it counts as an arrow upward.

use crate::source::SourceFile;
use crate::source::attributes::{is_for_tests, is_test_item};
use syn::visit::{self, Visit};

/// The lines of a file where a field or a parameter has a `c_void` or a `*mut ()` in its type.
pub(super) fn untyped_pointers(file: &SourceFile) -> Vec<usize> {
    let mut finder = Finder::default();
    file.syntax.items.iter().for_each(|item| finder.visit_item(item));
    finder.lines
}

#[derive(Default)]
struct Finder {
    lines: Vec<usize>,
}

impl Finder {
    fn look_at(&mut self, of: &syn::Type) {
        let mut inside = Inside(Vec::new());
        inside.visit_type(of);
        self.lines.append(&mut inside.0);
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_item(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            self.look_at(&field.ty);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        for input in &signature.inputs {
            if let syn::FnArg::Typed(typed) = input {
                self.look_at(&typed.ty);
            }
        }
    }
}

/// Looks for the untyped pointer inside a type, wherever it is nested.
struct Inside(Vec<usize>);

impl<'ast> Visit<'ast> for Inside {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if segment.ident == "c_void" {
            self.0.push(segment.ident.span().start().line);
        }
        visit::visit_path_segment(self, segment);
    }

    fn visit_type_ptr(&mut self, pointer: &'ast syn::TypePtr) {
        if let syn::Type::Tuple(tuple) = &*pointer.elem
            && tuple.elems.is_empty()
        {
            self.0.push(pointer.star_token.spans[0].start().line);
        }
        visit::visit_type_ptr(self, pointer);
    }
}

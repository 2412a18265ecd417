//! The types and functions of a file that are too large, and do not say why in the comment above them.

use crate::source::SourceFile;
use crate::source::attributes::{is_for_tests, is_test_item};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

pub(super) const FIELDS_MOST: usize = 15;
pub(super) const FUNCTION_LINES_MOST: usize = 60;
pub(super) const PARAMETERS_MOST: usize = 6;

/// A sentence for each, beginning with the line.
pub(super) fn complaints(file: &SourceFile) -> Vec<String> {
    let mut finder = Finder { lines: file.text.lines().collect(), complaints: Vec::new() };
    file.syntax.items.iter().for_each(|item| finder.visit_item(item));
    finder.complaints
}

struct Finder<'a> {
    lines: Vec<&'a str>,
    complaints: Vec<String>,
}

impl Finder<'_> {
    /// Whether the comments and attributes right above a line contain `words`.
    fn says(&self, words: &str, line: usize) -> bool {
        let above = self.lines.iter().take(line - 1).rev();
        let above = above.take_while(|line| ["//", "#"].iter().any(|start| line.trim_start().starts_with(start)));
        above.into_iter().any(|line| line.contains(words))
    }

    fn measure(&mut self, at: Span, name: &str, (n, most): (usize, usize), what: &str, excuse: &str) {
        let line = at.start().line;
        if n > most && !self.says(excuse, line) {
            self.complaints
                .push(format!("{line}: {name} has {n} {what}, at most {most}; or say `{excuse} …` above it"));
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        // The line that the comments stand above: that of the visibility or of the first word.
        let start = signature.span();
        let n_lines = block.brace_token.span.close().end().line - start.start().line + 1;
        let name = signature.ident.to_string();
        self.measure(start, &name, (n_lines, FUNCTION_LINES_MOST), "lines", "Long because:");
        self.measure(start, &name, (signature.inputs.len(), PARAMETERS_MOST), "parameters", "Wide because:");
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_item(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.measure(
            item.struct_token.span,
            &item.ident.to_string(),
            (item.fields.len(), FIELDS_MOST),
            "fields",
            "Wide because:",
        );
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            self.function(&item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }
}

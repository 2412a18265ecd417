//! Values of constants, as far as they are arithmetic on numbers and other constants.

use std::collections::BTreeMap;
use syn::visit::Visit;
use syn::{BinOp, Expr, Lit};

/// Every constant with its expression, by name. Constants that share a name have a value if it is the same.
#[derive(Default)]
pub(super) struct Constants(BTreeMap<String, Vec<Expr>>);

impl Constants {
    pub(super) fn add(&mut self, file: &syn::File) {
        self.visit_file(file);
    }

    /// The value of an expression of constants, as `A` or `A / 1024`.
    pub(super) fn value_of(&self, expression: &str) -> Option<u64> {
        self.evaluate(&syn::parse_str(expression).ok()?, 8)
    }

    fn value(&self, name: &str, depth: u32) -> Option<u64> {
        let mut values = self.0.get(name)?.iter().map(|expression| self.evaluate(expression, depth));
        let first = values.next()??;
        values.all(|other| other == Some(first)).then_some(first)
    }

    fn evaluate(&self, expression: &Expr, depth: u32) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(value) => value.base10_parse().ok(),
                _ => None,
            },
            Expr::Paren(inner) => self.evaluate(&inner.expr, depth),
            Expr::Cast(cast) => self.evaluate(&cast.expr, depth),
            Expr::Path(path) => self.value(&path.path.segments.last()?.ident.to_string(), depth),
            // A number in a unit, as `Pages(16)`.
            Expr::Call(call) if call.args.len() == 1 => self.evaluate(call.args.first()?, depth),
            Expr::Binary(binary) => {
                let (left, right) = (self.evaluate(&binary.left, depth)?, self.evaluate(&binary.right, depth)?);
                match binary.op {
                    BinOp::Add(_) => left.checked_add(right),
                    BinOp::Sub(_) => left.checked_sub(right),
                    BinOp::Mul(_) => left.checked_mul(right),
                    BinOp::Div(_) => left.checked_div(right),
                    BinOp::Shl(_) => left.checked_shl(u32::try_from(right).ok()?),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl<'ast> Visit<'ast> for Constants {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.0.entry(item.ident.to_string()).or_default().push((*item.expr).clone());
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        if let Some((_, value)) = &item.default {
            self.0.entry(item.ident.to_string()).or_default().push(value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_on_constants_has_a_value_and_an_ambiguous_name_has_none() {
        let mut constants = Constants::default();
        let text = "const A: usize = 1 << 4; mod m { pub const B: u32 = (A as u32 - 1) * 2; } const C: u8 = 1; fn f() { const C: u8 = 2; } const P: Pages = Pages(A * 2); mod n { const A: u8 = 16; }";
        constants.add(&syn::parse_file(text).expect("the sample parses"));
        let values = ["A", "B", "P / 4 + 1", "C", "D"].map(|name| constants.value_of(name));
        assert_eq!(values, [Some(16), Some(30), Some(9), None, None]);
    }
}

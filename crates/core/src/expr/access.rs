//! What an expression reads of its variables, so that the rest of them need not be converted.

use std::collections::BTreeMap;

use cel::common::ast::Expr;

use super::guard::{children, loop_names};

/// What is read of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Fields by their names, and of each what is read of it. Of a value without fields: the value.
    Fields(BTreeMap<Box<str>, Access>),
    /// The value.
    Whole,
}

impl Default for Access {
    fn default() -> Self {
        Self::Fields(BTreeMap::new())
    }
}

impl Access {
    /// What an expression reads of each variable. Recursion is bounded by the limits on the tree.
    pub fn of(expr: &Expr) -> BTreeMap<Box<str>, Self> {
        let mut found = Self::default();
        found.read(expr, &mut Vec::new());
        match found {
            Self::Fields(variables) => variables,
            Self::Whole => BTreeMap::new(),
        }
    }

    fn read<'e>(&mut self, expr: &'e Expr, in_loops: &mut Vec<&'e str>) {
        match expr {
            Expr::Comprehension(inner) => {
                self.read(&inner.iter_range.expr, in_loops);
                self.read(&inner.accu_init.expr, in_loops);
                let outside = in_loops.len();
                in_loops.extend(loop_names(inner));
                for part in [&inner.loop_cond, &inner.loop_step, &inner.result] {
                    self.read(&part.expr, in_loops);
                }
                in_loops.truncate(outside);
            }
            _ => match name(expr) {
                Some(names) if names.first().is_some_and(|root| in_loops.contains(root)) => {}
                Some(names) => self.add(&names, is_test(expr)),
                None => children(expr, &mut |child| self.read(child, in_loops)),
            },
        }
    }

    /// Adds what is at the end of a name, or whether there is something.
    fn add(&mut self, names: &[&str], is_test: bool) {
        let Self::Fields(fields) = self else {
            return;
        };
        match names {
            [] => {
                if !is_test {
                    *self = Self::Whole;
                }
            }
            [first, rest @ ..] => {
                let field = fields.entry((*first).into()).or_default();
                field.add(rest, is_test);
            }
        }
    }
}

/// Whether an expression asks for the presence of a field, and not for its value.
fn is_test(expr: &Expr) -> bool {
    matches!(expr, Expr::Select(select) if select.test)
}

/// The names of a variable and of the fields that are selected from it one after the other.
fn name(expr: &Expr) -> Option<Vec<&str>> {
    match expr {
        Expr::Ident(root) => Some(vec![root]),
        Expr::Select(select) if !is_test(&select.operand.expr) => {
            let mut names = name(&select.operand.expr)?;
            names.push(&select.field);
            Some(names)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Expression;
    use serde_json::{Value, json};

    #[test]
    fn the_fields_that_an_expression_reads_are_known() {
        let read = |source: &str| {
            let expression = Expression::compile(source).unwrap();
            let fields = ["b", "c", "x", "y"].into_iter();
            fields
                .filter(|field| expression.reads("a", field))
                .collect::<String>()
        };
        assert_eq!(read("has(a.b) && a.c.d == 1"), "bc");
        assert_eq!(read("a.b.all(a, a.x == 1) && a.y"), "by");
        assert_eq!(read("[1].exists(x, a.y == x)"), "y");
        assert_eq!(read("has(a.b) && size(a) == 1"), "bcxy");
        assert_eq!(read("a['b'] == 1"), "bcxy");
        assert_eq!(read("b.c"), "");
    }

    #[test]
    fn whatever_form_a_field_has_the_result_is_that_of_all_values() {
        let values = [
            json!({"a": {"b": {"c": 1, "d": [1, {"e": null}]}, "x": 2}}),
            json!({"a": {"b": [1, 2], "x": "text"}}),
            json!({"a": {"b": "text"}}),
            json!({"a": {"b": null}}),
            json!({"a": [{"b": 1}]}),
            json!({"a": 1.5}),
            json!({}),
            json!({"b": {"c": {"d": 18446744073709551615_u64}}}),
        ];
        for source in [
            "has(self.a)",
            "has(self.a.b)",
            "has(self.a.b.c) && self.a.x == 2",
            "has(self.a.b) || self.a.b.c > 0",
            "self.a.b == [1, 2]",
            "size(self.a) > 1",
            "self.a.exists(b, b == 'b')",
            "self.a.b.d.map(x, self.a.x)",
            "self.a['b'].c == 1",
            "self.a.b",
            "has(self.a.b.c.d) ? self.a.b : self.a.x",
            "'b' in self.a",
            "self.a.b.startsWith('t')",
        ] {
            let pruned = Expression::compile(source).unwrap();
            // The same expression where everything is read, too.
            let whole = Expression::compile(&format!("[self, {source}][1]")).unwrap();
            for value in &values {
                let evaluate = |expression: &Expression| -> Result<Value, String> {
                    expression.evaluate(&[("self", value)])
                };
                assert_eq!(evaluate(&pruned), evaluate(&whole), "{source} of {value}");
            }
        }
    }
}

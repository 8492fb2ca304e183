//! What evaluating an expression can come to at most, by its variables. Tenants write expressions and values: an
//! evaluation that could take too much work or memory is refused before it runs.
//!
//! The bound is computed over the syntax tree. Where a field of a variable is named, its own size counts; elsewhere a
//! value is at most as large as what it comes from. What a step takes is a convex function of the size of its item: sums,
//! products and maxima of what grows in proportion. So a loop over `n` items that have the size `S` together, and `m` at
//! most each, takes at most `n` times what its step takes for an empty item, and `S / m` times what an item of the size
//! `m` takes more.
//!
//! The interpreter copies values where one does not expect it: a comparison of different types makes an error that
//! contains both, and so does the wrong key of a list or map.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use serde_json::Value;

use super::guard::size;

/// Maximum work of an evaluation: nodes of the syntax tree that are evaluated, and [`BYTES_PER_STEP`].
const MAX_WORK: u64 = 100_000;
/// Maximum size of what an evaluation makes, in bytes of JSON.
const MAX_SIZE: u64 = 1_024 * 1_024;
/// Bytes of a value that are copied or compared in one step.
pub(super) const BYTES_PER_STEP: u64 = 8;
/// Bytes that an item of a list takes at least, with its comma.
const BYTES_PER_ITEM: u64 = 2;
/// The size of a value without contents.
const SMALL: u64 = 8;

/// A bound on what evaluating a part of an expression takes, and on its value.
#[derive(Clone, Copy, Debug)]
struct Bound<'v> {
    work: u64,
    /// Size of the value in bytes of JSON.
    size: u64,
    /// Number of its items.
    items: u64,
    /// Where it is a part of a variable.
    known: Option<Part<'v>>,
}

/// The sizes of a value and of the fields in it, in bytes of JSON as by [`size`]. Items of lists have none, so this is
/// small. Computed once for a value that many evaluations share.
#[derive(Debug, Default)]
pub(super) struct Extent {
    size: u64,
    items: u64,
    /// The size of the largest item of a list.
    largest_item: u64,
    is_object: bool,
    /// The fields, sorted by name.
    fields: Box<[(Box<str>, Extent)]>,
}

/// A part of a variable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'v> {
    Value(&'v Value),
    Measured(&'v Extent),
}

/// The part of a variable that an expression names, with the work of naming it.
enum NamedPart<'v> {
    /// A part of a variable.
    Found(u64, Part<'v>),
    /// A variable has no such part, or it only matters whether it has.
    Missing(u64),
    /// The expression names no part that can be known before it runs.
    Computed,
}

/// The variables in scope.
struct Scope<'s, 'v> {
    variables: &'s [(&'s str, Part<'v>)],
    /// The size of the item and of the accumulator of the loop around.
    in_loop: Option<[(&'s str, u64); 2]>,
    /// The largest value so far.
    largest: std::cell::Cell<u64>,
}

/// Checks what evaluating an expression with these variables can come to, after work of `spent` steps for the same caller.
/// Returns the work, in steps.
///
/// # Errors
/// It could take too much work or memory. The message continues a sentence whose subject is the expression.
pub(super) fn check(
    expr: &Expr,
    variables: &[(&str, Part<'_>)],
    spent: u64,
) -> Result<u64, String> {
    let scope = Scope {
        variables,
        in_loop: None,
        largest: std::cell::Cell::new(0),
    };
    let bound = scope.of(expr);
    if bound.work.saturating_add(spent) > MAX_WORK {
        let before = match spent {
            0 => String::new(),
            _ => format!(" after {spent} steps before it"),
        };
        return Err(format!(
            "may take {} steps for these values{before}; the maximum is {MAX_WORK}",
            bound.work
        ));
    }
    let largest = scope.largest.get();
    if largest > MAX_SIZE {
        return Err(format!(
            "may make a value of {largest} bytes from these values; the maximum is {MAX_SIZE}"
        ));
    }
    Ok(bound.work)
}

impl<'v> Bound<'v> {
    /// A value without contents.
    fn small(work: u64) -> Self {
        Self::made(work, SMALL, 0)
    }

    /// A value that is made.
    fn made(work: u64, size: u64, items: u64) -> Self {
        Self {
            work,
            size,
            items,
            known: None,
        }
    }

    /// An item or a field of a value with a size, which may have more items than the value itself.
    fn within(work: u64, size: u64) -> Self {
        Self::made(work, size, size / BYTES_PER_ITEM)
    }

    /// A part of a variable.
    fn known(work: u64, part: Part<'v>) -> Self {
        let (size, items) = part.extent();
        Self {
            work,
            size,
            items,
            known: Some(part),
        }
    }
}

impl Extent {
    /// The sizes of a value.
    pub(super) fn of(value: &Value) -> Self {
        let Value::Object(fields) = value else {
            let part = Part::Value(value);
            let (size, items) = part.extent();
            return Self {
                size,
                items,
                largest_item: part.largest_item(),
                ..Self::default()
            };
        };
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| (name.as_str().into(), Self::of(value)));
        let mut fields: Box<[(Box<str>, Self)]> = fields.collect();
        fields.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let names = fields.iter().map(|(name, _)| name.len() as u64 + 4);
        let values = fields.iter().map(|(_, value)| value.size);
        Self {
            size: 2 + names.chain(values).sum::<u64>(),
            items: fields.len() as u64,
            is_object: true,
            fields,
            ..Self::default()
        }
    }
}

impl<'v> NamedPart<'v> {
    fn of(work: u64, part: Option<Part<'v>>) -> Self {
        part.map_or(Self::Missing(work), |part| Self::Found(work, part))
    }

    /// A field of the part, named by more work.
    fn field(self, more: u64, name: &str) -> Self {
        match self {
            Self::Found(work, part) => Self::of(work + more, part.field(name)),
            Self::Missing(work) => Self::Missing(work + more),
            Self::Computed => Self::Computed,
        }
    }
}

impl<'v> Part<'v> {
    fn field(self, name: &str) -> Option<Self> {
        match self {
            Part::Value(value) => value.get(name).map(Part::Value),
            Part::Measured(extent) => {
                let fields = &extent.fields;
                let at = fields.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
                fields.get(at).map(|(_, field)| Part::Measured(field))
            }
        }
    }

    fn is_object(self) -> bool {
        match self {
            Part::Value(value) => value.is_object(),
            Part::Measured(extent) => extent.is_object,
        }
    }

    /// The size of the largest item of a list; of anything else 0.
    fn largest_item(self) -> u64 {
        let items = match self {
            Part::Measured(extent) => return extent.largest_item,
            Part::Value(value) => value.as_array(),
        };
        let sizes = items.into_iter().flatten().map(measured);
        sizes.max().unwrap_or(0)
    }

    /// The size in bytes of JSON, and the number of items.
    fn extent(self) -> (u64, u64) {
        let value = match self {
            Part::Measured(extent) => return (extent.size, extent.items),
            Part::Value(value) => value,
        };
        let items = match value {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        (measured(value), items as u64)
    }
}

/// The size of a value.
fn measured(value: &Value) -> u64 {
    let limit = usize::try_from(MAX_SIZE).unwrap_or(usize::MAX);
    size(value, limit) as u64
}

impl<'s, 'v> Scope<'s, 'v> {
    fn of(&self, expr: &Expr) -> Bound<'v> {
        match self.named_part(expr) {
            NamedPart::Found(work, part) => return Bound::known(work, part),
            NamedPart::Missing(work) => return Bound::small(work),
            NamedPart::Computed => {}
        }
        let bound = match expr {
            Expr::Unspecified => Bound::small(1),
            Expr::Literal(literal) => Bound::made(1, literal_size(literal), 0),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                let operand = self.of(&select.operand.expr);
                let copied = operand.size / BYTES_PER_STEP;
                Bound::within(operand.work.saturating_add(1 + copied), operand.size)
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.collection(list.elements.iter().map(|part| &part.expr)),
            Expr::Map(map) => self.collection(map.entries.iter().flat_map(|e| parts(&e.expr))),
            Expr::Struct(fields) => {
                self.collection(fields.entries.iter().flat_map(|e| parts(&e.expr)))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        };
        if bound.known.is_none() {
            self.largest.set(self.largest.get().max(bound.size));
        }
        bound
    }

    /// The part of a variable that an expression names: without its size, which only the whole name needs.
    fn named_part(&self, expr: &Expr) -> NamedPart<'v> {
        match expr {
            Expr::Ident(name) => {
                let mut in_loop = self.in_loop.iter().flatten();
                if in_loop.any(|(own, _)| own == name) {
                    return NamedPart::Computed;
                }
                let mut variables = self.variables.iter();
                let found = variables.find(|(own, _)| own == name);
                NamedPart::of(1, found.map(|(_, part)| *part))
            }
            Expr::Select(select) => match self.named_part(&select.operand.expr) {
                NamedPart::Found(work, _) if select.test => NamedPart::Missing(work + 1),
                part => part.field(1, &select.field),
            },
            Expr::Call(call) if call.func_name == operators::INDEX => match &*call.args {
                [of, index] => match &index.expr {
                    Expr::Literal(LiteralValue::String(name)) => {
                        self.named_part(&of.expr).field(2, name.inner())
                    }
                    _ => NamedPart::Computed,
                },
                _ => NamedPart::Computed,
            },
            _ => NamedPart::Computed,
        }
    }

    /// A variable of the loop around; all others are named parts.
    fn variable(&self, name: &str) -> Bound<'v> {
        let mut in_loop = self.in_loop.iter().flatten();
        let size = in_loop.find(|(own, _)| *own == name).map(|(_, size)| *size);
        size.map_or(Bound::small(1), |size| Bound::made(1, size, size))
    }

    fn call(&self, call: &CallExpr) -> Bound<'v> {
        let arguments = call.target.iter().map(|target| &target.expr);
        let arguments = arguments.chain(call.args.iter().map(|arg| &arg.expr));
        let arguments: Vec<Bound<'v>> = arguments.map(|part| self.of(part)).collect();
        let sum =
            |f: fn(&Bound<'v>) -> u64| arguments.iter().map(f).fold(0_u64, u64::saturating_add);
        let (work, size, items) = (
            sum(|a| a.work).saturating_add(1),
            sum(|a| a.size),
            sum(|a| a.items),
        );
        let largest = arguments.iter().map(|a| a.size).max().unwrap_or(0);
        let copied = |bytes: u64| work.saturating_add(bytes / BYTES_PER_STEP);
        match &*call.func_name {
            operators::LOGICAL_AND
            | operators::LOGICAL_OR
            | operators::LOGICAL_NOT
            | operators::NOT_STRICTLY_FALSE => Bound::small(work),
            operators::EQUALS
            | operators::NOT_EQUALS
            | operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS => Bound::small(copied(size)),
            operators::IN => {
                let [item, list] = &*arguments else {
                    return Bound::small(copied(size));
                };
                // Each comparison may copy the item.
                let comparisons = list.items.saturating_mul(item.size);
                Bound::small(copied(size.saturating_add(comparisons)))
            }
            operators::CONDITIONAL => Bound::made(
                work,
                largest,
                arguments.iter().map(|a| a.items).max().unwrap_or(0),
            ),
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT => {
                let of = arguments.first();
                let is_object = of.and_then(|of| of.known).is_some_and(Part::is_object);
                let is_literal = matches!(
                    call.args.last().map(|index| &index.expr),
                    Some(Expr::Literal(LiteralValue::Int(_) | LiteralValue::UInt(_)))
                );
                let container = of.filter(|_| !is_object && !is_literal);
                let index = arguments.last().map_or(0, |index| index.size);
                let more = container.map_or(0, |of| of.size).saturating_add(index);
                Bound::within(copied(more), largest)
            }
            // What comes out is at most what goes in; numbers become texts.
            _ => Bound::made(copied(size), size.saturating_add(32), items),
        }
    }

    fn collection<'e>(&self, elements: impl Iterator<Item = &'e Expr>) -> Bound<'v> {
        let mut all = Bound::made(1, 2, 0);
        for element in elements {
            let element = self.of(element);
            all.work = all.work.saturating_add(element.work);
            all.work = all.work.saturating_add(element.size / BYTES_PER_STEP);
            all.size = all.size.saturating_add(element.size).saturating_add(1);
            all.items += 1;
        }
        all
    }

    fn comprehension(&self, inner: &ComprehensionExpr) -> Bound<'v> {
        let range = self.of(&inner.iter_range.expr);
        let initial = self.of(&inner.accu_init.expr);
        let within = |item: u64, accumulated: u64| Scope {
            variables: self.variables,
            in_loop: Some([(&*inner.iter_var, item), (&*inner.accu_var, accumulated)]),
            largest: std::cell::Cell::new(0),
        };
        let list = match &inner.iter_range.expr {
            Expr::Call(sorting) => sorting.args.first().map(|list| self.named_part(&list.expr)),
            _ => None,
        };
        let largest_item = match list {
            Some(NamedPart::Found(_, list)) => list.largest_item(),
            _ => 0,
        };
        let largest_item = if largest_item == 0 {
            range.size
        } else {
            largest_item
        };
        // The accumulator itself is appended to in place, or is a boolean or a number.
        let [empty, whole] = [0, largest_item].map(|item| {
            let scope = within(item, 0);
            let (condition, step) = (
                scope.of(&inner.loop_cond.expr),
                scope.of(&inner.loop_step.expr),
            );
            let work = condition.work.saturating_add(step.work);
            self.largest
                .set(self.largest.get().max(scope.largest.get()));
            (work, step.size)
        });
        let total = |empty: u64, whole: u64| {
            let times = range.size.div_ceil(largest_item.max(1));
            let more = whole.saturating_sub(empty).saturating_mul(times);
            range.items.saturating_mul(empty).saturating_add(more)
        };
        let accumulated = initial.size.saturating_add(total(empty.1, whole.1));
        let scope = within(0, accumulated);
        let result = scope.of(&inner.result.expr);
        self.largest
            .set(self.largest.get().max(scope.largest.get()).max(accumulated));
        let work = [
            range.work,
            initial.work,
            total(empty.0, whole.0),
            result.work,
        ]
        .into_iter()
        .fold(range.items, u64::saturating_add)
        .saturating_add(range.size / BYTES_PER_STEP);
        Bound::made(work, result.size, range.items)
    }
}

/// The expressions of an entry.
fn parts(entry: &EntryExpr) -> Vec<&Expr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value.expr],
        EntryExpr::MapEntry(entry) => vec![&entry.key.expr, &entry.value.expr],
    }
}

fn literal_size(literal: &LiteralValue) -> u64 {
    let length = match literal {
        LiteralValue::String(text) => text.inner().len(),
        LiteralValue::Bytes(bytes) => bytes.inner().len(),
        _ => 0,
    };
    SMALL + length as u64
}

#[cfg(test)]
mod tests {
    use super::{Extent, Part, check, size};
    use crate::expr::Expression;
    use serde_json::{Value, json};

    fn evaluate(source: &str, me: &Value) -> Result<Value, String> {
        Expression::compile(source)
            .unwrap()
            .evaluate(&[("self", me)])
    }

    #[track_caller]
    fn assert_refused(source: &str, me: &Value) {
        let refused = evaluate(source, me).unwrap_err();
        assert!(refused.contains("the maximum is"), "{source}: {refused}");
    }

    #[test]
    fn work_and_memory_are_bounded_before_an_expression_runs() {
        let list = |n: u64| json!({"l": (0..n).collect::<Vec<_>>()});
        let large = list(30_000);
        assert_refused("self.l.map(x, self.l)", &large);
        assert_refused("self.l.map(x, self)", &list(2_000));
        let comparisons: Vec<String> = (0..25).map(|n| format!("x >= {n}")).collect();
        assert_refused(
            &format!("self.l.all(x, {})", comparisons.join(" && ")),
            &large,
        );
        assert_refused("self.l.filter(x, x in self.l) == self.l", &large);
        let text = json!({"t": "a".repeat(200_000), "l": (0..100).collect::<Vec<_>>()});
        assert_refused("self.l.map(x, self.t + self.t)", &text);
    }

    #[test]
    fn a_part_of_a_value_may_have_more_items_than_the_value() {
        let numbers = (0..4_000).collect::<Vec<_>>();
        let me =
            json!({"p": {"K.x": {"a": numbers, "b": numbers}}, "l": [{"a": numbers}], "s": "K.x"});
        for source in [
            "self.p['K.x'].a.exists(x, x in self.p['K.x'].b)",
            "self['p']['K.x'].a.exists(x, x in self.p['K.x'].b)",
            "self.p[self.s].a.exists(x, x in self.p['K.x'].b)",
            "self.l[0].a.exists(x, x in self.p['K.x'].b)",
            "self.p['K.x']['a'].map(x, self.p)",
        ] {
            assert_refused(source, &me);
        }
        // What is not there takes no steps, and neither does its neighbour.
        let absent = "'K.y' in self.p && self.p['K.y'].a.exists(x, x in self.p['K.y'].b)";
        assert_eq!(evaluate(absent, &me), Ok(json!(false)));
        let few = "has(self.p['K.x'].a) && size(self['p']['K.x'].a) == 4000";
        assert_eq!(evaluate(few, &me), Ok(json!(true)));
    }

    #[test]
    fn what_the_interpreter_copies_counts() {
        let ones = vec![1; 15_000];
        let me = json!({
            "ones": ones, "few": vec![1; 5_000], "halves": vec![0.5; 5_000], "big": "x".repeat(50_000),
            "lists": vec![vec![7; 50]; 400], "list": vec![7; 50],
        });
        for source in [
            // Errors of comparisons contain both sides.
            "self.ones in self.ones",
            "self.few.exists(v, v == self.ones)",
            "self.few.all(v, v < self.ones)",
            "self.few.exists(v, v == self.big)",
            "self.big in self.few",
            // So do those of keys.
            "self.halves.all(n, self.ones[n] < 5)",
            "self.few.all(x, self.ones[1.5] == x)",
            "self.few.exists(x, {}[self.big] == x)",
        ] {
            assert_refused(source, &me);
        }
        let many = ["x == self.list"; 30].join(" || ");
        assert_refused(&format!("self.lists.exists(x, {many})"), &me);
        let many = ["x.a == x.a"; 20].join(" || ");
        let optional = format!("[optional.of({{'a': self.ones}})].exists(x, {many})");
        assert_refused(&optional, &me);
    }

    #[test]
    fn sizes_that_are_kept_bound_as_the_values_do() {
        let numbers = |n: u64| (0..n).collect::<Vec<_>>();
        let me = json!({
            "p": {"a": numbers(17_000), "b": numbers(17_000)}, "few": numbers(3), "t": "x".repeat(9),
            "deep": [{"x": [1, {"y": null}]}, true, 1.5, -20], "é": {"": {}},
        });
        let expressions = [
            "self.p.a.exists(m, m in self.p.b)",
            "self.p.a.all(m, m >= 0)",
            "self.few.exists(m, m in self.few)",
            "has(self.p.c) || self.p.c == 1 || self.deep == self.deep",
            "self.p.map(k, self.p[k])",
            "self['p']['a'].exists(m, m in self.few)",
            "self.absent['x'].all(m, m in self.p.a)",
            "self.t + self.t == 'x' || 'p' in self || self.deep[0].x[1].y == null",
        ];
        let extent = Extent::of(&me);
        assert_eq!(extent.size, size(&me, usize::MAX) as u64);
        for source in expressions {
            let tree = Expression::compile(source).unwrap().tree;
            let by_value = check(&tree.expr, &[("self", Part::Value(&me))], 0);
            let by_extent = check(&tree.expr, &[("self", Part::Measured(&extent))], 0);
            assert_eq!(by_value, by_extent, "{source}");
        }
    }

    #[test]
    fn what_people_write_is_evaluated() {
        let list: Vec<Value> = (0..500)
            .map(|n| json!({"name": format!("n{n}"), "port": n}))
            .collect();
        let names: Vec<String> = (0..500).map(|n| format!("n{n}")).collect();
        let route = json!({"host": "a.example.com", "hosts": ["b.example.com", "a.example.com"]});
        let me = json!({
            "l": list, "t": "x".repeat(200_000), "m": {"a": 1}, "names": names, "r": vec![route; 50],
            "ports": (0..10).collect::<Vec<_>>(),
        });
        for (source, expected) in [
            ("self.l.all(x, x.port >= 0 && x.port < 1000)", json!(true)),
            ("self.l.exists(x, x.name == 'n7')", json!(true)),
            ("size(self.l.filter(x, x.port > 498)) == 1", json!(true)),
            ("size(self.l.map(x, x.name + '!')) == 500", json!(true)),
            (
                "size(self.t) == 200000 && self.t.startsWith('x')",
                json!(true),
            ),
            ("self.m.all(k, self.m[k] == 1)", json!(true)),
            ("has(self.m.a) ? self.m.a : 0", json!(1)),
            ("self.l[3].port", json!(3)),
            ("self.r.all(r, r.host in r.hosts)", json!(true)),
            (
                "self.l.all(x, x.port in self.ports || x.port > 9)",
                json!(true),
            ),
            ("'n7' in self.names && 'GET' in ['GET', 'PUT']", json!(true)),
        ] {
            assert_eq!(evaluate(source, &me), Ok(expected), "{source}");
        }
    }
}

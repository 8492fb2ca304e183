//! Limits on the size of expressions and variables.

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr};
use serde_json::{Number, Value};

/// Maximum length of a source in bytes.
const MAX_SOURCE: usize = 1_024;
/// Maximum nesting depth of brackets, signs and conditional operators.
const MAX_NESTING: usize = 16;
/// Maximum number of nodes in a syntax tree.
const MAX_NODES: usize = 200;
/// Maximum size of a variable in bytes of JSON.
const MAX_VARIABLE: usize = 256 * 1_024;
/// Maximum length of a number that is not an integer, as text.
const MAX_FLOAT: usize = 24;

/// Checks the length and nesting of a source before it is parsed.
///
/// # Errors
/// The message names the limit that is exceeded.
pub(super) fn check_source(source: &str) -> Result<(), String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("is longer than {MAX_SOURCE} bytes"));
    }
    let nesting = nesting(source);
    if nesting > MAX_NESTING {
        return Err(format!(
            "is nested {nesting} levels deep; the maximum is {MAX_NESTING}"
        ));
    }
    Ok(())
}

/// Returns an upper bound of the parser's recursion depth: open brackets, consecutive signs and
/// conditional operators. Brackets inside strings count too, which can only refuse more.
fn nesting(source: &str) -> usize {
    let (mut open, mut deepest, mut signs, mut conditionals) = (0_usize, 0_usize, 0_usize, 0_usize);
    for c in source.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            '?' => conditionals += 1,
            _ => {}
        }
        signs = match c {
            '!' | '-' => signs + 1,
            c if c.is_whitespace() => signs,
            _ => 0,
        };
        deepest = deepest.max(open + signs + conditionals);
    }
    deepest
}

/// Checks the size of a syntax tree and that comprehensions are not nested.
///
/// # Errors
/// The message names the limit that is exceeded.
pub(super) fn check_tree(expr: &Expr) -> Result<(), String> {
    let mut nodes = 0;
    let mut pending = vec![(expr, 0)];
    while let Some((expr, parent_depth)) = pending.pop() {
        nodes += 1;
        if nodes > MAX_NODES {
            return Err(format!("has more than {MAX_NODES} nodes"));
        }
        let depth = if matches!(expr, Expr::Comprehension(_)) {
            parent_depth + 1
        } else {
            parent_depth
        };
        if depth > 1 {
            return Err("has nested comprehensions".to_owned());
        }
        children(expr, &mut |child| pending.push((child, depth)));
    }
    Ok(())
}

/// Calls `f` with the parts of an expression.
pub(super) fn children<'e>(expr: &'e Expr, f: &mut dyn FnMut(&'e Expr)) {
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            call.target.iter().for_each(|target| f(&target.expr));
            call.args.iter().for_each(|arg| f(&arg.expr));
        }
        Expr::Comprehension(inner) => {
            for part in [
                &inner.iter_range,
                &inner.accu_init,
                &inner.loop_cond,
                &inner.loop_step,
                &inner.result,
            ] {
                f(&part.expr);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|e| f(&e.expr)),
        Expr::Select(select) => f(&select.operand.expr),
        Expr::Map(map) => entries(&map.entries, f),
        Expr::Struct(fields) => entries(&fields.entries, f),
    }
}

fn entries<'e>(entries: &'e [cel::common::ast::IdedEntryExpr], f: &mut dyn FnMut(&'e Expr)) {
    for entry in entries {
        match &entry.expr {
            EntryExpr::StructField(field) => f(&field.value.expr),
            EntryExpr::MapEntry(entry) => {
                f(&entry.key.expr);
                f(&entry.value.expr);
            }
        }
    }
}

/// The names that a loop gives to its item and to what it has so far.
pub(super) fn loop_names(inner: &ComprehensionExpr) -> impl Iterator<Item = &str> {
    let second = inner.iter_var2.as_deref();
    [&*inner.iter_var, &*inner.accu_var]
        .into_iter()
        .chain(second)
}

/// Checks the size of a variable before evaluation, and returns it.
///
/// # Errors
/// The variable is too large.
pub(super) fn check_variable(value: &Value) -> Result<usize, String> {
    let size = size(value, MAX_VARIABLE);
    if size > MAX_VARIABLE {
        return Err(format!("a variable is larger than {MAX_VARIABLE} bytes"));
    }
    Ok(size)
}

/// Returns the approximate length of a value as JSON. Stops counting above `limit`.
pub(super) fn size(value: &Value, limit: usize) -> usize {
    let mut total = 0;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        total += match value {
            Value::String(text) => text.len() + 2,
            Value::Number(number) => number_length(number),
            Value::Array(items) => {
                pending.extend(items);
                2 + items.len()
            }
            Value::Object(fields) => {
                pending.extend(fields.values());
                2 + fields.keys().map(|k| k.len() + 4).sum::<usize>()
            }
            Value::Null | Value::Bool(_) => 5,
        };
        if total > limit {
            break;
        }
    }
    total
}

/// The approximate length of a number as text.
fn number_length(number: &Number) -> usize {
    match (number.as_u64(), number.as_i64()) {
        (Some(positive), _) => digits(positive),
        (None, Some(negative)) => 1 + digits(negative.unsigned_abs()),
        (None, None) => MAX_FLOAT,
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

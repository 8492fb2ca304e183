//! What is let through to the parser and to evaluation.

use cel::common::ast::{EntryExpr, Expr};
use serde_json::Value;

/// Longest source, in bytes.
const MAX_SOURCE: usize = 1_024;
/// Deepest nesting of brackets, signs and choices.
const MAX_NESTING: usize = 16;
/// Most nodes of a syntax tree.
const MAX_NODES: usize = 200;
/// Largest variable, in bytes of JSON.
const MAX_VARIABLE: usize = 256 * 1_024;

/// Checks a source before it is parsed.
///
/// # Errors
/// What is too large.
pub(super) fn check_source(source: &str) -> Result<(), String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("is longer than {MAX_SOURCE} bytes"));
    }
    let nesting = nesting(source);
    if nesting > MAX_NESTING {
        return Err(format!(
            "is nested {nesting} deep; {MAX_NESTING} is the most"
        ));
    }
    Ok(())
}

/// An upper bound of how deep the parser recurses: open brackets, runs of signs, choices.
/// Brackets inside strings count as well: that errs on the safe side.
fn nesting(source: &str) -> usize {
    let (mut open, mut deepest, mut signs, mut choices) = (0_usize, 0_usize, 0_usize, 0_usize);
    for c in source.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            '?' => choices += 1,
            _ => {}
        }
        signs = match c {
            '!' | '-' => signs + 1,
            c if c.is_whitespace() => signs,
            _ => 0,
        };
        deepest = deepest.max(open + signs + choices);
    }
    deepest
}

/// Checks a syntax tree: its size, and one level of comprehensions.
///
/// # Errors
/// What is too large.
pub(super) fn check_tree(expr: &Expr) -> Result<(), String> {
    let mut nodes = 0;
    let mut pending = vec![(expr, 0)];
    while let Some((expr, level)) = pending.pop() {
        nodes += 1;
        if nodes > MAX_NODES {
            return Err(format!("has more than {MAX_NODES} parts"));
        }
        let below = if matches!(expr, Expr::Comprehension(_)) {
            level + 1
        } else {
            level
        };
        if below > 1 {
            return Err("nests comprehensions".to_owned());
        }
        children(expr, &mut |child| pending.push((child, below)));
    }
    Ok(())
}

fn children<'e>(expr: &'e Expr, f: &mut dyn FnMut(&'e Expr)) {
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

/// Checks a variable before it is handed in.
///
/// # Errors
/// It is too large.
pub(super) fn check_variable(value: &Value) -> Result<(), String> {
    if size(value, MAX_VARIABLE) > MAX_VARIABLE {
        return Err(format!("a variable is larger than {MAX_VARIABLE} bytes"));
    }
    Ok(())
}

/// About how long a value is as JSON; stops counting past `most`.
fn size(value: &Value, most: usize) -> usize {
    let mut total = 0;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        total += match value {
            Value::String(text) => text.len() + 2,
            Value::Number(number) => number.to_string().len(),
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
        if total > most {
            break;
        }
    }
    total
}

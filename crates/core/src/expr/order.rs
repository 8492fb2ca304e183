//! Deterministic iteration over CEL maps. CEL iterates over keys in no particular order; sorting them
//! gives every replica the same result (specification 6.5).

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr};
use std::sync::Arc;

use cel::{Context, ExecutionError, Value};
use jiff::SignedDuration;

/// The function that sorts keys. `@` is not valid in a source, so no expression can call it.
const SORTED_KEYS: &str = "@inOrder";

/// Returns a context with the functions that expressions can call.
///
/// # Errors
/// The `cel` crate already has a function of that name.
pub(super) fn context() -> Result<Context<'static, 'static>, String> {
    let mut context = Context::default();
    context
        .add_function(SORTED_KEYS, sorted_keys)
        .map_err(|e| e.to_string())?;
    context
        .add_function("duration", duration)
        .map_err(|e| e.to_string())?;
    Ok(context)
}

/// The nanoseconds of a duration such as `1m30s`, so that durations can be compared.
fn duration(text: Arc<String>) -> Result<i64, ExecutionError> {
    let error = |what: &str| ExecutionError::function_error("duration", format!("`{text}` {what}"));
    let parsed: SignedDuration = text.parse().map_err(|_| error("is not a duration"))?;
    i64::try_from(parsed.as_nanos()).map_err(|_| error("is too long"))
}

/// Returns the sorted keys of a map, and any other value unchanged.
fn sorted_keys(range: Value) -> Value {
    let Value::Map(map) = range else {
        return range;
    };
    let mut keys: Vec<_> = map.map.keys().cloned().collect();
    keys.sort();
    Value::List(Arc::new(keys.into_iter().map(Value::from).collect()))
}

/// Rewrites every comprehension of a syntax tree to iterate in order. Recursion is bounded by the
/// limits on the tree.
pub(super) fn sort_keys(expr: &mut Expr) {
    if let Expr::Comprehension(comprehension) = expr {
        let range = std::mem::take(&mut comprehension.iter_range);
        comprehension.iter_range = IdedExpr {
            id: range.id,
            expr: Expr::Call(CallExpr {
                func_name: SORTED_KEYS.to_owned(),
                target: None,
                args: vec![range],
            }),
        };
    }
    for_each_child(expr, &mut sort_keys);
}

fn for_each_child(expr: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|part| f(&mut part.expr));
            call.args.iter_mut().for_each(|part| f(&mut part.expr));
        }
        Expr::Comprehension(inner) => parts(inner).for_each(|part| f(&mut part.expr)),
        Expr::List(list) => list.elements.iter_mut().for_each(|part| f(&mut part.expr)),
        Expr::Select(select) => f(&mut select.operand.expr),
        Expr::Map(map) => map.entries.iter_mut().for_each(|e| entry(&mut e.expr, f)),
        Expr::Struct(fields) => fields
            .entries
            .iter_mut()
            .for_each(|e| entry(&mut e.expr, f)),
    }
}

fn parts(inner: &mut ComprehensionExpr) -> impl Iterator<Item = &mut IdedExpr> {
    [
        &mut inner.iter_range,
        &mut inner.accu_init,
        &mut inner.loop_cond,
        &mut inner.loop_step,
        &mut inner.result,
    ]
    .into_iter()
}

fn entry(entry: &mut EntryExpr, f: &mut dyn FnMut(&mut Expr)) {
    match entry {
        EntryExpr::StructField(field) => f(&mut field.value.expr),
        EntryExpr::MapEntry(entry) => {
            f(&mut entry.key.expr);
            f(&mut entry.value.expr);
        }
    }
}

//! Reducers of the Custom granularity (specification 5.2).

use std::cmp::Ordering;

use hashbrown::HashSet;
use serde_json::{Number, Value};

use crate::profile::ReduceFunction;

/// The result of a reducer for two values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reduction {
    /// The value of the established side, with its origin.
    Established,
    /// The value of the challenger, with its origin.
    Challenger,
    /// A combined value, with both origins.
    Both(Value),
}

/// Reduces the value of the higher policy and the value merged from below. Returns `None` if the
/// reducer does not apply because of a null, a wrong type or an error; the direction decides then.
pub(super) fn reduce(
    reduce: &ReduceFunction,
    established: &Value,
    challenger: &Value,
) -> Option<Reduction> {
    match reduce {
        ReduceFunction::Min | ReduceFunction::Max => {
            let (Value::Number(a), Value::Number(b)) = (established, challenger) else {
                return None;
            };
            let winning_order = if *reduce == ReduceFunction::Min {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            // On a tie the value belongs to the lower policy (specification 9.1).
            Some(if compare(a, b)? == winning_order {
                Reduction::Established
            } else {
                Reduction::Challenger
            })
        }
        ReduceFunction::And => booleans(established, challenger, |a, b| a && b),
        ReduceFunction::Or => booleans(established, challenger, |a, b| a || b),
        ReduceFunction::Union => lists(established, challenger, united),
        ReduceFunction::Intersection => lists(established, challenger, |a, b| {
            a.iter().filter(|item| b.contains(item)).cloned().collect()
        }),
        ReduceFunction::Append => lists(established, challenger, joined),
        ReduceFunction::Prepend => lists(established, challenger, |a, b| joined(b, a)),
        ReduceFunction::Cel(expression) => {
            if established.is_null() || challenger.is_null() {
                return None;
            }
            let variables = [("established", established), ("challenger", challenger)];
            let value = expression.evaluate(&variables).ok()?;
            // A policy of which nothing is left has no part in the value (specification 9.1).
            Some(match value {
                value if value == *challenger => Reduction::Challenger,
                value if value == *established => Reduction::Established,
                value => Reduction::Both(value),
            })
        }
    }
}

fn booleans(a: &Value, b: &Value, f: impl Fn(bool, bool) -> bool) -> Option<Reduction> {
    Some(Reduction::Both(Value::Bool(f(a.as_bool()?, b.as_bool()?))))
}

fn lists(a: &Value, b: &Value, f: impl Fn(&[Value], &[Value]) -> Vec<Value>) -> Option<Reduction> {
    Some(Reduction::Both(Value::Array(f(
        a.as_array()?,
        b.as_array()?,
    ))))
}

fn joined(first: &[Value], second: &[Value]) -> Vec<Value> {
    first.iter().chain(second).cloned().collect()
}

/// Returns the items of both lists, each value once (specification 5.2).
pub(super) fn united(first: &[Value], second: &[Value]) -> Vec<Value> {
    let mut seen = HashSet::with_capacity(first.len() + second.len());
    let all = first.iter().chain(second);
    all.filter(|item| seen.insert(*item)).cloned().collect()
}

/// Compares two numbers: exactly if both are integers, else as doubles.
fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    let integer = |n: &Number| n.as_i128();
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_compare_exactly() {
        let (a, b) = (json!(9007199254740993_i64), json!(9007199254740994_i64));
        assert_eq!(
            reduce(&ReduceFunction::Min, &a, &b),
            Some(Reduction::Established)
        );
        assert_eq!(
            reduce(&ReduceFunction::Max, &a, &b),
            Some(Reduction::Challenger)
        );
        assert_eq!(
            reduce(&ReduceFunction::Min, &a, &a),
            Some(Reduction::Challenger)
        );
        assert_eq!(
            reduce(&ReduceFunction::Min, &json!(1.5), &json!(2)),
            Some(Reduction::Established)
        );
    }

    #[test]
    fn values_of_other_types_are_not_reduced() {
        for (reducer, a, b) in [
            (ReduceFunction::Min, json!("1"), json!(2)),
            (ReduceFunction::And, json!(true), json!(null)),
            (ReduceFunction::Union, json!([1]), json!({})),
        ] {
            assert_eq!(reduce(&reducer, &a, &b), None);
        }
    }

    #[test]
    fn lists_keep_their_order() {
        let (a, b) = (json!(["a", "b"]), json!(["c", "b"]));
        let list = |r| match reduce(&r, &a, &b) {
            Some(Reduction::Both(value)) => value,
            other => json!(format!("{other:?}")),
        };
        assert_eq!(list(ReduceFunction::Union), json!(["a", "b", "c"]));
        assert_eq!(list(ReduceFunction::Intersection), json!(["b"]));
        assert_eq!(list(ReduceFunction::Append), json!(["a", "b", "c", "b"]));
        assert_eq!(list(ReduceFunction::Prepend), json!(["c", "b", "a", "b"]));
    }

    #[test]
    fn a_union_has_each_value_once() {
        let (a, b) = (json!([2, 2, 3]), json!([1, 3, 1]));
        assert_eq!(
            reduce(&ReduceFunction::Union, &a, &b),
            Some(Reduction::Both(json!([2, 3, 1])))
        );
    }
}

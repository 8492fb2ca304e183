//! Reducers (specification 5.2, custom; 11.31, 11.33, 11.36).

use std::collections::BTreeSet;

use entail_core::expr::Expression;
use serde_json::Value;

use super::join::{BlockUse, RuleSet, is_container, reach};
use super::leaf::{Leaf, Path, Step, assemble, fits, flatten, value_at};
use super::settings::{Reducer, Settings, Strategy};

/// Each value once, in order.
pub fn once<'v>(values: impl Iterator<Item = &'v Value>) -> Value {
    let mut list: Vec<Value> = Vec::new();
    for value in values {
        if !list.contains(value) {
            list.push(value.clone());
        }
    }
    Value::Array(list)
}

/// Reduces where both sides have a value that the reducer takes (specification 5.2, custom; 5.9); returns those places.
pub fn reduce(
    kind: &Settings,
    result: &mut RuleSet,
    higher: &RuleSet,
    by: Strategy,
    again: BlockUse,
) -> Vec<Path> {
    let mut places: Vec<(Path, &Reducer)> = Vec::new();
    for leaf in &higher.lines {
        let depth = reach(kind, leaf, by.granularity).0;
        for length in 1..=depth {
            let place = &leaf.path[..length];
            let mut under = kind.reducers.iter().filter(|r| r.strategies.contains(&by));
            let named = under.find(|reducer| fits(&reducer.path, place));
            let new = places.iter().all(|(known, _)| known != place);
            if let Some(reducer) = named.filter(|_| new) {
                places.push((place.to_vec(), &reducer.how));
            }
        }
    }
    let mut taken: Vec<Path> = Vec::new();
    for (place, how) in places {
        let inside = |rules: &RuleSet| -> Vec<Leaf> {
            let lines = rules.lines.iter();
            lines
                .filter(|line| line.path.starts_with(&place))
                .cloned()
                .collect()
        };
        let (above, below) = (inside(higher), inside(result));
        let (Some(e), Some(c)) = (value_of(&above, &place), value_of(&below, &place)) else {
            continue;
        };
        let Some(value) = reduced(how, &e, &c) else {
            continue;
        };
        // What has counted before is in the other side's value (specification 11.36).
        let lines = match again {
            BlockUse::Higher => below,
            BlockUse::Lower => above,
            BlockUse::Neither if matches!(how, Reducer::Cel(_)) && value == c => below,
            BlockUse::Neither if matches!(how, Reducer::Cel(_)) && value == e => above,
            BlockUse::Neither => combined(how, &place, value, &above, &below, &c),
        };
        replace(kind, result, &place, lines);
        taken.push(place);
    }
    taken
}

/// The value that lines come to at a place.
fn value_of(lines: &[Leaf], place: &[Step]) -> Option<Value> {
    match lines {
        [] => None,
        [line] if line.path == place => Some(line.value.clone()),
        lines => value_at(&assemble(lines), place).cloned(),
    }
}

/// The lines of a reduced value, with those who say it.
fn combined(
    how: &Reducer,
    place: &[Step],
    value: Value,
    above: &[Leaf],
    below: &[Leaf],
    c: &Value,
) -> Vec<Leaf> {
    let of = |lines: &[Leaf]| {
        lines
            .iter()
            .flat_map(|line| line.by.clone())
            .collect::<BTreeSet<_>>()
    };
    if let Reducer::Named(name) = how
        && ["min", "max"].contains(&name.as_str())
    {
        // The lower policy keeps a tie (specification 9.1).
        let lower = number(&value) == number(c);
        return if lower {
            below.to_vec()
        } else {
            above.to_vec()
        };
    }
    let by: BTreeSet<String> = of(above).union(&of(below)).cloned().collect();
    let both = above.iter().chain(below);
    let from: BTreeSet<usize> = both.flat_map(|line| line.from.clone()).collect();
    let mut rules = value;
    for step in place.iter().rev() {
        let Step::Field(name) = step else {
            panic!("a reducer inside an item")
        };
        rules = Value::Object([(name.clone(), rules)].into_iter().collect());
    }
    let mut lines = flatten(&rules, "", &Default::default());
    let set = above.iter().chain(below).all(|line| line.set);
    for line in &mut lines {
        line.by.clone_from(&by);
        line.from.clone_from(&from);
        // What two sets come to is a set, to which later blocks of Structural add.
        line.set = set && line.value.is_array() && line.path == place;
    }
    lines
}

fn replace(kind: &Settings, result: &mut RuleSet, place: &[Step], lines: Vec<Leaf>) {
    let at = result
        .lines
        .iter()
        .position(|line| line.path.starts_with(place));
    let at = at.unwrap_or(result.lines.len());
    result.lines.retain(|line| !line.path.starts_with(place));
    let rest = result.lines.split_off(at);
    result.lines.extend(lines);
    result.lines.extend(rest);
    let lines = &result.lines;
    result
        .merged
        .retain(|merged| is_container(kind, lines, &merged.path, merged.list));
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

/// Compares numbers; 64-bit integers are exact (specification 6.6).
fn less(a: &Value, b: &Value) -> Option<bool> {
    let whole = |value: &Value| {
        value
            .as_i64()
            .map(i128::from)
            .or(value.as_u64().map(i128::from))
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a < b),
        _ => Some(number(a)? < number(b)?),
    }
}

fn reduced(how: &Reducer, established: &Value, challenger: &Value) -> Option<Value> {
    let name = match how {
        Reducer::Cel(source) => {
            let variables = [("established", established), ("challenger", challenger)];
            let null = established.is_null() || challenger.is_null();
            return Expression::compile(source)
                .ok()?
                .evaluate(&variables)
                .ok()
                .filter(|_| !null);
        }
        Reducer::Named(name) => name.as_str(),
    };
    match name {
        "min" | "max" => {
            let challenger_wins = match name {
                "min" => !less(established, challenger)?,
                _ => !less(challenger, established)?,
            };
            let winner = if challenger_wins {
                challenger
            } else {
                established
            };
            Some(winner.clone())
        }
        "and" | "or" => {
            let (e, c) = (established.as_bool()?, challenger.as_bool()?);
            Some(if name == "and" { e && c } else { e || c }.into())
        }
        _ => {
            let (e, c) = (established.as_array()?, challenger.as_array()?);
            Some(match name {
                "append" => e.iter().chain(c).cloned().collect(),
                "prepend" => c.iter().chain(e).cloned().collect(),
                // Each value once (specification 11.31).
                "union" => once(e.iter().chain(c)),
                "intersection" => e.iter().filter(|v| c.contains(v)).cloned().collect(),
                other => panic!("no reducer {other}"),
            })
        }
    }
}

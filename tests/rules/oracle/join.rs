//! Joining what one policy says with what is gathered below it (specification 5.2, 6.1).

use serde_json::Value;

use super::leaf::{Leaf, Path, Step, dotted, fields_only};
use super::profiles::{LARGER, SUM};
use super::settings::{Direction, Granularity, Settings, Strategy};

/// One unit of a block: its path, its lines, and whether it is an empty container that the
/// granularity would open, so that there is nothing in it to take.
struct Unit {
    path: Path,
    lines: Vec<Leaf>,
    open: bool,
}

/// Rules: their lines, and whether an empty block of a Blocking kind has taken the place of all
/// that stands above (specification 5.6, 11.9), with the policy whose block it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSet {
    pub lines: Vec<Leaf>,
    pub sealed: Option<String>,
}

/// A block counts once on a path (specification 5.2, custom), though its policy takes part at several nodes
/// (specification 3.5): which side of a pair is a block that has counted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUse {
    Neither,
    Lower,
    Higher,
}

/// What `higher` and `lower` come to, by this strategy.
pub fn join(
    kind: &Settings,
    lower: &RuleSet,
    higher: &RuleSet,
    by: Strategy,
    again: BlockUse,
) -> RuleSet {
    let whole = by.granularity == Granularity::Atomic
        || (higher.sealed.is_some() && higher.lines.is_empty());
    match by.direction {
        Direction::Defaults if whole || lower.sealed.is_some() => return lower.clone(),
        Direction::Overrides if whole => return higher.clone(),
        _ => {}
    }
    let mut result = lower.lines.clone();
    for unit in units(kind, &higher.lines, by.granularity) {
        if by.granularity == Granularity::Custom && reduce(kind, &mut result, &unit, again) {
            continue;
        }
        let structural = by.granularity == Granularity::Structural;
        if structural && kind.sets.contains(&fields_only(&unit.path)) && unite(&mut result, &unit) {
            continue;
        }
        match by.direction {
            Direction::Defaults => add(&mut result, unit),
            Direction::Overrides => set(&mut result, unit),
        }
    }
    RuleSet {
        lines: result,
        sealed: lower.sealed.clone().or_else(|| higher.sealed.clone()),
    }
}

/// The paths of the units of a block (for overlaps, specification 4.3).
pub fn unit_paths(kind: &Settings, block: &[Leaf], granularity: Granularity) -> Vec<Path> {
    if granularity == Granularity::Atomic && !block.is_empty() {
        return vec![Vec::new()];
    }
    units(kind, block, granularity)
        .into_iter()
        .map(|u| u.path)
        .collect()
}

fn units(kind: &Settings, block: &[Leaf], granularity: Granularity) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for leaf in block {
        let (length, open) = reach(kind, leaf, granularity);
        let path = leaf.path[..length].to_vec();
        match units.iter_mut().find(|unit| unit.path == path) {
            Some(unit) => unit.lines.push(leaf.clone()),
            None => units.push(Unit {
                path,
                lines: vec![leaf.clone()],
                open,
            }),
        }
    }
    units
}

/// How far down the unit of a line lies, and whether it is an empty container that is opened.
fn reach(kind: &Settings, leaf: &Leaf, granularity: Granularity) -> (usize, bool) {
    let end = leaf.path.len();
    let empty_object = leaf.value == Value::Object(Default::default());
    let (length, opens) = match granularity {
        Granularity::Atomic => (0, false),
        Granularity::Field => (1, false),
        Granularity::Rule => {
            let opened = |length: usize| rule_opens(kind, &fields_only(&leaf.path[..length]));
            let length = (1..=end).find(|&length| !opened(length)).unwrap_or(end);
            (length, empty_object && opened(end))
        }
        Granularity::Patch | Granularity::Custom => {
            let item = leaf.path.iter().position(|s| matches!(s, Step::Item(..)));
            (item.unwrap_or(end), item.is_none() && empty_object)
        }
        Granularity::Structural => {
            let keyed = kind.list_keys.contains_key(&fields_only(&leaf.path));
            (
                end,
                empty_object || (keyed && leaf.value == Value::Array(Vec::new())),
            )
        }
    };
    // Atomic paths are units whatever the granularity (specification 5.2), those of the schema for Structural.
    let cut = (1..=length).find(|&l| {
        let path = fields_only(&leaf.path[..l]);
        let closed = granularity == Granularity::Structural && kind.closed.contains(&path);
        closed || kind.atomic_paths.contains(&path)
    });
    match cut {
        Some(cut) => (cut, false),
        None => (length, opens && length == end),
    }
}

/// Whether the granularity Rule opens an object: a rule map, or one above a rule map.
fn rule_opens(kind: &Settings, path: &str) -> bool {
    let above = |map: &String| map == path || map.starts_with(&format!("{path}."));
    kind.rule_maps.iter().any(above)
}

/// How a line of the result stands to a unit that wants in.
fn meets(line: &Leaf, unit: &[Step]) -> bool {
    let shared = line
        .path
        .iter()
        .zip(unit)
        .take_while(|(a, b)| a == b)
        .count();
    match (line.path.get(shared), unit.get(shared)) {
        // The unit itself, or something inside it.
        (_, None) => true,
        // Something above it: an empty container of the right type leaves room.
        (None, Some(next)) => !leaves_room(&line.value, next),
        // Side by side in one object or list; else the two disagree about what stands here.
        (Some(a), Some(b)) => matches!(a, Step::Field(_)) != matches!(b, Step::Field(_)),
    }
}

fn leaves_room(container: &Value, next: &Step) -> bool {
    match next {
        Step::Field(_) => *container == Value::Object(Default::default()),
        Step::Item(..) => *container == Value::Array(Vec::new()),
    }
}

/// Adds a unit if the result lacks it.
fn add(result: &mut Vec<Leaf>, unit: Unit) {
    if result.iter().any(|line| meets(line, &unit.path)) {
        return;
    }
    put(result, unit);
}

/// Sets a unit, whatever the result has there.
fn set(result: &mut Vec<Leaf>, unit: Unit) {
    if unit.open && result.iter().any(|line| is_container_of(line, &unit)) {
        return;
    }
    put(result, unit);
}

/// Whether the line shows that the result has a container where the unit has an empty one.
fn is_container_of(line: &Leaf, unit: &Unit) -> bool {
    if !line.path.starts_with(&unit.path) {
        return false;
    }
    match line.path.get(unit.path.len()) {
        None => line.value == unit.lines[0].value,
        Some(next) => leaves_room(&unit.lines[0].value, next),
    }
}

/// Writes the unit's lines where the first one of those stood that make room for it.
fn put(result: &mut Vec<Leaf>, unit: Unit) {
    // An empty container above the unit is no longer empty.
    let goes = |line: &Leaf| {
        meets(line, &unit.path) || (unit.path.starts_with(&line.path) && line.path != unit.path)
    };
    let at = result.iter().position(&goes).unwrap_or(result.len());
    result.retain(|line| !goes(line));
    let rest = result.split_off(at);
    result.extend(unit.lines);
    result.extend(rest);
}

/// Unites two lists of a `set`: the result so far, then what is added (specification 5.2, structural).
fn unite(result: &mut [Leaf], unit: &Unit) -> bool {
    let Some(line) = result.iter_mut().find(|line| line.path == unit.path) else {
        return false;
    };
    let [offered] = unit.lines.as_slice() else {
        return false;
    };
    let (Some(held), Some(new)) = (line.value.as_array(), offered.value.as_array()) else {
        return false;
    };
    let added: Vec<_> = new.iter().filter(|v| !held.contains(v)).cloned().collect();
    if !added.is_empty() {
        line.value = held.iter().cloned().chain(added).collect();
        line.by.extend(offered.by.iter().cloned());
    }
    true
}

/// Reduces, where both sides have a value of the right type at a reducer's path (specification 5.2, custom).
fn reduce(kind: &Settings, result: &mut [Leaf], unit: &Unit, again: BlockUse) -> bool {
    let name = fields_only(&unit.path);
    let Some((_, how)) = kind.reducers.iter().find(|(path, _)| fits(path, &name)) else {
        return false;
    };
    let Some(line) = result.iter_mut().find(|line| line.path == unit.path) else {
        return false;
    };
    let [established] = unit.lines.as_slice() else {
        return false;
    };
    match reduced(how, &established.value, &line.value) {
        None => false,
        // What has counted before is in the other side's value.
        Some(_) if again == BlockUse::Higher => true,
        Some(_) if again == BlockUse::Lower => {
            *line = unit.lines[0].clone();
            true
        }
        Some(value) => {
            match how.as_str() {
                // The lower policy keeps a tie.
                "min" | "max" if value == line.value => {}
                "min" | "max" => line.by = established.by.clone(),
                _ => line.by.extend(established.by.iter().cloned()),
            }
            line.value = value;
            true
        }
    }
}

/// Whether a reducer's path, in which `*` is any field, names this one.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (dotted(pattern), dotted(path));
    let any = Step::Field("*".to_owned());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(p, s)| *p == any || p == s)
}

fn reduced(how: &str, established: &Value, challenger: &Value) -> Option<Value> {
    match how {
        "min" | "max" => {
            let (e, c) = (established.as_i64()?, challenger.as_i64()?);
            Some(if how == "min" { e.min(c) } else { e.max(c) }.into())
        }
        SUM | LARGER => {
            let (e, c) = (established.as_i64()?, challenger.as_i64()?);
            Some(if how == SUM { e + c } else { e.max(c) }.into())
        }
        "and" | "or" => {
            let (e, c) = (established.as_bool()?, challenger.as_bool()?);
            Some(if how == "and" { e && c } else { e || c }.into())
        }
        _ => {
            let (e, c) = (established.as_array()?, challenger.as_array()?);
            let missing_in = |list: &Vec<Value>, v: &&Value| !list.contains(v);
            Some(Value::Array(match how {
                "append" => e.iter().chain(c).cloned().collect(),
                "prepend" => c.iter().chain(e).cloned().collect(),
                "union" => e
                    .iter()
                    .chain(c.iter().filter(|v| missing_in(e, v)))
                    .cloned()
                    .collect(),
                "intersection" => e.iter().filter(|v| c.contains(v)).cloned().collect(),
                other => panic!("the oracle knows no reducer {other}"),
            }))
        }
    }
}

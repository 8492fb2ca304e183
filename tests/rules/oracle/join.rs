//! Joining what one policy says with what is gathered below it (specification 5.2, 6.1).

use std::collections::BTreeSet;

use serde_json::Value;

use super::leaf::{Leaf, Path, Step, dotted, fits};
use super::reduce::{once, reduce};
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
    /// Empty objects and lists that were merged with what stands in their place (specification 11.39).
    pub merged: Vec<Merged>,
}

/// An empty container that others filled, or that met one that was there.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    pub path: Path,
    pub list: bool,
    pub by: BTreeSet<String>,
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
    let mut result = RuleSet {
        lines: lower.lines.clone(),
        sealed: lower.sealed.clone().or_else(|| higher.sealed.clone()),
        merged: lower.merged.clone(),
    };
    let reduced = reduce(kind, &mut result, higher, by, again);
    for unit in units(kind, &higher.lines, by.granularity) {
        if reduced.iter().any(|place| unit.path.starts_with(place)) {
            continue;
        }
        // A set at one of the atomic paths is a unit, whatever the granularity (5.2).
        let atomic = kind.atomic_paths.iter().any(|path| fits(path, &unit.path));
        if by.granularity == Granularity::Structural && !atomic && unite(&mut result, &unit) {
            continue;
        }
        match by.direction {
            Direction::Defaults => add(kind, &mut result, unit),
            Direction::Overrides => set(kind, &mut result, unit),
        }
    }
    for merged in &higher.merged {
        keep_merged(kind, &mut result, higher, merged, by.granularity);
    }
    if kind.patch_order {
        match by.direction {
            Direction::Defaults => in_patch_order(&mut result.lines, &lower.lines, &higher.lines),
            Direction::Overrides => in_patch_order(&mut result.lines, &higher.lines, &lower.lines),
        }
    }
    result
}

/// Specification 5.13: the items of every list that both sides have, in the order of a strategic merge patch.
fn in_patch_order(lines: &mut Vec<Leaf>, patch: &[Leaf], original: &[Leaf]) {
    let is_item = |step: &Step| matches!(step, Step::Item(_));
    let mut lists: Vec<Path> = Vec::new();
    for line in lines.iter() {
        for (at, _) in line
            .path
            .iter()
            .enumerate()
            .filter(|(_, step)| is_item(step))
        {
            let list = line.path[..at].to_vec();
            if !lists.contains(&list) {
                lists.push(list);
            }
        }
    }
    for list in lists {
        let (patch, original) = (items_of(patch, &list), items_of(original, &list));
        if patch.is_empty() || original.is_empty() {
            continue;
        }
        // What only the original has goes before the first item of the patch that it precedes in the original, if
        // all before that are placed, and else to the end.
        let place = |item: &Step| original.iter().position(|other| other == item);
        let mut rest: Vec<&Step> = original
            .iter()
            .filter(|item| !patch.contains(item))
            .collect();
        let mut order: Vec<&Step> = Vec::new();
        for item in &patch {
            while let (Some(at), Some(next)) = (place(item), rest.first()) {
                if place(next) > Some(at) {
                    break;
                }
                order.push(rest.remove(0));
            }
            order.push(item);
        }
        order.extend(rest);
        let number = |line: &Leaf| {
            let item = line.path.get(list.len());
            order.iter().position(|other| Some(*other) == item)
        };
        let (mut inside, outside): (Vec<Leaf>, Vec<Leaf>) = lines
            .drain(..)
            .partition(|line| line.path.starts_with(&list));
        inside.sort_by_key(number);
        lines.extend(outside.into_iter().chain(inside));
    }
}

/// The items of a list, in order.
fn items_of(lines: &[Leaf], list: &[Step]) -> Vec<Step> {
    let mut items = Vec::new();
    for line in lines.iter().filter(|line| line.path.starts_with(list)) {
        match line.path.get(list.len()) {
            Some(item @ Step::Item(_)) if !items.contains(item) => items.push(item.clone()),
            _ => {}
        }
    }
    items
}

/// Empty containers of the higher side stay merged if what they were merged with came along.
fn keep_merged(
    kind: &Settings,
    result: &mut RuleSet,
    higher: &RuleSet,
    merged: &Merged,
    granularity: Granularity,
) {
    // Of one policy, whichever of its places they are from.
    let inside = |rules: &RuleSet| -> Vec<Leaf> {
        let lines = rules.lines.iter();
        let lines = lines.filter(|line| line.path.starts_with(&merged.path));
        let anywhere = |line: &Leaf| Leaf {
            from: BTreeSet::new(),
            ..line.clone()
        };
        lines.map(anywhere).collect()
    };
    // Where the granularity opens it, its unit is found again; else it is in a unit, or is one, which came whole or
    // was lost to another in its place.
    let open = merged.path.is_empty() || opens(kind, merged, granularity);
    let stays = match open {
        true => is_container(kind, &result.lines, &merged.path, merged.list),
        false => inside(result) == inside(higher),
    };
    if stays {
        note(result, merged.clone());
    }
}

/// Whether a granularity opens an empty container.
fn opens(kind: &Settings, merged: &Merged, granularity: Granularity) -> bool {
    let empty = match merged.list {
        true => Value::Array(Vec::new()),
        false => Value::Object(Default::default()),
    };
    let leaf = Leaf {
        path: merged.path.clone(),
        value: empty,
        by: BTreeSet::new(),
        closed: None,
        set: false,
        keyed: merged.list,
        from: BTreeSet::new(),
    };
    reach(kind, &leaf, granularity).1
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

/// The units of lines, each with those who say any of it (specification 9.1).
pub fn units_by(
    kind: &Settings,
    lines: &[Leaf],
    granularity: Option<Granularity>,
) -> Vec<(Path, BTreeSet<String>)> {
    let by = |lines: &[Leaf]| lines.iter().flat_map(|line| line.by.clone()).collect();
    match granularity {
        // Where Rule is offered, too, it opens the rule maps that the schema makes one unit.
        Some(Granularity::Structural) if kind.offers(Granularity::Rule) => {
            let open = |leaf: &Leaf| {
                leaf.closed
                    .is_some_and(|at| rule_opens(kind, &leaf.path[..at]))
            };
            let opened = lines.iter().map(|leaf| Leaf {
                closed: leaf.closed.filter(|_| !open(leaf)),
                ..leaf.clone()
            });
            let units =
                units(kind, &opened.collect::<Vec<_>>(), Granularity::Structural).into_iter();
            units.map(|unit| (unit.path, by(&unit.lines))).collect()
        }
        None => lines
            .iter()
            .map(|line| (line.path.clone(), line.by.clone()))
            .collect(),
        Some(granularity) => {
            let units = units(kind, lines, granularity).into_iter();
            units.map(|unit| (unit.path, by(&unit.lines))).collect()
        }
    }
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
pub fn reach(kind: &Settings, leaf: &Leaf, granularity: Granularity) -> (usize, bool) {
    let end = leaf.path.len();
    let empty_object = leaf.value == Value::Object(Default::default());
    let (length, opens) = match granularity {
        Granularity::Atomic => (0, false),
        // The rules themselves have no field.
        Granularity::Field => (end.min(1), false),
        Granularity::Rule => {
            let opened = |length: usize| rule_opens(kind, &leaf.path[..length]);
            let length = (1..=end).find(|&length| !opened(length)).unwrap_or(end);
            (length, empty_object && opened(end))
        }
        Granularity::Patch | Granularity::Custom => {
            let item = leaf.path.iter().position(|s| matches!(s, Step::Item(_)));
            (item.unwrap_or(end), item.is_none() && empty_object)
        }
        Granularity::Structural => {
            let keyed = leaf.keyed && leaf.value == Value::Array(Vec::new());
            (end, empty_object || keyed)
        }
    };
    // Atomic paths are units whatever the granularity (specification 5.2), those of the schema for Structural.
    let closed = |length: usize| {
        let structural =
            granularity == Granularity::Structural && leaf.closed.is_some_and(|at| at <= length);
        structural
            || kind
                .atomic_paths
                .iter()
                .any(|path| fits(path, &leaf.path[..length]))
    };
    match (1..=length).find(|&length| closed(length)) {
        Some(cut) => (cut, false),
        None => (length, opens && length == end),
    }
}

/// Whether the granularity Rule opens an object: a rule map, or one above a rule map.
fn rule_opens(kind: &Settings, path: &[Step]) -> bool {
    kind.rule_maps
        .iter()
        .any(|map| dotted(map).starts_with(path))
}

/// Whether a line is inside a unit at or above a path that no granularity of the kind opens: the schema of the
/// line's own block makes it one unit. The text does not say what another block adds there whose schema does
/// not close the object (5.2, 11.43); such a unit stays in one piece: it wins or loses as a whole.
fn is_in_closed_unit(kind: &Settings, line: &Leaf, path: &[Step]) -> bool {
    let closes = |at: usize| {
        let opened = kind.offers(Granularity::Patch)
            || kind.offers(Granularity::Custom)
            || (kind.offers(Granularity::Rule) && rule_opens(kind, &line.path[..at]));
        !opened && line.path.len() > at && path.starts_with(&line.path[..at])
    };
    line.closed.is_some_and(closes)
}

/// How a line of the result stands to a unit that wants in.
fn meets(kind: &Settings, line: &Leaf, unit: &[Step]) -> bool {
    if is_in_closed_unit(kind, line, unit) {
        return true;
    }
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
        Step::Item(_) => *container == Value::Array(Vec::new()),
    }
}

/// Adds a unit if the result lacks it.
fn add(kind: &Settings, result: &mut RuleSet, unit: Unit) {
    let met = |line: &Leaf| meets(kind, line, &unit.path);
    if merges(kind, result, &unit) || result.lines.iter().any(met) {
        return;
    }
    put(kind, result, unit);
}

/// Sets a unit, whatever the result has there.
fn set(kind: &Settings, result: &mut RuleSet, unit: Unit) {
    if !merges(kind, result, &unit) {
        put(kind, result, unit);
    }
}

/// An empty container sets nothing where there is one (specification 11.37), and is merged with it (11.39).
fn merges(kind: &Settings, result: &mut RuleSet, unit: &Unit) -> bool {
    let mut lines = result.lines.iter();
    if !unit.open || !lines.any(|line| is_container_of(kind, line, unit)) {
        return false;
    }
    let merged = Merged {
        path: unit.path.clone(),
        list: unit.lines[0].value.is_array(),
        by: unit.lines[0].by.clone(),
    };
    note(result, merged);
    true
}

fn note(result: &mut RuleSet, new: Merged) {
    let same = |m: &&mut Merged| m.path == new.path && m.list == new.list;
    match result.merged.iter_mut().find(same) {
        Some(found) => found.by.extend(new.by),
        None => result.merged.push(new),
    }
}

/// Whether an object, or a keyed list, stands at the path.
pub fn is_container(kind: &Settings, lines: &[Leaf], path: &[Step], list: bool) -> bool {
    // The rules themselves are an object, even an empty one.
    if path.is_empty() {
        return !list;
    }
    let empty = if list {
        Value::Array(Vec::new())
    } else {
        Value::Object(Default::default())
    };
    let shows = |line: &Leaf| {
        line.path.starts_with(path)
            && !is_in_closed_unit(kind, line, path)
            && match line.path.get(path.len()) {
                None => line.value == empty,
                Some(next) => leaves_room(&empty, next),
            }
    };
    lines.iter().any(shows)
}

/// Whether the line shows that the result has a container where the unit has an empty one.
fn is_container_of(kind: &Settings, line: &Leaf, unit: &Unit) -> bool {
    if !line.path.starts_with(&unit.path) || is_in_closed_unit(kind, line, &unit.path) {
        return false;
    }
    match line.path.get(unit.path.len()) {
        None => line.value == unit.lines[0].value,
        Some(next) => leaves_room(&unit.lines[0].value, next),
    }
}

/// Writes the unit's lines where the first one of those stood that make room for it.
fn put(kind: &Settings, result: &mut RuleSet, unit: Unit) {
    // What stood in the unit's place is gone, and so is what it was merged with.
    result
        .merged
        .retain(|merged| !merged.path.starts_with(&unit.path));
    // An empty container above the unit is no longer empty.
    let filled = |line: &Leaf| {
        unit.path.starts_with(&line.path)
            && line.path != unit.path
            && !meets(kind, line, &unit.path)
    };
    let goes = |line: &Leaf| meets(kind, line, &unit.path) || filled(line);
    let at = result
        .lines
        .iter()
        .position(goes)
        .unwrap_or(result.lines.len());
    for line in result.lines.clone().iter().filter(|line| filled(line)) {
        let merged = Merged {
            path: line.path.clone(),
            list: line.value.is_array(),
            by: line.by.clone(),
        };
        note(result, merged);
    }
    result.lines.retain(|line| !goes(line));
    let rest = result.lines.split_off(at);
    result.lines.extend(unit.lines);
    result.lines.extend(rest);
    let lines = &result.lines;
    result
        .merged
        .retain(|merged| is_container(kind, lines, &merged.path, merged.list));
}

/// Unites two lists of a `set`: the result so far, then what is added, each value once (specification 5.2, structural;
/// 11.44). Every policy that offers an item that stands has won it (11.24).
fn unite(result: &mut RuleSet, unit: &Unit) -> bool {
    let same = |line: &&mut Leaf| line.path == unit.path && line.set;
    let Some(line) = result.lines.iter_mut().find(same) else {
        return false;
    };
    let [offered] = unit.lines.as_slice() else {
        return false;
    };
    let (Some(held), Some(new)) = (line.value.as_array(), offered.value.as_array()) else {
        return false;
    };
    if !offered.set || offered.path != unit.path {
        return false;
    }
    line.value = once(held.iter().chain(new));
    line.by.extend(offered.by.iter().cloned());
    line.from.extend(&offered.from);
    true
}

//! Envoy Gateway: its translator, which turns objects into statuses and an intermediate
//! representation.
//!
//! Random worlds and the project's own test inputs are given to entail and to the translator. The
//! objects are those of an API server: with the defaults of their CRDs, and without invalid ones.

mod answers;
mod client;
mod given_back;
mod parts;
mod policies;
mod references;
mod replay;
mod status;
mod values;
mod words;
mod world;

use serde_json::{Value, json};

use crate::judge::{Judge, JudgeError};
use crate::report::{Facts, Report};
use crate::{RunError, Scope};
use client::WorldReply;

/// One random world in so many does not tell entail which controllers its GatewayClasses have.
const UNTOLD: u64 = 20;

/// A world that is compared.
struct World {
    /// Names it in examples.
    origin: String,
    /// Facts that hold for all of it.
    facts: Facts,
    /// What the judge is asked.
    request: Value,
    /// The controllerName that the judge serves.
    controller: String,
    /// What entail is told of the controllers.
    aliases: Vec<Value>,
}

/// Compares the worlds of the scope.
///
/// # Errors
/// Returns an error if the judge ended.
pub fn run(scope: &Scope, judge: &mut Judge, report: &mut Report) -> Result<(), RunError> {
    for seed in scope.seed..scope.seed.saturating_add(scope.worlds) {
        let objects = world::world(seed);
        let controller = controller(&objects);
        let mut facts = Facts::new();
        if controller != world::CONTROLLER {
            facts.insert("controllerName".to_owned(), "renamed".to_owned());
        }
        let mut aliases = world::aliases(&objects);
        if seed.is_multiple_of(UNTOLD) {
            facts.insert("aliases".to_owned(), "none".to_owned());
            aliases.clear();
        }
        let world = World {
            origin: format!("seed {seed}"),
            facts,
            request: json!({
                "op": "world", "objects": objects, "controller": controller, "validate": true,
            }),
            controller,
            aliases,
        };
        if world.compare(judge, report)? {
            report.add_world();
        }
    }
    if scope.golden {
        for name in client::golden_names(judge)? {
            let world = World {
                facts: Facts::from([("source".to_owned(), "test input".to_owned())]),
                request: json!({"op": "world", "golden": name}),
                origin: name,
                controller: world::CONTROLLER.to_owned(),
                aliases: Vec::new(),
            };
            if world.compare(judge, report)? {
                report.add_golden();
            }
        }
    }
    Ok(())
}

/// Whether entail is not told of the controllers of the world: it may then answer that something is not known.
fn is_untold(facts: &Facts) -> bool {
    facts
        .get("aliases")
        .is_some_and(|aliases| aliases == "none")
}

/// The controllerName of the first class.
fn controller(objects: &[Value]) -> String {
    let class = objects
        .iter()
        .find(|object| object["kind"] == "GatewayClass");
    let name = class.and_then(|class| class["spec"]["controllerName"].as_str());
    name.unwrap_or(world::CONTROLLER).to_owned()
}

impl World {
    /// Compares the world, and returns whether that was possible. What was not is part of the report.
    fn compare(&self, judge: &mut Judge, report: &mut Report) -> Result<bool, JudgeError> {
        let origin = &*self.origin;
        let world: WorldReply = match judge.ask(&self.request) {
            Ok(world) => world,
            Err(error) => return stopped(origin, "the judge refuses a world", error, report),
        };
        for refusal in &world.refused {
            report.fail("the API server would refuse an object", || {
                format!("{origin} {}: {}", refusal.object, refusal.reason)
            });
        }
        let original = match client::translate(judge) {
            Ok(translation) => translation,
            Err(error) => return stopped(origin, "the translator fails", error, report),
        };
        let mut objects = world.objects;
        objects.extend(self.aliases.iter().cloned());
        let answers = match answers::ask(&objects) {
            Ok(answers) => answers,
            Err(error) => {
                report.fail("entail fails", || format!("{origin}: {error}"));
                return Ok(false);
            }
        };
        status::compare(
            origin,
            &self.facts,
            &self.controller,
            &objects,
            &answers,
            &original,
            report,
        );
        let comparison = replay::Comparison {
            origin,
            facts: &self.facts,
            objects: &objects,
            answers: &answers,
            original: &original,
        };
        match comparison.run(judge, report) {
            Ok(()) => Ok(true),
            Err(error) => stopped(origin, "a replay fails", error, report),
        }
    }
}

/// Records a world that cannot be compared. A judge that ended ends the run.
fn stopped(
    origin: &str,
    reason: &str,
    error: JudgeError,
    report: &mut Report,
) -> Result<bool, JudgeError> {
    match error {
        JudgeError::Refused(message) | JudgeError::Reply(message) => {
            report.fail(reason, || format!("{origin}: {message}"));
            Ok(false)
        }
        other => Err(other),
    }
}

//! `world`: writes a generated world as manifests and prints its counts.

#[path = "mod.rs"]
mod world;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use world::{Join, Shape, Teams, World};

/// What to do, as parsed from the command line.
enum Invocation {
    /// Print the help text.
    Help,
    /// Generate a world, and write it to a directory if there is one.
    World(Box<Shape>, Option<PathBuf>),
    /// Generate the world of teams, and write it to a directory if there is one.
    Teams(Teams, Option<PathBuf>),
}

/// An error with its exit code and message.
struct Stop(u8, String);

const HELP: &str = "\
Write a generated world as manifests and print its counts.

Usage: world [OPTIONS]

  --shape NAME         small, medium (default), fanout or teams; other options override it.
                       teams has policies of Kuadrant, no profiles.yaml, and only the
                       options --gateways, --listeners, --namespaces, --routes and --rules
  --out DIR            write DIR/profiles.yaml and DIR/manifests/*.yaml; DIR must be
                       missing or empty; without it only the counts are printed
  --seed N             seed of every random choice [1]
  --gateways N         Gateways, in namespace edge
  --listeners N        listeners of each Gateway, 1 to 64
  --namespaces N       namespaces with routes and Services
  --routes N           HTTPRoutes in all
  --join one|all       listeners of its Gateway that a route attaches to
  --rules N            rules of each route, 1 to 16, the first half named
  --backends N         backendRefs of each rule, 1 to 16
  --services N         Services in all
  --ports N            ports of each Service, 1 to 100
  --policies N         policies in all, evenly distributed over the five kinds
  --shares LIST        per cent of policies on namespaces, gateways, listeners, routes,
                       rules, services, ports, e.g. 3,2,5,40,25,15,10
  --spec-bytes A[-B]   size of a policy's spec as compact JSON, in bytes, 512 to 65536
  --direct             make Limit a Direct kind (strategy None, one policy per node)
  --help, -h           print this help

Examples:
  world --out /tmp/medium
  world --shape fanout --seed 7 --out /tmp/fanout
  world --routes 10000 --policies 1000 --spec-bytes 2048
";

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop(code, message)) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}

/// Parses and executes the arguments.
fn run(args: Vec<String>) -> Result<(), Stop> {
    let usage = |message| Stop(2, message);
    let (shape, out) = match parse(&args).map_err(usage)? {
        Invocation::Help => return print(HELP),
        Invocation::Teams(teams, out) => return run_teams(teams, out),
        Invocation::World(shape, out) => (shape, out),
    };
    let world = World::generate(&shape).map_err(usage)?;
    if let Some(out) = out {
        world.write(&out).map_err(|message| Stop(3, message))?;
    }
    print(&format!("seed{:>24}\n{}", shape.seed, world.counts()))
}

/// Writes the world of teams and prints its counts.
fn run_teams(teams: Teams, out: Option<PathBuf>) -> Result<(), Stop> {
    teams.check().map_err(|message| Stop(2, message))?;
    let mut text = teams.to_string();
    if let Some(out) = out {
        let bytes = teams.write(&out).map_err(|message| Stop(3, message))?;
        text.push_str(&format!("{:<18}{bytes:>10}\n", "bytes"));
    }
    print(&text)
}

/// Prints to standard output; a closed pipe is an error, not a panic.
fn print(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Stop(3, format!("cannot print: {error}")))
}

/// Parses the arguments: `--name value`, `--name=value` or a flag.
fn parse(args: &[String]) -> Result<Invocation, String> {
    let mut given = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg.as_str(), None),
        };
        match (name, inline) {
            ("--help" | "-h", None) => return Ok(Invocation::Help),
            ("--direct", None) => given.push((name, "")),
            ("--direct", Some(_)) => return Err("`--direct` takes no value".into()),
            _ if !name.starts_with("--") => return Err(format!("unexpected argument `{arg}`")),
            (_, Some(value)) => given.push((name, value)),
            (_, None) => {
                let value = rest
                    .next()
                    .ok_or_else(|| format!("`{name}` needs a value"))?;
                given.push((name, value.as_str()));
            }
        }
    }
    // The preset is applied first, independent of its position.
    let preset = given.iter().rev().find(|(name, _)| *name == "--shape");
    if preset.is_some_and(|(_, name)| *name == "teams") {
        return parse_teams(&given);
    }
    let mut shape = preset.map_or(Ok(Shape::default()), |(_, name)| {
        let known = Shape::PRESETS.join(", ");
        Shape::preset(name)
            .ok_or_else(|| format!("unknown shape `{name}`, known are {known}, teams"))
    })?;
    let mut out = None;
    for (name, value) in given {
        match name {
            "--shape" => {}
            "--out" => out = Some(PathBuf::from(value)),
            _ => set(&mut shape, name, value)?,
        }
    }
    Ok(Invocation::World(Box::new(shape), out))
}

/// Reads the options of the world of teams.
fn parse_teams(given: &[(&str, &str)]) -> Result<Invocation, String> {
    let mut teams = Teams::default();
    let mut out = None;
    for &(name, value) in given {
        match name {
            "--shape" => {}
            "--out" => out = Some(PathBuf::from(value)),
            "--gateways" => teams.gateways = number(name, value)?,
            "--listeners" => teams.listeners = number(name, value)?,
            "--namespaces" => teams.namespaces = number(name, value)?,
            "--routes" => teams.routes = number(name, value)?,
            "--rules" => teams.rules = number(name, value)?,
            _ => return Err(format!("`{name}` is no option of the shape `teams`")),
        }
    }
    Ok(Invocation::Teams(teams, out))
}

/// Sets one option of the shape.
fn set(shape: &mut Shape, name: &str, value: &str) -> Result<(), String> {
    match name {
        "--gateways" => shape.gateways = number(name, value)?,
        "--listeners" => shape.listeners = number(name, value)?,
        "--namespaces" => shape.namespaces = number(name, value)?,
        "--routes" => shape.routes = number(name, value)?,
        "--rules" => shape.rules = number(name, value)?,
        "--backends" => shape.backends = number(name, value)?,
        "--services" => shape.services = number(name, value)?,
        "--ports" => shape.ports = number(name, value)?,
        "--policies" => shape.policies = number(name, value)?,
        "--seed" => shape.seed = number(name, value)?,
        "--direct" => shape.direct = true,
        "--join" => {
            shape.join = match value {
                "one" => Join::One,
                "all" => Join::All,
                _ => return Err(format!("`--join` is one or all, not `{value}`")),
            }
        }
        "--shares" => {
            let shares: Result<Vec<_>, _> =
                value.split(',').map(|share| number(name, share)).collect();
            shape.shares = shares?
                .try_into()
                .map_err(|_| "`--shares` needs seven numbers".to_string())?;
        }
        "--spec-bytes" => {
            let (low, high) = value.split_once('-').unwrap_or((value, value));
            shape.spec_bytes = (number(name, low)?, number(name, high)?);
        }
        _ => return Err(format!("unknown option `{name}`, see --help")),
    }
    Ok(())
}

/// Parses an integer.
fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("`{name}` needs an integer, not `{value}`"))
}

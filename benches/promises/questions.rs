//! Rows of batches and explanations.

use std::hint::black_box;
use std::time::Instant;

use entail::api::v1;
use entail::insight::{AccessScope, batch, explain};

use crate::bench_world::{generate, names, request, version};
use crate::rows::{Row, least, millis, row};

/// Batches of ten paths, and of the maximum number of paths.
pub fn batches() -> Vec<Row> {
    let snapshot = generate("100k").snapshot_builder().snapshot(version());
    let names = names(&snapshot, 10_000);
    let rows = [10, 10_000].map(|many| {
        let requests = names.iter().take(many).map(|name| request(name));
        let request = v1::BatchGetEffectivePoliciesRequest {
            requests: requests.collect(),
            kinds: Vec::new(),
        };
        let mut bodies = 0;
        let time = least(9, || {
            let began = Instant::now();
            bodies = black_box(batch(&snapshot, &request, &AccessScope::default()))
                .unwrap()
                .bodies
                .len();
            began.elapsed()
        });
        let each = time.as_nanos() as f64 / many as f64;
        let figure = format!(
            "{:.3} ms ({each:.0} ns a path, {bodies} bodies)",
            millis(time)
        );
        row(
            &format!("batch of {many} paths of {}", snapshot.paths()),
            "-",
            figure,
            None,
        )
    });
    rows.into()
}

/// Explanations of single paths.
pub fn explained() -> Vec<Row> {
    let mut snapshot_builder = generate("100k").snapshot_builder();
    // A snapshot builds its world on first use: the names come from another snapshot, so that the
    // time is measured below.
    let names = names(&snapshot_builder.snapshot(version()), 200);
    let snapshot = snapshot_builder.snapshot(version());
    let began = Instant::now();
    snapshot.world();
    let read = began.elapsed();
    let explain_path = |name: &String| {
        let request = v1::ExplainRequest {
            name: name.clone(),
            ..Default::default()
        };
        black_box(explain(&snapshot, &request, &AccessScope::default())).unwrap()
    };
    let time = least(3, || {
        let began = Instant::now();
        names.iter().for_each(|name| drop(explain_path(name)));
        began.elapsed()
    });
    let figure = format!(
        "{:.2} ms ({:.0} ms before the first)",
        millis(time) / names.len() as f64,
        millis(read)
    );
    vec![row(
        &format!("explain a path of {}", snapshot.paths()),
        "-",
        figure,
        None,
    )]
}

//! Previews of small manifests with very many paths.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use entail_client::v1;

use crate::run::{Attack, Outcome};
use crate::target::Target;
use crate::wire;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("n-preview", |target| Box::pin(preview(target, 1))),
    ("n-preview-16-at-once", |target| {
        Box::pin(preview(target, 16))
    }),
];

/// 1 000 listeners and 10 000 rules.
fn manifests() -> String {
    let mut text = String::from(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: w}\nspec:\n gatewayClassName: quiet\n \
         listeners:\n",
    );
    for listener in 0..1_000 {
        writeln!(
            text,
            " - {{name: l{listener},port: {},protocol: HTTP}}",
            1 + listener
        )
        .unwrap();
    }
    write!(
        text,
        "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: w}}\nspec: {{parentRefs: \
         [{{name: w}}], rules: [{}]}}\n",
        "{},".repeat(10_000)
    )
    .unwrap();
    text
}

async fn preview(target: Arc<Target>, times: usize) -> Outcome {
    let request = v1::PreviewChangeRequest {
        manifests: manifests(),
        deletes: Vec::new(),
    };
    let method = wire::insight("PreviewChange");
    let size = request.manifests.len() >> 10;
    let body = wire::message(&request);
    let replies = target
        .call_often(&method, body, times, Duration::from_secs(15))
        .await;
    let arrival = target.edit_arrives_within(Duration::from_secs(4)).await?;
    Ok(format!(
        "{size} KiB: {replies}; an edit arrives after {arrival:.1?}"
    ))
}

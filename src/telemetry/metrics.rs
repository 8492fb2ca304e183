//! Metrics in the OpenMetrics text format. Most are read where they arise when somebody asks; what
//! has to be gathered over time is gathered here. Labels are kinds, codes and resources, never names
//! of policies or objects.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Seconds from the first change taken to the snapshot published.
const PUBLISH_BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// How old an answer may be.
const CACHE_TTL: Duration = Duration::from_millis(250);

/// A metric as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, without the `_total` of counters.
    pub name: &'static str,
    /// What it counts, one sentence without the full stop.
    pub help: &'static str,
    /// Its values.
    pub values: MetricValues,
}

/// Labels of a value.
type Labels = Vec<(&'static str, String)>;

/// The values of a metric, by labels.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValues {
    /// It only grows.
    Counter(Vec<(Labels, u64)>),
    /// It goes up and down.
    Gauge(Vec<(Labels, f64)>),
}

/// All metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    publish: Histogram,
    /// What was told last, and when: who asks all the time does not hold up the writer.
    cached: Mutex<Option<(Instant, String)>>,
}

/// Reads metrics where they arise.
struct MetricSource<F>(F);

impl Metrics {
    /// Metrics that `read` tells when somebody asks, beside those that are gathered.
    pub fn new(read: impl Fn() -> Vec<Metric> + Send + Sync + 'static) -> Self {
        let mut registry = Registry::default();
        let publish = Histogram::new(PUBLISH_BUCKETS);
        registry.register(
            "entail_publish_seconds",
            "Seconds from the first change taken to the snapshot published",
            publish.clone(),
        );
        registry.register_collector(Box::new(MetricSource(Arc::new(read))));
        Self {
            registry,
            publish,
            cached: Mutex::new(None),
        }
    }

    /// Takes note of a snapshot's publication.
    pub fn observe_publish(&self, took: Duration) {
        self.publish.observe(took.as_secs_f64());
    }

    /// All metrics as text, at most `CACHE_TTL` old. May wait for what it reads.
    pub fn text(&self) -> String {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = cached.as_ref().filter(|(at, _)| at.elapsed() < CACHE_TTL) {
            return text.clone();
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _written = encode(&mut text, &self.registry);
        *cached = Some((Instant::now(), text.clone()));
        text
    }
}

impl Metric {
    /// A counter without labels.
    pub fn counter(name: &'static str, help: &'static str, value: u64) -> Self {
        Self::counters(name, help, vec![(Vec::new(), value)])
    }

    /// A counter with labels.
    pub fn counters(name: &'static str, help: &'static str, values: Vec<(Labels, u64)>) -> Self {
        let values = MetricValues::Counter(values);
        Self { name, help, values }
    }

    /// A gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self::gauges(name, help, vec![(Vec::new(), value)])
    }

    /// A gauge with labels.
    pub fn gauges(name: &'static str, help: &'static str, values: Vec<(Labels, f64)>) -> Self {
        let values = MetricValues::Gauge(values);
        Self { name, help, values }
    }
}

impl<F> fmt::Debug for MetricSource<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetricSource")
    }
}

impl<F> Collector for MetricSource<Arc<F>>
where
    F: Fn() -> Vec<Metric> + Send + Sync + 'static,
{
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in (self.0)() {
            let kind = match metric.values {
                MetricValues::Counter(_) => MetricType::Counter,
                MetricValues::Gauge(_) => MetricType::Gauge,
            };
            let mut encoder = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            match &metric.values {
                MetricValues::Counter(values) => {
                    for (labels, value) in values {
                        let mut one = encoder.encode_family(labels)?;
                        one.encode_counter::<NoLabelSet, _, u64>(value, None)?;
                    }
                }
                MetricValues::Gauge(values) => {
                    for (labels, value) in values {
                        encoder.encode_family(labels)?.encode_gauge(value)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_written_as_open_metrics() {
        let metrics = Metrics::new(|| {
            vec![
                Metric::counters(
                    "entail_x",
                    "Things",
                    vec![(vec![("kind", "a\"b".into())], 3)],
                ),
                Metric::gauge("entail_y", "Others", 1.5),
            ]
        });
        metrics.observe_publish(Duration::from_millis(2));
        let text = metrics.text();
        for line in [
            "# TYPE entail_publish_seconds histogram",
            "entail_publish_seconds_bucket{le=\"0.001\"} 0",
            "entail_publish_seconds_bucket{le=\"0.0025\"} 1",
            "# HELP entail_x Things",
            "# TYPE entail_x counter",
            "entail_x_total{kind=\"a\\\"b\"} 3",
            "# TYPE entail_y gauge",
            "entail_y{} 1.5",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}

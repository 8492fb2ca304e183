//! Metrics in the OpenMetrics text format.
//!
//! Most metrics are read from their sources when they are requested; histograms are stored here.
//! Labels are kinds, codes and resources, never names of policies or objects, so that the number of
//! time series is bounded.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the buckets of `entail_publish_seconds` and `entail_build_seconds`.
const PUBLISH_BUCKETS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0,
];

/// How long a rendered text is served again.
const CACHE_TTL: Duration = Duration::from_millis(250);

/// A metric with its current values.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name, without the `_total` suffix of counters.
    pub name: &'static str,
    /// Help text, without a full stop.
    pub help: &'static str,
    /// Current values.
    pub values: MetricValues,
}

/// Labels of a value.
type Labels = Vec<(&'static str, String)>;

/// The values of a metric, by labels.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValues {
    /// Values that only increase.
    Counter(Vec<(Labels, u64)>),
    /// Times that only increase, in seconds.
    Seconds(Vec<(Labels, f64)>),
    /// Values that can increase and decrease.
    Gauge(Vec<(Labels, f64)>),
    /// Distributions of observed values.
    Histogram(Vec<(Labels, HistogramValue)>),
}

/// A distribution of observed values.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramValue {
    /// Sum of all values.
    pub sum: f64,
    /// Upper bound of each bucket and the number of values in it, not cumulative. The bound of the
    /// last bucket is `f64::INFINITY`, which is rendered as `+Inf`.
    pub buckets: Vec<(f64, u64)>,
}

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    publish: Histogram,
    build: Histogram,
    /// The last rendered text and its time, so that frequent scrapes do not block the reconciler.
    cached: Mutex<Option<(Instant, String)>>,
}

/// Collector that reads the metrics from a function.
struct MetricSource<F>(F);

impl Metrics {
    /// Creates the metrics. `read` returns the current values of all metrics that are not stored
    /// here; it is called for each rendered text.
    pub fn new(read: impl Fn() -> Vec<Metric> + Send + Sync + 'static) -> Self {
        let mut registry = Registry::default();
        let publish = Histogram::new(PUBLISH_BUCKETS);
        registry.register(
            "entail_publish_seconds",
            "Seconds from the first change to the published snapshot",
            publish.clone(),
        );
        let build = Histogram::new(PUBLISH_BUCKETS);
        registry.register(
            "entail_build_seconds",
            "Seconds to apply changes and to compute a snapshot from them",
            build.clone(),
        );
        registry.register_collector(Box::new(MetricSource(Arc::new(read))));
        Self {
            registry,
            publish,
            build,
            cached: Mutex::new(None),
        }
    }

    /// Records the time from the first change to the published snapshot.
    pub fn observe_publish(&self, duration: Duration) {
        self.publish.observe(duration.as_secs_f64());
    }

    /// Records how long a snapshot has been computed.
    pub fn observe_build(&self, duration: Duration) {
        self.build.observe(duration.as_secs_f64());
    }

    /// Renders all metrics as OpenMetrics text, which is at most `CACHE_TTL` old. May block while
    /// the values are read.
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

    /// A counter of seconds without labels.
    pub fn seconds(name: &'static str, help: &'static str, value: f64) -> Self {
        let values = MetricValues::Seconds(vec![(Vec::new(), value)]);
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

    /// A histogram with labels.
    pub fn histograms(
        name: &'static str,
        help: &'static str,
        values: Vec<(Labels, HistogramValue)>,
    ) -> Self {
        let values = MetricValues::Histogram(values);
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
                MetricValues::Counter(_) | MetricValues::Seconds(_) => MetricType::Counter,
                MetricValues::Gauge(_) => MetricType::Gauge,
                MetricValues::Histogram(_) => MetricType::Histogram,
            };
            let mut encoder = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            match &metric.values {
                MetricValues::Counter(values) => {
                    for (labels, value) in values {
                        let mut one = encoder.encode_family(labels)?;
                        one.encode_counter::<NoLabelSet, _, u64>(value, None)?;
                    }
                }
                MetricValues::Seconds(values) => {
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
                MetricValues::Histogram(values) => {
                    for (labels, HistogramValue { sum, buckets }) in values {
                        let count = buckets.iter().map(|(_, count)| count).sum();
                        let mut one = encoder.encode_family(labels)?;
                        one.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?;
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
    fn metrics_are_rendered_as_open_metrics() {
        let metrics = Metrics::new(|| {
            vec![
                Metric::counters(
                    "entail_x",
                    "Things",
                    vec![(vec![("kind", "a\"b".into())], 3)],
                ),
                Metric::gauge("entail_y", "Others", 1.5),
                Metric::seconds("entail_w_seconds", "Times", 2.5),
                Metric::histograms(
                    "entail_z_seconds",
                    "Durations",
                    vec![(
                        vec![("method", "Get".into())],
                        HistogramValue {
                            sum: 4.5,
                            buckets: vec![(0.000_01, 2), (1.0, 0), (f64::INFINITY, 1)],
                        },
                    )],
                ),
            ]
        });
        metrics.observe_publish(Duration::from_millis(2));
        metrics.observe_build(Duration::from_secs(20));
        let text = metrics.text();
        for line in [
            "# TYPE entail_publish_seconds histogram",
            "entail_publish_seconds_bucket{le=\"0.001\"} 0",
            "entail_publish_seconds_bucket{le=\"0.0025\"} 1",
            "entail_build_seconds_bucket{le=\"5.0\"} 0",
            "entail_build_seconds_bucket{le=\"30.0\"} 1",
            "# HELP entail_x Things",
            "# TYPE entail_x counter",
            "entail_x_total{kind=\"a\\\"b\"} 3",
            "# TYPE entail_w_seconds counter",
            "entail_w_seconds_total{} 2.5",
            "# TYPE entail_y gauge",
            "entail_y{} 1.5",
            "# TYPE entail_z_seconds histogram",
            "entail_z_seconds_sum{method=\"Get\"} 4.5",
            "entail_z_seconds_count{method=\"Get\"} 3",
            "entail_z_seconds_bucket{le=\"0.00001\",method=\"Get\"} 2",
            "entail_z_seconds_bucket{le=\"1.0\",method=\"Get\"} 2",
            "entail_z_seconds_bucket{le=\"+Inf\",method=\"Get\"} 3",
            "# EOF",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }
}

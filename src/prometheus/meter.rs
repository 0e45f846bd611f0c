//! Creates metrics and renders them.

use std::sync::Arc;

use metrics::{Counter, Gauge, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::families;
use super::histogram::{Family, Histogram, Histograms};

/// The labels of a series, in the order in which they are shown.
pub type Labels<'a> = &'a [(&'static str, &'a str)];

const METADATA: Metadata<'static> = Metadata::new("flotilla", Level::INFO, None);

/// Raises a gauge by one until this value is dropped, alone or with the future that holds it.
#[derive(Debug)]
pub struct Raised(Gauge);

impl Raised {
    /// Raises the gauge.
    pub fn new(gauge: Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// All metrics that are updated on each event.
pub struct Meter {
    recorder: PrometheusRecorder,
    exporter: PrometheusHandle,
    histograms: Histograms,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

impl Default for Meter {
    fn default() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        for (name, help) in families::COUNTERS {
            recorder.describe_counter((*name).into(), None, (*help).into());
        }
        for (name, help) in families::GAUGES {
            recorder.describe_gauge((*name).into(), None, (*help).into());
        }
        Self { exporter: recorder.handle(), recorder, histograms: Histograms::default() }
    }
}

impl Meter {
    /// Returns the counter with these labels.
    pub fn counter(&self, name: &'static str, labels: Labels<'_>) -> Counter {
        self.recorder.register_counter(&key(name, labels), &METADATA)
    }

    /// Returns the gauge with these labels.
    pub fn gauge(&self, name: &'static str, labels: Labels<'_>) -> Gauge {
        self.recorder.register_gauge(&key(name, labels), &METADATA)
    }

    /// Returns the histogram with these labels.
    pub fn histogram(&self, family: &'static Family, labels: Labels<'_>) -> Arc<Histogram> {
        self.histograms.get(family, labels)
    }

    /// Returns the histograms of a family, with the text of their labels.
    pub fn all_of(&self, family: &Family) -> Vec<(String, Arc<Histogram>)> {
        self.histograms.all_of(family)
    }

    /// Renders all metrics in the text form.
    pub fn render(&self) -> String {
        let mut out = self.exporter.render();
        self.histograms.write(&mut out);
        out
    }
}

fn key(name: &'static str, labels: Labels<'_>) -> Key {
    Key::from_parts(name, labels.iter().map(|(name, value)| Label::new(*name, value.to_string())).collect::<Vec<_>>())
}

//! Gauges that are made when somebody asks for them.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// Labels and a value.
pub(crate) type Series<'a> = (Vec<(&'a str, &'a str)>, usize);

/// Gauges of one name.
pub(crate) fn family(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: &[Series<'_>],
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in series {
        gauge(*value).encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}

/// A gauge without labels.
pub(crate) fn one(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: usize) -> fmt::Result {
    gauge(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn gauge(value: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

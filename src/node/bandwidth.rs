//! `kubernetes.io/ingress-bandwidth` and `kubernetes.io/egress-bandwidth`: bits per second as a
//! Kubernetes quantity (`10M`, `1.5G`, `512Ki`, `1e6`).

/// Bits per second of a pod, seen from the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bandwidth {
    pub(crate) ingress: Option<u64>,
    pub(crate) egress: Option<u64>,
}

const LEAST: f64 = 1e3;
const MOST: f64 = 1e15;

/// Bits per second, between 1k and 1P as in ovn-kubernetes. The error says why the text is refused.
pub(crate) fn parse(text: &str) -> Result<u64, &'static str> {
    let rate = quantity(text.trim()).ok_or("it is not a quantity such as 10M")?;
    if (LEAST..=MOST).contains(&rate) { Ok(rate.round() as u64) } else { Err("it is not between 1k and 1P") }
}

fn quantity(text: &str) -> Option<f64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale: f64 = match text.get(number.len()..)? {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        "Pi" => 1_125_899_906_842_624.0,
        "Ei" => 1_152_921_504_606_846_976.0,
        _ => return None,
    };
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
        && number.bytes().any(|b| b.is_ascii_digit());
    // a number with an exponent has no suffix
    let exponent = number.contains(['e', 'E']);
    if !plain || (exponent && scale.to_bits() != 1f64.to_bits()) {
        None
    } else {
        number.parse::<f64>().ok().map(|n| n * scale)
    }
}

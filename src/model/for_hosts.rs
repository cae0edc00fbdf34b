//! What masters tell the hosts, in the ConfigMap `ovnkube-cluster`, while agents run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{HostRoutes, OvnRelease, keys};

/// What one ConfigMap says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForHosts {
    /// `None`: no host has routes to other clusters.
    pub routes: Option<HostRoutes>,
    /// The release of northd, which writes what ovn-controller carries out. `None`: it is not known.
    pub northd: Option<OvnRelease>,
}

impl ForHosts {
    /// From the data of the ConfigMap, with what cannot be used of it: each key, and what is wrong there.
    pub fn read(data: &BTreeMap<String, String>) -> (Self, Vec<(&'static str, String)>) {
        let (routes, bad) = HostRoutes::read(data).unzip();
        let mut bad: Vec<_> = bad.into_iter().flatten().map(|problem| (keys::HOST_ROUTES, problem)).collect();
        let text = data.get(keys::NORTHD_RELEASE);
        let northd = text.and_then(|text| OvnRelease::parse(text));
        if text.is_some() && northd.is_none() {
            bad.push((keys::NORTHD_RELEASE, "is no release such as 26.03.1".to_owned()));
        }
        (Self { routes, northd }, bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bad_hides_nothing_else() {
        let read = |routes: &str, northd: &str| {
            let data = [(keys::HOST_ROUTES, routes), (keys::NORTHD_RELEASE, northd)];
            ForHosts::read(&data.map(|(key, value)| (key.to_owned(), value.to_owned())).into())
        };
        assert_eq!(ForHosts::read(&BTreeMap::new()), (ForHosts::default(), Vec::new()));
        let (told, bad) = read("az2 10.244.0.0/16\n", "26.03.1");
        assert_eq!(
            (told.routes.unwrap().prefixes.len(), told.northd, bad.len()),
            (1, Some(OvnRelease::new(26, 3, 1)), 0)
        );
        let (told, bad) = read("az2 10.244.0.0/16\n", "new");
        assert_eq!((told.routes.unwrap().prefixes.len(), told.northd), (1, None));
        assert_eq!(bad, [(keys::NORTHD_RELEASE, "is no release such as 26.03.1".to_owned())]);
        let (told, bad) = read("az2 ten", "26.03.1");
        assert_eq!((told.northd, bad.len()), (Some(OvnRelease::new(26, 3, 1)), 1));
    }
}

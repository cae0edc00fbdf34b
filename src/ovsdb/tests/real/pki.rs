//! Certificate authorities and certificates, made with `openssl`.

use std::path::{Path, PathBuf};
use std::process::Command;

use ovnkube_ovsdb::TlsFiles;

pub(crate) const SERVER: &str =
    "basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=IP:127.0.0.1,DNS:db.example";
pub(crate) const CLIENT: &str = "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth";
/// Years in the future, in the past, and between them.
pub(crate) const LATER: [&str; 2] = ["20450101000000Z", "20460101000000Z"];
pub(crate) const OVER: [&str; 2] = ["20200101000000Z", "20210101000000Z"];
const NOW: [&str; 2] = ["20210101000000Z", "20450101000000Z"];

/// Signs certificates in a directory, where `NAME.pem` and `NAME.key` are its own.
pub(crate) struct Authority {
    dir: PathBuf,
    name: &'static str,
}

impl Authority {
    pub(crate) fn new(dir: &Path, name: &'static str) -> Self {
        let subject = format!("/C=US/O=Open_vSwitch/CN={name}");
        let (key, cert) = (format!("{name}.key"), format!("{name}.pem"));
        openssl(
            dir,
            &["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", &subject, "-keyout", &key, "-out", &cert],
        );
        let config = format!(
            "[ca]\ndefault_ca=it\n[it]\nnew_certs_dir=.\nunique_subject=no\ndefault_md=sha256\npolicy=policy\n\
             serial={name}.serial\ndatabase={name}.index\n[policy]\ncommonName=supplied\n"
        );
        std::fs::write(dir.join(format!("{name}.conf")), config).unwrap();
        std::fs::write(dir.join(format!("{name}.index")), "").unwrap();
        Authority { dir: dir.to_owned(), name }
    }

    /// `NAME.pem` and `NAME.key` with these extensions.
    pub(crate) fn signs(&self, name: &str, extensions: &str) {
        self.signs_for(name, name, extensions, NOW);
    }

    /// The same in another file, and for another period. A server that runs reads its files whenever their times change: it
    /// must not see half of one, because a file that is completed in the same tick of the kernel's clock looks unchanged.
    pub(crate) fn signs_for(&self, name: &str, file: &str, extensions: &str, period: [&str; 2]) {
        self.writes(name, &format!("{file}.new"), extensions, period);
        for kind in ["key", "pem"] {
            std::fs::rename(self.dir.join(format!("{file}.new.{kind}")), self.dir.join(format!("{file}.{kind}")))
                .unwrap();
        }
    }

    fn writes(&self, name: &str, file: &str, extensions: &str, [from, until]: [&str; 2]) {
        let file = |suffix: &str| format!("{file}.{suffix}");
        let (key, request) = (file("key"), file("csr"));
        let subject = format!("/CN={name}");
        let of_key = ["-newkey", "rsa:2048", "-nodes", "-keyout", &key];
        openssl(&self.dir, &[&["req", "-subj", &subject, "-out", &request][..], &of_key].concat());
        std::fs::write(self.dir.join(file("ext")), extensions).unwrap();
        let (config, ca_key, ca) =
            (format!("{}.conf", self.name), format!("{}.key", self.name), format!("{}.pem", self.name));
        let by = ["ca", "-batch", "-notext", "-rand_serial", "-config", &config, "-keyfile", &ca_key, "-cert", &ca];
        let what =
            ["-in", &request, "-out", &file("pem"), "-extfile", &file("ext"), "-startdate", from, "-enddate", until];
        openssl(&self.dir, &[&by[..], &what].concat());
    }
}

fn openssl(dir: &Path, args: &[&str]) {
    let out = Command::new("openssl").current_dir(dir).args(args).output();
    let out = out.unwrap_or_else(|e| panic!("openssl is missing ({e}): run lab/install"));
    assert!(out.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// The files of a client called `name`, and the CA that it trusts.
pub(crate) fn files(dir: &Path, name: &str, ca: &str) -> TlsFiles {
    TlsFiles {
        certificate: dir.join(format!("{name}.pem")),
        private_key: dir.join(format!("{name}.key")),
        ca: dir.join(format!("{ca}.pem")),
        common_name: None,
    }
}

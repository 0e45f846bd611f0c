//! Flags that kube-apiserver does not have. `flotilla serve --help` describes each at length.

use super::{Kind, Section, own};

/// Flotilla.
pub(super) const FLOTILLA: Section = Section {
    title: "Flotilla",
    flags: &[
        own("config", Kind::Text, "", "File with options of this section, named as the flags are."),
        own("data-dir", Kind::Text, "", "Directory of the server's data; by default beside the certificates."),
        own(
            "embedded-controllers",
            Kind::Bool,
            "false",
            "Run the controllers that otherwise a kube-controller-manager runs.",
        ),
        own("end-with-parent", Kind::Bool, "false", "Stop when the process that has started the server ends."),
        own("groups", Kind::Int, "0", "Groups that replicate the resources of --shards."),
        own("history-bytes", Kind::Int, "1073741824", "Bytes of memory that the history of one resource may take."),
        own("history-seconds", Kind::Int, "300", "Seconds of history that is kept for watches and older snapshots."),
        own("initial-cluster", Kind::Text, "", "Members that form a cluster, and where each listens for the others."),
        own(
            "initial-cluster-size",
            Kind::Int,
            "",
            "How many members form the cluster, when they find each other by a host name.",
        ),
        own("log-level", Kind::Text, "", "Level of the log, also for parts of the server; replaces --v."),
        own("name", Kind::Text, "", "Name of this member."),
        own("peer-advertise", Kind::Text, "", "Address at which the others reach this member."),
        own("peer-listen", Kind::Text, "", "Address and port where this member listens for the others."),
        own("pki-dir", Kind::Text, "", "Directory of the certificates and keys that members share."),
        own("shards", Kind::Text, "", "Number of shards of resources, as in pods=8."),
        own("shutdown-grace-seconds", Kind::Int, "30", "Seconds that a stopping server gives to open requests."),
        own(
            "tls-san",
            Kind::Texts,
            "",
            "Further name or address for the certificate that the server makes for itself.",
        ),
        own(
            "unsafe-no-fsync",
            Kind::Bool,
            "false",
            "Do not wait until writes are on the disk: for servers whose data may be lost.",
        ),
        own("workers", Kind::Int, "0", "Threads that serve HTTP; 0 means one for each processor."),
    ],
};

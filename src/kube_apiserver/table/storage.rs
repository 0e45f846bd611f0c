//! Flags about etcd.

use super::{Kind, Section, accepted, acts, logged};

/// Etcd.
pub(super) const ETCD: Section = Section {
    title: "Etcd",
    flags: &[
        accepted("delete-collection-workers", Kind::Int, "1", "Workers that delete collections."),
        accepted(
            "enable-garbage-collector",
            Kind::Bool,
            "true",
            "Keep finalizers for the garbage collector; they are always kept.",
        ),
        acts(
            "encryption-provider-config",
            Kind::Text,
            "",
            "File with the keys that encrypt everything that is stored.",
        ),
        logged(
            "encryption-provider-config-automatic-reload",
            Kind::Bool,
            "",
            "Read the file of --encryption-provider-config again when it changes.",
            "the file of --encryption-provider-config is read when the server starts",
        ),
        accepted("etcd-cafile", Kind::Text, "", "Authorities of etcd's certificates; there is no etcd."),
        accepted("etcd-certfile", Kind::Text, "", "Certificate to show to etcd; there is no etcd."),
        accepted(
            "etcd-compaction-interval",
            Kind::Duration,
            "5m0s",
            "How often etcd forgets old revisions; history here is bounded by time.",
        ),
        accepted("etcd-count-metric-poll-period", Kind::Duration, "1m0s", "How often objects are counted for metrics."),
        accepted("etcd-db-metric-poll-interval", Kind::Duration, "30s", "How often etcd is asked for its size."),
        accepted(
            "etcd-healthcheck-timeout",
            Kind::Duration,
            "2s",
            "How long etcd may take to answer a check of health.",
        ),
        accepted("etcd-keyfile", Kind::Text, "", "Key of the certificate for etcd; there is no etcd."),
        accepted("etcd-prefix", Kind::Text, "/registry", "Prefix of all keys in etcd; there is no etcd."),
        accepted(
            "etcd-readycheck-timeout",
            Kind::Duration,
            "2s",
            "How long etcd may take to answer a check of readiness.",
        ),
        logged(
            "etcd-servers",
            Kind::Strings,
            "",
            "Servers of etcd. They are not contacted: this server stores the objects itself.",
            "no etcd is used: this server stores the objects itself, alone unless --initial-cluster names members",
        ),
        logged(
            "etcd-servers-overrides",
            Kind::Strings,
            "",
            "Servers of etcd for certain resources.",
            "no etcd is used",
        ),
        accepted(
            "lease-reuse-duration-seconds",
            Kind::Int,
            "60",
            "How long leases of etcd are reused; there is no etcd.",
        ),
        accepted("storage-backend", Kind::Text, "", "Kind of the storage."),
        accepted(
            "storage-media-type",
            Kind::Text,
            "application/vnd.kubernetes.protobuf",
            "Encoding of objects in the storage; here it is JSON.",
        ),
        accepted("watch-cache", Kind::Bool, "true", "Keep a cache for watches; the tables themselves serve them here."),
        accepted("watch-cache-sizes", Kind::Strings, "", "Sizes of those caches."),
    ],
};

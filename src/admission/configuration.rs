//! The file of `--admission-control-config-file`: configurations of admission plugins (AdmissionConfiguration of
//! `apiserver.config.k8s.io`).

use std::path::{Path, PathBuf};

use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use super::chain;
use super::event_rates::EventRates;
use super::image_policy::{ImagePolicy, Settings};
use super::plugins::pod_node_selector::Selectors;
use super::tolerations::Tolerations;
use crate::field::Errors;
use crate::kinds::admission::LostNodes;
use crate::kinds::admission::pod_security;
use crate::kinds::admission::quota::Limited;
use crate::pki::{KubeconfigError, PkiError, read_credential};
use crate::webhooks::Users;

/// Versions of the file, and the kind that it has.
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
const KIND: &str = "AdmissionConfiguration";
/// Versions and kinds of the configuration of webhooks.
const OF_WEBHOOKS: [(&str, &str); 2] = [
    ("apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"),
    ("apiserver.config.k8s.io/v1alpha1", "WebhookAdmission"),
];

/// The settings of the plugins.
#[derive(Debug, Default)]
pub struct Configuration {
    mutating: Users,
    validating: Users,
    /// The standards of namespaces without labels, and exemptions.
    pub pod_security: pod_security::Settings,
    /// The rates of events.
    pub event_rates: EventRates,
    /// The times for which pods stay on lost nodes. Flags set them.
    pub lost_nodes: LostNodes,
    /// The tolerations of namespaces that state none.
    pub tolerations: Tolerations,
    /// The resources that nobody may consume without a quota.
    pub limited: Vec<Limited>,
    /// The webhook that decides about images.
    pub image_policy: Option<ImagePolicy>,
    /// The node selectors of namespaces.
    pub node_selectors: Selectors,
}

/// Versions of a configuration, and its kind.
type KnownVersions = &'static [(&'static str, &'static str)];

/// Versions and kind of the configuration of PodSecurity.
const OF_POD_SECURITY: KnownVersions = &[
    ("pod-security.admission.config.k8s.io/v1", "PodSecurityConfiguration"),
    ("pod-security.admission.config.k8s.io/v1beta1", "PodSecurityConfiguration"),
    ("pod-security.admission.config.k8s.io/v1alpha1", "PodSecurityConfiguration"),
];
/// Version and kind of the configuration of EventRateLimit.
const OF_EVENT_RATES: KnownVersions = &[("eventratelimit.admission.k8s.io/v1alpha1", "Configuration")];

/// Version and kind of the configuration of PodTolerationRestriction.
const OF_TOLERATIONS: KnownVersions = &[("podtolerationrestriction.admission.k8s.io/v1alpha1", "Configuration")];
/// Versions and kinds of the configuration of ResourceQuota.
const OF_QUOTAS: KnownVersions = &[
    ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
];

/// The reasons why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] PkiError),
    /// A file is not YAML.
    #[error("{path} is no YAML")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// The mistake.
        source: yaml::Error,
    },
    /// A file has a setting that is wrong, or that this server does not support.
    #[error("{path}: {why}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The mistake.
        why: String,
    },
    /// The kubeconfig for webhooks cannot be used.
    #[error("{path}: the kubeconfig for webhooks")]
    Kubeconfig {
        /// The file that names it.
        path: PathBuf,
        /// The mistake.
        source: KubeconfigError,
    },
    /// The kubeconfig of the webhook for images cannot be used.
    #[error("{path}: imagePolicy.kubeConfigFile")]
    Images {
        /// The file that names it.
        path: PathBuf,
        /// The mistake.
        source: KubeconfigError,
    },
}

impl Configuration {
    /// Reads the file, and the files that it names.
    ///
    /// # Errors
    /// A file cannot be read, or has a setting that is wrong or not supported.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        let document = Document::read(path)?;
        let (version, kind) = (document.text("apiVersion"), document.text("kind"));
        if !VERSIONS.contains(&version) || kind != KIND {
            let why = format!("no kind {kind:?} is registered for version {version:?}: it must be {KIND:?}");
            return Err(document.wrong(why));
        }
        let mut configuration = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for entry in document.root.list_at(&["plugins"]) {
            let name = entry.str_at(&["name"]);
            if seen.contains(&name) {
                continue; // as in the reference, the first entry counts
            }
            seen.push(name);
            if let Some(of_plugin) = document.of_plugin(entry)? {
                configuration.take(name, &of_plugin)?;
            }
        }
        Ok(configuration)
    }

    /// Checks that the enabled plugins have the configuration that they need.
    ///
    /// # Errors
    /// States the missing configuration.
    pub fn suffices(&self, enabled: &[String]) -> Result<(), &'static str> {
        if enabled.iter().any(|plugin| plugin == "EventRateLimit") && self.event_rates.is_empty() {
            return Err("EventRateLimit has no limits: name them in --admission-control-config-file");
        }
        if enabled.iter().any(|plugin| plugin == "ImagePolicyWebhook") && self.image_policy.is_none() {
            return Err("ImagePolicyWebhook has no webhook: name it in --admission-control-config-file");
        }
        Ok(())
    }

    /// Returns the users for mutating webhooks, or for validating ones.
    pub const fn users(&self, mutating: bool) -> &Users {
        if mutating { &self.mutating } else { &self.validating }
    }

    fn take(&mut self, plugin: &str, document: &Document) -> Result<(), ConfigurationError> {
        match plugin {
            "MutatingAdmissionWebhook" => self.mutating = document.users()?,
            "ValidatingAdmissionWebhook" => self.validating = document.users()?,
            "PodSecurity" => self.pod_security = document.settings(OF_POD_SECURITY, pod_security::Settings::read)?,
            "EventRateLimit" => self.event_rates = document.settings(OF_EVENT_RATES, EventRates::read)?,
            "PodTolerationRestriction" => self.tolerations = document.settings(OF_TOLERATIONS, Tolerations::read)?,
            "PodNodeSelector" => self.node_selectors = document.unversioned(Selectors::read)?,
            "ImagePolicyWebhook" => self.image_policy = Some(document.image_policy()?),
            "ResourceQuota" => self.limited = document.settings(OF_QUOTAS, Limited::read)?,
            "MutatingAdmissionPolicy" | "ValidatingAdmissionPolicy"
                if !document.text("staticManifestsDir").is_empty() =>
            {
                return Err(document.wrong(format!("{plugin}: staticManifestsDir cannot be used here")));
            }
            name if chain::find(name).is_none() => {
                tracing::warn!(plugin = name, "no admission plugin has this name: its configuration is ignored");
            }
            _ => {}
        }
        Ok(())
    }
}

/// A document, and its file.
struct Document {
    path: PathBuf,
    root: Value,
}

impl Document {
    fn read(path: &Path) -> Result<Self, ConfigurationError> {
        let text = read_credential(path)?;
        let parsed = yaml::parse(text.as_bytes());
        let root = parsed.map_err(|source| ConfigurationError::Yaml { path: path.to_owned(), source })?.value;
        Ok(Self { path: path.to_owned(), root })
    }

    fn text(&self, field: &str) -> &str {
        self.root.str_at(&[field])
    }

    fn wrong(&self, why: String) -> ConfigurationError {
        ConfigurationError::Wrong { path: self.path.clone(), why }
    }

    /// Returns the configuration that an entry has for its plugin, in place or in a file that it names. Returns `None`
    /// if the entry has none.
    fn of_plugin(&self, entry: &Value) -> Result<Option<Self>, ConfigurationError> {
        let inline = entry.at(&["configuration"]);
        if !inline.is_null() {
            return Ok(Some(Self { path: self.path.clone(), root: inline.clone() }));
        }
        match entry.str_at(&["path"]) {
            "" => Ok(None),
            path => Self::read(&self.path.parent().unwrap_or(Path::new("")).join(path)).map(Some),
        }
    }

    /// Returns the users of the kubeconfig for webhooks.
    fn users(&self) -> Result<Users, ConfigurationError> {
        let (version, kind) = (self.text("apiVersion"), self.text("kind"));
        if !OF_WEBHOOKS.contains(&(version, kind)) {
            let why =
                format!("no kind {kind:?} is registered for version {version:?}: it must be {:?}", OF_WEBHOOKS[0].1);
            return Err(self.wrong(why));
        }
        if !self.text("staticManifestsDir").is_empty() {
            return Err(self.wrong("staticManifestsDir cannot be used here".into()));
        }
        let named = self.text("kubeConfigFile");
        if !Path::new(named).is_absolute() {
            let why = format!("kubeConfigFile: Invalid value: {named:?}: must be an absolute file path");
            return Err(self.wrong(why));
        }
        Users::read(Path::new(named))
            .map_err(|source| ConfigurationError::Kubeconfig { path: self.path.clone(), source })
    }

    /// Returns the webhook for images.
    fn image_policy(&self) -> Result<ImagePolicy, ConfigurationError> {
        let settings = self.unversioned(Settings::read)?;
        ImagePolicy::new(settings).map_err(|source| ConfigurationError::Images { path: self.path.clone(), source })
    }

    /// Returns the settings of a plugin, which `read` takes from a document of these versions and kinds.
    fn settings<T>(&self, known: KnownVersions, read: fn(&Value, &mut Errors) -> T) -> Result<T, ConfigurationError> {
        let (version, kind) = (self.text("apiVersion"), self.text("kind"));
        if !known.contains(&(version, kind)) {
            let (newest, right) = known.first().copied().unwrap_or_default();
            let why =
                format!("no kind {kind:?} is registered for version {version:?}: it must be {right:?} of {newest:?}");
            return Err(self.wrong(why));
        }
        self.unversioned(read)
    }

    /// Returns the settings of a plugin whose configuration has neither version nor kind.
    fn unversioned<T>(&self, read: fn(&Value, &mut Errors) -> T) -> Result<T, ConfigurationError> {
        let mut errors = Errors::default();
        let settings = read(&self.root, &mut errors);
        match errors.is_empty() {
            true => Ok(settings),
            false => Err(self.wrong(errors.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn read(plugins: &str) -> Result<Configuration, String> {
        let dir = Scratch::new();
        let kubeconfig = dir.join("kubeconfig");
        std::fs::write(&kubeconfig, "users: [{name: '*', user: {token: t}}]").unwrap();
        let webhooks = "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nkubeConfigFile: ";
        std::fs::write(dir.join("webhooks"), format!("{webhooks}{}", kubeconfig.display())).unwrap();
        let path = dir.join("configuration");
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:";
        std::fs::write(&path, format!("{head} {plugins}")).unwrap();
        Configuration::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn mutating_and_validating_webhooks_have_their_own_users() {
        let read = read("[{name: ValidatingAdmissionWebhook, path: webhooks}]").unwrap();
        assert!(read.users(false).of("h:1").is_some() && read.users(true).of("h:1").is_none());
    }

    #[test]
    fn standards_have_a_version_and_a_kind() {
        let configured = |settings: &str| {
            let head = "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration";
            read(&format!("[{{name: PodSecurity, configuration: {{{head}, {settings}}}}}]"))
        };
        let read = configured("exemptions: {namespaces: [kube-system]}").unwrap();
        assert!(read.pod_security.exempts_namespace("kube-system"));
        let error = configured("defaults: {enforce: strict}").unwrap_err();
        assert!(error.contains("defaults.enforce: Invalid value: \"strict\": must be one of"), "{error}");
    }

    #[test]
    fn settings_without_effect_are_accepted() {
        let quotas = "{apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources: []}";
        read(&format!("[{{name: ResourceQuota, configuration: {quotas}}}, {{name: Priority}}, {{name: None}}]"))
            .unwrap();
    }

    #[test]
    fn impossible_configurations_are_refused() {
        for (plugins, part) in [
            ("[{name: ImagePolicyWebhook, configuration: {}}]", "imagePolicy.kubeConfigFile: Required value"),
            ("[{name: ImagePolicyWebhook, configuration: {imagePolicy: {kubeConfigFile: none}}}]", "kubeConfigFile"),
            ("[{name: PodNodeSelector, configuration: {podNodeSelectorPluginConfig: []}}]", "must be selectors"),
            ("[{name: PodTolerationRestriction, configuration: {default: []}}]", "no kind \"\""),
            ("[{name: EventRateLimit, configuration: {limits: []}}]", "no kind \"\""),
            ("[{name: PodSecurity, configuration: {defaults: {enforce: baseline}}}]", "no kind \"\""),
            ("[{name: ResourceQuota, configuration: {limitedResources: [{resource: pods}]}}]", "no kind \"\""),
            ("[{name: MutatingAdmissionWebhook, configuration: {kind: X}}]", "no kind \"X\""),
            ("[{name: MutatingAdmissionWebhook, path: none}]", "cannot use"),
        ] {
            let error = read(plugins).unwrap_err();
            assert!(error.contains(part), "{plugins}: {error}");
        }
        let relative = "[{name: MutatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, \
            kind: WebhookAdmissionConfiguration, kubeConfigFile: a}}]";
        assert!(read(relative).unwrap_err().contains("must be an absolute file path"));
    }
}

//! Fills Secrets of type `kubernetes.io/service-account-token` with a token, and removes them with their service
//! account.

use std::rc::Rc;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_cluster::{Interest, Object, Scope, Selection};
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::access::tokens::{Account, LegacyAccount};
use crate::follow::follow;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::request::DeleteOptions;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

const TYPE: &str = "kubernetes.io/service-account-token";
/// The annotation in which a Secret names its account.
pub(super) const ACCOUNT_NAME: [&str; 3] = ["metadata", "annotations", "kubernetes.io/service-account.name"];
/// The annotation in which a Secret states the UID of its account.
pub(super) const ACCOUNT_UID: [&str; 3] = ["metadata", "annotations", "kubernetes.io/service-account.uid"];

/// An item of the queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum TokenSecretItem {
    /// A secret: namespace and name.
    Secret(String, String),
    /// The secrets of an account: namespace and name.
    Account(String, String),
}

struct TokenSecretController {
    agent: Rc<Agent>,
    secrets: Arc<Served>,
    accounts: Arc<Served>,
    queue: Queue<TokenSecretItem>,
}

/// Fills and removes secrets.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let (secrets, accounts) = (agent.resource("", "secrets")?, agent.resource("", "serviceaccounts")?);
    let queue = Queue::new(measured);
    let controller = TokenSecretController { agent, secrets, accounts, queue };
    let registry = &controller.agent.registry;
    let (secrets, accounts) = (registry.tables.table(&controller.secrets), registry.tables.table(&controller.accounts));
    tokio::join!(
        follow(&secrets, Interest { field: Some(token_type()), ..Interest::default() }, |seen| {
            if let Some(secret) = seen.live().or(seen.deleted()) {
                controller.add(TokenSecretItem::Secret, secret);
            }
        }),
        follow(&accounts, Interest::default(), |seen| {
            if let Some(account) = seen.deleted() {
                controller.add(TokenSecretItem::Account, account);
            }
        }),
        controller.queue.work(limits::TOKEN_SECRET_WORKERS, |item| controller.attempt(item)),
    );
    Ok(())
}

/// Selects Secrets with tokens of service accounts.
pub(super) fn token_type() -> (compact_str::CompactString, compact_str::CompactString) {
    ("type".into(), TYPE.into())
}

impl TokenSecretController {
    fn add(&self, item: fn(String, String) -> TokenSecretItem, object: &Object) {
        let key = object.key();
        self.queue.add(item(key.namespace().unwrap_or("").to_owned(), key.name().to_owned()));
    }

    async fn attempt(&self, item: TokenSecretItem) -> ApiResult<Requeue> {
        match item {
            TokenSecretItem::Secret(namespace, name) => {
                let target = Target::object(&self.secrets, &namespace, &name);
                match self.agent.get(target)? {
                    Some(secret) if secret.str_at(&["type"]) == TYPE => self.settle(target, &secret).await?,
                    Some(_) => {}
                    None => self.forget(target).await?,
                }
            }
            TokenSecretItem::Account(namespace, _) => self.revisit(&namespace)?,
        }
        Ok(Requeue::Never)
    }

    /// Puts the secrets of a namespace into the queue again, since one of their accounts is gone.
    fn revisit(&self, namespace: &str) -> ApiResult<()> {
        let snapshot = self.agent.registry.tables.table(&self.secrets).snapshot();
        let selection =
            Selection { scope: Scope::namespace(namespace), field: Some(token_type()), ..Selection::default() };
        for secrets in scan(&snapshot, selection) {
            secrets.map_err(ApiError::internal)?.iter().for_each(|secret| self.add(TokenSecretItem::Secret, secret));
        }
        Ok(())
    }

    async fn settle(&self, target: Target<'_>, secret: &Value) -> ApiResult<()> {
        let uid = secret.str_at(&["metadata", "uid"]);
        let name = secret.str_at(&ACCOUNT_NAME);
        let of = Target { served: &self.accounts, name, ..target };
        let stated = secret.str_at(&ACCOUNT_UID);
        let find = || -> ApiResult<Option<String>> {
            let account = self.agent.get(of)?.map(|account| account.str_at(&["metadata", "uid"]).to_owned());
            Ok(account.filter(|account| stated.is_empty() || stated == account))
        };
        let mut account = find()?;
        if account.is_none() {
            // Another replica may have stored it, and this one has not seen it yet.
            self.agent.registry.tables.catch_up_with(of.served, of.namespace, of.name).await?;
            account = find()?;
        }
        let settled = match account {
            None => {
                let options = DeleteOptions { uid: Some(uid.to_owned()), ..DeleteOptions::default() };
                self.agent.delete(target, &options).await
            }
            Some(account) => self.fill(target, secret, account).await,
        };
        match settled {
            // The secret is gone, or another one has its name. That one has an entry of its own in the queue.
            Err(ApiError { code: 404, .. }) => Ok(()),
            other => other,
        }
    }

    /// Adds the missing data and annotations to a secret.
    async fn fill(&self, target: Target<'_>, secret: &Value, account_uid: String) -> ApiResult<()> {
        let name = secret.str_at(&ACCOUNT_NAME).to_owned();
        let root_ca = STANDARD.encode(&self.agent.settings.root_ca);
        let namespace = STANDARD.encode(target.namespace);
        let token = match secret.str_at(&["data", "token"]) {
            "" => {
                let account = Account { namespace: target.namespace.to_owned(), name, uid: account_uid.clone() };
                let of = LegacyAccount { account, secret: target.name.to_owned() };
                let token = self.agent.settings.issuer.issue_legacy(&of).map_err(ApiError::internal)?;
                STANDARD.encode(token)
            }
            token => token.to_owned(),
        };
        let wanted: [(&[&str], &str); 4] = [
            (&["data", "ca.crt"], &root_ca),
            (&["data", "namespace"], &namespace),
            (&["data", "token"], &token),
            (&ACCOUNT_UID, &account_uid),
        ];
        if wanted.iter().all(|(path, value)| secret.str_at(path) == *value) {
            return Ok(());
        }
        let uid = secret.str_at(&["metadata", "uid"]);
        let fill = |object: &mut Value| wanted.iter().for_each(|(path, value)| object.set_at(path, *value));
        self.agent.edit(target, uid, fill).await
    }

    /// Removes the name of a deleted secret from the accounts that list it.
    async fn forget(&self, secret: Target<'_>) -> ApiResult<()> {
        let snapshot = self.agent.registry.tables.table(&self.accounts).snapshot();
        let selection = Selection { scope: Scope::namespace(secret.namespace), ..Selection::default() };
        for accounts in scan(&snapshot, selection) {
            for account in accounts.map_err(ApiError::internal)? {
                let target = Target { served: &self.accounts, name: account.key().name(), ..secret };
                let names = |value: &Value| value.str_at(&["name"]) == secret.name;
                let current = self.agent.get(target)?;
                if !current.is_some_and(|account| account.list_at(&["secrets"]).iter().any(names)) {
                    continue;
                }
                let remove = |object: &mut Value| {
                    if let Some(secrets) = object.get_mut("secrets").and_then(Value::as_array_mut) {
                        secrets.retain(|value| !names(value));
                    }
                };
                match self.agent.edit(target, "", remove).await {
                    Err(error) if error.code != 404 => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

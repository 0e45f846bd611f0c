//! An admission plugin: a name, and steps in writes of the resources that concern it.

use std::sync::Arc;

use flotilla_proto::value::Value;
use futures_util::future::LocalBoxFuture;

use super::{BuiltInAttributes, DynamicAttributes, Operation};
use crate::served::Served;
use crate::status::ApiResult;

/// The condition under which a plugin is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// On, unless the configuration disables it.
    On,
    /// Off, unless the configuration enables it.
    Off,
    /// Always on: it cannot be disabled, or disabling it would change nothing.
    Always,
}

/// The basis of a step's decision. The registry's shortcuts follow from it: a write that the store makes only if the
/// object is unchanged proves decisions by [`DecidesBy::Object`], and no others.
#[derive(Debug, Clone, Copy)]
pub enum DecidesBy {
    /// By the object before and after the write, the user, and the permissions of users, which every member follows.
    /// Anything else that the step reads leads to warnings only, or may be outdated, as in the reference.
    Object,
    /// By other objects in the tables of the server.
    Tables,
    /// By other objects for updates for which the function returns true, and by the object for all other updates. The
    /// arguments of the function are the new and the stored object.
    TablesFor(fn(&Value, &Value) -> bool),
    /// By something outside the server, which must not be asked twice about a stored write.
    Outside,
}

/// A resource or one of its subresources.
#[derive(Debug, Clone, Copy)]
pub struct ResourcePart<'a> {
    /// The resource.
    pub served: &'a Served,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
}

impl<'a> ResourcePart<'a> {
    /// Returns the group in which objects are stored, the plural name, and the subresource.
    pub fn name(self) -> (&'a str, &'a str, &'a str) {
        (&self.served.stored.group, &self.served.resource.name, self.subresource)
    }

    /// Returns whether an operation creates or updates objects of a resource, by its group and plural name.
    pub fn is_written(self, operation: Operation, (group, resource): (&str, &str)) -> bool {
        self.name() == (group, resource, "") && matches!(operation, Operation::Create | Operation::Update)
    }
}

/// An object that must exist before a write goes on.
#[derive(Debug)]
pub struct Prerequisite {
    /// The resource of the object.
    pub served: Arc<Served>,
    /// The object, decoded in the version of the resource. It has a name.
    pub object: Value,
}

/// Changes or refuses an object that is not finished. For a deletion the object is null.
pub type Mutate = fn(&BuiltInAttributes<'_>, &mut Value) -> ApiResult<()>;
/// Refuses a finished object.
pub type Validate = fn(&BuiltInAttributes<'_>, &Value) -> ApiResult<()>;
/// Returns an object that must exist before a write goes on. Returns `None` if there is nothing to create.
pub type Prepare = fn(&BuiltInAttributes<'_>) -> ApiResult<Option<Prerequisite>>;
/// Creates such an object.
pub type Provide<'p> = dyn Fn(Prerequisite) -> LocalBoxFuture<'p, ApiResult<()>> + 'p;
/// Refuses a finished object, and may wait.
pub type ValidateWaiting = for<'a> fn(&'a BuiltInAttributes<'_>, &'a Value) -> LocalBoxFuture<'a, ApiResult<()>>;
/// Lets something outside the server change or refuse an object.
pub type MutateOutside = for<'a> fn(&'a mut DynamicAttributes<'_>) -> LocalBoxFuture<'a, ApiResult<()>>;
/// Lets something outside the server refuse a finished object.
pub type ValidateOutside = for<'a> fn(&'a DynamicAttributes<'_>) -> LocalBoxFuture<'a, ApiResult<()>>;

/// The way in which a mutating step runs.
#[derive(Debug, Clone, Copy)]
pub enum Mutating {
    /// Before everything else: states an object that must exist. Such a step changes and refuses nothing.
    First(Prepare),
    /// Within the server, without a wait.
    Within(Mutate),
    /// By asking outside. The plugin has an index of the resources that it may match.
    Outside(MutateOutside),
}

/// The way in which a validating step runs.
#[derive(Debug, Clone, Copy)]
pub enum Validating {
    /// Within the server, without a wait.
    Within(Validate),
    /// In its place among the plugins within the server, by asking outside.
    Asking(ValidateWaiting),
    /// By asking outside, as for [`Mutating::Outside`].
    Outside(ValidateOutside),
    /// Within the server, after everything else.
    Last(ValidateWaiting),
}

/// A step of a plugin.
#[derive(Debug, Clone, Copy)]
pub struct PluginStep<R> {
    /// Returns the basis of the step's decision in an operation. Returns `None` if the step has nothing to do. Called
    /// once for each resource and subresource.
    pub decides_by: fn(ResourcePart<'_>, Operation) -> Option<DecidesBy>,
    /// The step itself.
    pub run: R,
}

/// An admission plugin.
#[derive(Debug, Clone, Copy)]
pub struct Plugin {
    /// The name that Kubernetes gives it.
    pub name: &'static str,
    /// The condition under which it is on.
    pub presence: Presence,
    /// Returns whether the plugin has anything to do in one write. If not, the write is not counted among those that
    /// the plugin saw.
    pub applies: fn(&BuiltInAttributes<'_>, &Value) -> bool,
    /// The step before the object is finished.
    pub mutating: Option<PluginStep<Mutating>>,
    /// The step when the object is finished.
    pub validating: Option<PluginStep<Validating>>,
}

impl Plugin {
    /// Returns a plugin without steps.
    pub const fn new(name: &'static str, presence: Presence) -> Self {
        Self { name, presence, applies: |_, _| true, mutating: None, validating: None }
    }

    /// Returns a plugin that has nothing to do: it allows everything, or it belongs to a feature that is off, or the
    /// rules of kinds do its work.
    pub const fn idle(name: &'static str) -> Self {
        Self::new(name, Presence::Always)
    }

    /// Returns the plugin with a step that changes or refuses objects within the server.
    pub const fn mutating(
        mut self,
        decides_by: fn(ResourcePart<'_>, Operation) -> Option<DecidesBy>,
        run: Mutate,
    ) -> Self {
        self.mutating = Some(PluginStep { decides_by, run: Mutating::Within(run) });
        self
    }

    /// Returns the plugin with a step that refuses finished objects within the server.
    pub const fn validating(
        mut self,
        decides_by: fn(ResourcePart<'_>, Operation) -> Option<DecidesBy>,
        run: Validate,
    ) -> Self {
        self.validating = Some(PluginStep { decides_by, run: Validating::Within(run) });
        self
    }

    /// Returns the plugin with a step that lets something outside change or refuse objects.
    pub const fn mutating_outside(mut self, run: MutateOutside) -> Self {
        self.mutating = Some(PluginStep { decides_by: |_, _| Some(DecidesBy::Outside), run: Mutating::Outside(run) });
        self
    }

    /// Returns the plugin with a step that lets something outside refuse finished objects.
    pub const fn validating_outside(mut self, run: ValidateOutside) -> Self {
        self.validating =
            Some(PluginStep { decides_by: |_, _| Some(DecidesBy::Outside), run: Validating::Outside(run) });
        self
    }
}

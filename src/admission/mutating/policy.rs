//! Compiles and evaluates one MutatingAdmissionPolicy.

use flotilla_proto::schema::Type;
use flotilla_proto::value::{Map, Value};

use super::super::Effort;
use super::super::policy::{Policy, Spec, sees};
use crate::expressions::{
    Activation, BUDGET, Compiled, Compiler, Fault, Inputs, OUT_OF_BUDGET, OptionalNames, PatchOperation, Wanted,
    misnamed, operations, tree,
};
use crate::fieldmanager;
use crate::patch::Operations;

/// The error of the JSON patch library for a `test` that does not hold.
const TEST_FAILED: &str = "test failed";

/// A compiled policy that changes objects.
#[derive(Debug)]
pub struct MutatingPolicy {
    spec: Spec,
    /// The mutations, in order.
    pub mutations: Vec<Mutation>,
    /// Whether it runs again if the object changes afterwards.
    pub is_reinvoked: bool,
}

/// One mutation of a policy.
#[derive(Debug)]
pub struct Mutation {
    /// Whether it is a JSON patch rather than an apply configuration.
    pub is_json_patch: bool,
    expression: Result<Compiled, Fault>,
}

impl Policy for MutatingPolicy {
    fn read(policy: &Value) -> Self {
        let (spec, compiler) = Spec::read(policy);
        let of = policy.at(&["spec"]);
        let sees = OptionalNames { patches: true, ..sees(of) };
        Self {
            spec,
            mutations: of.list_at(&["mutations"]).iter().map(|one| Mutation::read(one, &compiler, sees)).collect(),
            is_reinvoked: of.str_at(&["reinvocationPolicy"]) == "IfNeeded",
        }
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }
}

impl Mutation {
    fn read(mutation: &Value, compiler: &Compiler, sees: OptionalNames) -> Self {
        let is_json_patch = mutation.str_at(&["patchType"]) == "JSONPatch";
        let (field, wanted) = match is_json_patch {
            true => ("jsonPatch", Wanted::Patches),
            false => ("applyConfiguration", Wanted::Object),
        };
        let text = mutation.str_at(&[field, "expression"]);
        Self { is_json_patch, expression: compiler.compile(text, wanted, sees) }
    }

    /// Returns the object of the inputs, which is of type `of`, after the mutation.
    ///
    /// # Errors
    /// The mutation failed. The text has the reference's wording.
    pub fn patched(&self, spec: &Spec, inputs: Inputs<'_>, of: &Type, effort: &mut Effort) -> Result<Value, String> {
        if let Err(fault) = &self.expression {
            return Err(fault.to_string());
        }
        if effort.is_spent() {
            return Err(OUT_OF_BUDGET.to_owned());
        }
        let granted = effort.grant(BUDGET);
        let (activation, mut budget) = (Activation::new(inputs, &spec.variables), granted);
        let evaluated = activation.evaluate(&self.expression, &mut budget);
        effort.spend(granted - budget);
        let value = evaluated.map_err(|stopped| stopped.to_string())??;
        if self.is_json_patch {
            return patch(operations(&value)?, inputs.object);
        }
        misnamed(&value)?;
        let mut configuration = tree(&value, false)?;
        for field in ["apiVersion", "kind"] {
            configuration.set_at(&[field], inputs.object.at(&[field]).clone());
        }
        fieldmanager::configured(of, inputs.object, &configuration)
            .map_err(|why| format!("error applying patch: {why}"))
    }
}

/// Applies operations to an object. Returns it unchanged if a `test` does not hold.
fn patch(operations: Vec<PatchOperation>, object: &Value) -> Result<Value, String> {
    let listed = operations.into_iter().map(|operation| {
        let mut listed = Map::new();
        listed.insert("op", operation.op);
        listed.insert("path", operation.path);
        if !operation.from.is_empty() {
            listed.insert("from", operation.from);
        }
        if let Some(value) = operation.value {
            listed.insert("value", value);
        }
        Value::Object(listed)
    });
    let (operations, _) = Operations::read(listed.collect::<Vec<_>>().into(), false).map_err(|error| error.message)?;
    match operations.apply_telling(object.clone()) {
        Err(why) if why.ends_with(TEST_FAILED) => Ok(object.clone()),
        patched => patched.map_err(|why| format!("JSON Patch: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::{catalogue, value};

    use super::*;

    fn patched(mutation: Value) -> Result<Value, String> {
        patched_by(&MutatingPolicy::read(&value!({"metadata": {"name": "p"}, "spec": {"mutations": [mutation]}})))
    }

    /// Applies the first mutation of a policy to a ConfigMap.
    fn patched_by(policy: &MutatingPolicy) -> Result<Value, String> {
        let (object, none) = (value!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}), Value::Null);
        let inputs = Inputs {
            object: &object,
            old_object: &none,
            request: &none,
            namespace: &none,
            params: &none,
            authorizer: None,
        };
        let of = &catalogue::kind("", "v1", "ConfigMap").unwrap().of;
        policy.mutations[0].patched(policy.spec(), inputs, of, &mut Effort::default())
    }

    fn configuration(expression: &str) -> Value {
        value!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
    }

    fn operations(expression: &str) -> Value {
        value!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
    }

    #[test]
    fn configurations_are_merged() {
        let data = patched(configuration("Object{data: {'c': object.data.a}, immutable: true}")).unwrap();
        assert_eq!(data.at(&["data"]), &value!({"a": "b", "c": "b"}));
        let why = patched(configuration("Object{metadata: Object.spec{}}")).unwrap_err();
        let wanted = "type mismatch: unexpected type name \"Object.spec\", expected \"Object.metadata\", which matches \
            field name path from root Object type";
        assert_eq!(why, wanted);
    }

    #[test]
    fn operations_are_applied() {
        let add = "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('x/y'), value: 'z'}]";
        assert_eq!(patched(operations(add)).unwrap().at(&["data"]), &value!({"a": "b", "x/y": "z"}));
        let tests = "[JSONPatch{op: 'test', path: '/data/a', value: 'z'}, JSONPatch{op: 'remove', path: '/data'}]";
        assert_eq!(patched(operations(tests)).unwrap().str_at(&["data", "a"]), "b");
        let why = patched(operations("[JSONPatch{op: 'remove', path: '/data/x'}]")).unwrap_err();
        let wanted =
            "JSON Patch: error in remove for path: '/data/x': Unable to remove nonexistent key: x: missing value";
        assert_eq!(why, wanted);
    }

    #[test]
    fn values_that_variables_build_from_each_other_are_bounded() {
        // Each variable nests the one before as deeply as an expression may, or doubles it.
        let policy = |wrap: &dyn Fn(usize) -> String, last: usize| {
            let variable = |at: usize| {
                let text = if at == 0 { "'x'".to_owned() } else { wrap(at - 1) };
                value!({"name": (format!("v{at}")), "expression": text})
            };
            let variables: Vec<Value> = (0..=last).map(variable).collect();
            let mutation = configuration(&format!("Object{{data: {{'c': dyn(variables.v{last})}}}}"));
            let spec = value!({"variables": variables, "mutations": [mutation]});
            MutatingPolicy::read(&value!({"metadata": {"name": "p"}, "spec": spec}))
        };
        let why = |policy: &MutatingPolicy| patched_by(policy).unwrap_err();
        let nested = |before: usize| format!("{}variables.v{before}{}", "[".repeat(100), "]".repeat(100));
        let deep = why(&policy(&nested, 60));
        assert!(deep.contains("its value nests more than 512 levels deep"), "{deep}");
        let doubled = |before: usize| format!("[variables.v{before}, variables.v{before}]");
        assert_eq!(why(&policy(&doubled, 60)), "what it makes has more than 3145728 bytes");
    }
}

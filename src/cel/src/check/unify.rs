//! Unification of types: which types are assignable, and the bindings of type variables.

use std::collections::HashMap;
use std::sync::Arc;

use crate::types::{Named, Type};

/// The bindings of type variables so far.
#[derive(Debug, Default)]
pub struct Bindings {
    bound: HashMap<Arc<str>, Type>,
    /// The earlier bindings, so that a failed attempt can be undone.
    trail: Vec<(Arc<str>, Option<Type>)>,
    fresh: usize,
}

impl Bindings {
    /// Returns a new, unbound type variable.
    pub fn fresh(&mut self) -> Type {
        self.fresh += 1;
        Type::param(&format!("_var{}", self.fresh - 1))
    }

    /// Returns whether a value of type `from` is assignable to `to`. Binds variables only if it is.
    pub fn assign(&mut self, to: &Type, from: &Type) -> bool {
        self.attempt(|this| this.fits(to, from))
    }

    /// Returns the same for several pairs of types at once.
    pub fn assign_all(&mut self, to: &[Type], from: &[Type]) -> bool {
        self.attempt(|this| this.all_fit(to, from))
    }

    fn attempt(&mut self, fits: impl FnOnce(&mut Self) -> bool) -> bool {
        self.trail.clear();
        let fit = fits(self);
        if !fit {
            while let Some((name, before)) = self.trail.pop() {
                match before {
                    Some(before) => self.bound.insert(name, before),
                    None => self.bound.remove(&name),
                };
            }
        }
        fit
    }

    fn bind(&mut self, name: &Arc<str>, to: Type) {
        let before = self.bound.insert(name.clone(), to);
        self.trail.push((name.clone(), before));
    }

    fn all_fit(&mut self, to: &[Type], from: &[Type]) -> bool {
        to.len() == from.len() && to.iter().zip(from).all(|(to, from)| self.fits(to, from))
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Param(name) = other {
            match self.substitutes(one, name) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Param(name) = one {
            return self.substitutes(other, name).0;
        }
        if one.is_dyn_or_error() || other.is_dyn_or_error() {
            return true;
        }
        match (one, other) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::List(one), Type::List(other)) => self.fits(one, other),
            (Type::Map(one), Type::Map(other)) => self.fits(&one.0, &other.0) && self.fits(&one.1, &other.1),
            (Type::Opaque(one), Type::Opaque(other)) => {
                one.name == other.name && self.all_fit(&one.params, &other.params)
            }
            (Type::Type(_), Type::Type(_)) => true,
            (one, other) => unwrapped(one) == unwrapped(other),
        }
    }

    /// Returns whether the variable may be bound to the type, and whether it was bound before.
    fn substitutes(&mut self, of: &Type, name: &Arc<str>) -> (bool, bool) {
        if matches!(of, Type::Param(other) if other == name) {
            return (true, true);
        }
        let Some(bound) = self.bound.get(name).cloned() else {
            if self.occurs_not(name, of) {
                self.bind(name, of.clone());
                return (true, false);
            }
            return (false, false);
        };
        if *of == bound {
            return (true, true);
        }
        if !self.fits(of, &bound) {
            return (false, true);
        }
        let general = most_general(of, &bound);
        if self.occurs_not(name, &general) {
            self.bind(name, general);
        }
        (true, true)
    }

    /// Returns whether the type does not contain the variable (occurs check), so that the variable may be bound to it.
    fn occurs_not(&self, name: &Arc<str>, within: &Type) -> bool {
        match within {
            Type::Param(other) if other == name => false,
            Type::Param(other) => self.bound.get(other).is_none_or(|bound| self.occurs_not(name, bound)),
            other => other.parameters().into_iter().all(|each| self.occurs_not(name, each)),
        }
    }

    /// Returns the type with its variables replaced by their bindings; unbound ones stay.
    pub fn resolve(&self, of: &Type) -> Type {
        self.replace(of, false)
    }

    /// Returns the same, with unbound variables replaced by `dyn`.
    pub fn finalize(&self, of: &Type) -> Type {
        self.replace(of, true)
    }

    fn replace(&self, of: &Type, finalize: bool) -> Type {
        match of {
            Type::Param(name) => match self.bound.get(name) {
                Some(bound) => self.replace(bound, finalize),
                None if finalize => Type::Dyn,
                None => of.clone(),
            },
            Type::List(element) => Type::list(self.replace(element, finalize)),
            Type::Map(entry) => Type::map(self.replace(&entry.0, finalize), self.replace(&entry.1, finalize)),
            Type::Type(Some(of)) => Type::type_of(self.replace(of, finalize)),
            Type::Opaque(named) if !named.params.is_empty() => Type::Opaque(Arc::new(Named {
                name: named.name.clone(),
                params: named.params.iter().map(|param| self.replace(param, finalize)).collect(),
            })),
            other => other.clone(),
        }
    }
}

/// Returns a type of an overload with its parameters replaced by variables of this call.
pub fn instantiate(of: &Type, with: &HashMap<Arc<str>, Type>) -> Type {
    match of {
        Type::Param(name) => with.get(name).unwrap_or(of).clone(),
        Type::List(element) => Type::list(instantiate(element, with)),
        Type::Map(entry) => Type::map(instantiate(&entry.0, with), instantiate(&entry.1, with)),
        Type::Type(Some(of)) => Type::type_of(instantiate(of, with)),
        Type::Opaque(named) if !named.params.is_empty() => Type::Opaque(Arc::new(Named {
            name: named.name.clone(),
            params: named.params.iter().map(|param| instantiate(param, with)).collect(),
        })),
        other => other.clone(),
    }
}

fn unwrapped(of: &Type) -> &Type {
    match of {
        Type::Wrapper(of) => of,
        other => other,
    }
}

/// Returns whether `null` is assignable to the type.
fn is_nullable(of: &Type) -> bool {
    matches!(of, Type::Null | Type::Opaque(_) | Type::Object(_) | Type::Duration | Type::Timestamp | Type::Wrapper(_))
}

/// Returns the more general of two types that fit each other.
pub fn most_general(one: &Type, other: &Type) -> Type {
    if is_as_general(one, other) { one.clone() } else { other.clone() }
}

fn is_as_general(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Any | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Any | Type::Param(_)) => false,
        (Type::List(one), Type::List(other)) => is_as_general(one, other),
        (Type::Map(one), Type::Map(other)) => is_as_general(&one.0, &other.0) && is_as_general(&one.1, &other.1),
        (Type::Opaque(one), Type::Opaque(other)) => {
            one.name == other.name
                && one.params.len() == other.params.len()
                && one.params.iter().zip(&other.params).all(|(one, other)| is_as_general(one, other))
        }
        (Type::Type(_), Type::Type(_)) => true,
        (one, other) => unwrapped(one) == unwrapped(other),
    }
}

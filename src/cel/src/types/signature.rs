//! Signatures of overloads, written as text in the tables: `string.startsWith(string): bool`, `size(list(A)): int`.
//!
//! A single capital letter is a type parameter, `kubernetes.X` an object type, and any other unknown name an opaque
//! type.

use super::Type;

/// The types of an overload's arguments and result.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Whether it is called on its first argument: `a.f(b)`.
    pub is_member: bool,
    /// The types of all arguments, the receiver first.
    pub arguments: Vec<Type>,
    /// The type of the result.
    pub result: Type,
}

/// Names of the type parameters in a signature.
pub type Parameters = Vec<std::sync::Arc<str>>;

impl Signature {
    /// Parses `[RECEIVER.](ARGUMENT, ...): RESULT`. `None` if it is malformed, which is an error in a table.
    pub fn read(text: &str) -> Option<Self> {
        let mut reader = SignatureReader { rest: text };
        let mut arguments = Vec::new();
        let is_member = !reader.rest.starts_with('(');
        if is_member {
            arguments.push(reader.read_type()?);
            reader.eat(".")?;
        }
        reader.eat("(")?;
        while reader.eat(")").is_none() {
            arguments.push(reader.read_type()?);
            let _ = reader.eat(", ");
        }
        reader.eat(": ")?;
        let result = reader.read_type()?;
        reader.rest.is_empty().then_some(Self { is_member, arguments, result })
    }

    /// Returns the type parameters in it, in order of appearance.
    pub fn parameters(&self) -> Parameters {
        let mut names = Parameters::new();
        self.arguments.iter().chain([&self.result]).for_each(|each| collect(each, &mut names));
        names
    }
}

fn collect(of: &Type, names: &mut Parameters) {
    match of {
        Type::Param(name) if !names.contains(name) => names.push(name.clone()),
        other => other.parameters().into_iter().for_each(|each| collect(each, names)),
    }
}

struct SignatureReader<'a> {
    rest: &'a str,
}

impl SignatureReader<'_> {
    fn eat(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    fn read_type(&mut self) -> Option<Type> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        // A dot belongs to the name unless the arguments follow it.
        while self.rest[end..].starts_with('.') && !self.rest[end + 1..].starts_with('(') {
            let tail = &self.rest[end + 1..];
            end += 1 + tail.find(|c| !is_word(c)).unwrap_or(tail.len());
        }
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let mut params = Vec::new();
        if self.eat("(").is_some() {
            while self.eat(")").is_none() {
                params.push(self.read_type()?);
                let _ = self.eat(", ");
            }
        }
        named(name, params)
    }
}

fn named(name: &str, params: Vec<Type>) -> Option<Type> {
    let mut params = params.into_iter();
    Some(match name {
        "" => return None,
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "list" => Type::list(params.next()?),
        "map" => Type::map(params.next()?, params.next()?),
        "type" => Type::type_of(params.next()?),
        "wrapper" => Type::wrapper(params.next()?),
        "optional" => Type::optional(params.next()?),
        word if word.len() == 1 && word.starts_with(|c: char| c.is_ascii_uppercase()) => Type::param(word),
        word if word.starts_with("kubernetes.") => Type::object(word),
        word => Type::opaque(word, params.collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_read_back_as_written() {
        let read = Signature::read("net.CIDR.(optional(list(A)), map(string, B)): kubernetes.Quantity").unwrap();
        assert!(read.is_member);
        assert_eq!(read.arguments[0], Type::opaque("net.CIDR", vec![]));
        assert_eq!(read.arguments[1].to_string(), "optional_type(list(A))");
        assert_eq!(read.result, Type::object("kubernetes.Quantity"));
        assert_eq!(read.parameters().len(), 2);
        assert!(Signature::read("(string, int): list(string)").is_some_and(|read| !read.is_member));
        assert!(Signature::read("string(").is_none());
    }
}

//! Functions with which loops of two variables build maps.

use crate::cost;
use crate::functions::{Call, Function, Library, Overload, Since};

/// Upstream calls it `comprev2`.
pub static LIBRARY: Library = Library {
    name: "comprehensions",
    since: Since::Minor(32),
    functions: &[Function {
        name: "cel.@mapInsert",
        overloads: &[
            Overload {
                id: "@mapInsert_map_key_value",
                signature: "(map(K, V), K, V): map(K, V)",
                cost: cost::DEFAULT,
                call: Call::Planned,
            },
            Overload {
                id: "@mapInsert_map_map",
                signature: "(map(K, V), map(K, V)): map(K, V)",
                cost: cost::DEFAULT,
                call: Call::Planned,
            },
        ],
    }],
};

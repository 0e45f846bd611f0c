//! Recipes that generate texts of any size, and can be changed at random.

/// Pseudorandom numbers from a seed (xorshift64*, Marsaglia 2003).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Values. `#` stands for a counter, so that each value differs.
const TOKENS: &[&str] = &[
    "1",
    "#",
    "-1.5e3",
    "1e400",
    "123456789012345678901234567890",
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "\"a\"",
    "\"v#\"",
    "\"a#.example.com/b\"",
    "\"10.0.0.0/8\"",
    "\"2020-01-01T00:00:00Z\"",
    "\"1500m\"",
    "\"99999999999999999999Ei\"",
    "\"aGVsbG8=\"",
    "{\"name\":\"n#\"}",
    "{\"name\":\"same\"}",
    "{\"name\":\"n#\",\"value\":\"$(n0)$(n1)\"}",
    "{\"name\":\"c#\",\"image\":\"i\"}",
    "{\"name\":\"p#\",\"port\":#,\"containerPort\":1}",
    "{\"key\":\"k#\",\"operator\":\"Exists\"}",
    "{\"key\":\"k\",\"operator\":\"In\",\"values\":[\"a\",\"b\",\"#\"]}",
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"#\"}",
    "{\"manager\":\"m#\",\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:a\":{}}}",
    "{\"op\":\"add\",\"path\":\"/spec/a\",\"value\":1}",
    "{\"op\":\"add\",\"path\":\"/spec/list/-\",\"value\":{\"a\":[1,2,3]}}",
    "{\"op\":\"add\",\"path\":\"/spec/list/0\",\"value\":#}",
    "{\"op\":\"remove\",\"path\":\"/spec/list/0\"}",
    "{\"op\":\"copy\",\"from\":\"/spec\",\"path\":\"/spec/k#\"}",
    "{\"op\":\"move\",\"from\":\"/spec/list/0\",\"path\":\"/spec/list/-\"}",
    "{\"op\":\"test\",\"path\":\"/spec\",\"value\":{}}",
    "{\"apiGroups\":[\"g#\"],\"resources\":[\"*\"],\"verbs\":[\"get\"]}",
    "{\"expression\":\"self.all(x, x == x)\",\"message\":\"m\"}",
    "{\"type\":\"string\",\"pattern\":\"^(a|b)*c#$\",\"default\":\"d\"}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"#\"}}}",
    "{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"enum\":[1,2,3]},\"x-kubernetes-list-type\":\"set\"}",
    "{\"$patch\":\"delete\",\"name\":\"c#\"}",
    "{\"$patch\":\"replace\"}",
    "{\"ports\":[{\"port\":#}],\"from\":[{\"ipBlock\":{\"cidr\":\"10.#.0.0/16\",\"except\":[\"10.0.0.0/24\"]}}]}",
];

/// Units that strings repeat.
const UNITS: &[&str] = &[
    "a",
    "0",
    "\\u0061",
    "\\n",
    "\\\"",
    "<",
    "\u{e9}",
    "\\ud800",
    "a,",
    "a=b,",
    "a in (b,c),",
    "k#!=v,",
    "(",
    "$(",
    "a.",
];

/// Keys of maps.
const KEYS: &[&str] = &[
    "k#",
    "k",
    "#",
    "a.b/k#",
    "\\u006b#",
    "long shared beginning of every key of this map #",
    "f:k#",
    "k:{\\\"a\\\":\\\"#\\\"}",
];

/// The texts that begin and end a level of nesting.
const LEVELS: &[(&str, &str)] = &[("[", "]"), ("{\"a\":", "}"), ("{\"properties\":{\"a\":", "}}"), ("{\"f:a\":", "}")];

/// The largest numbers of levels.
const DEPTHS: &[usize] = &[5, 60, 250, 500, 10_000];

/// The sizes of items, in bytes.
const EACH: &[usize] = &[1, 8, 60, 500, 4_000];

/// Lines of YAML, including forms that JSON does not have.
const LINES: &[&str] = &[
    "  - a\n",
    "  k#: v\n",
    "  ? [a, b]\n  : c\n",
    "  a#: &a# [b]\n",
    "  b#: *a0\n",
    "  s#: |\n    text\n",
    "  s#: >-\n    folded\n    more\n",
    "  'q#': \"w\\x41\"\n",
    "  # a comment\n",
    "---\n",
    "  - - - a\n",
    "  d#: 0x1f\n",
];

/// How a text is generated.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// One value.
    Token(&'static str),
    /// A string that repeats one unit.
    Text(&'static str),
    /// A list of items, each of this many bytes.
    List(Box<Recipe>, usize),
    /// A map with these keys, and values of this many bytes.
    Map(&'static str, Box<Recipe>, usize),
    /// Nested levels, at most this many, with a recipe inside.
    Deep((&'static str, &'static str), usize, Box<Recipe>),
    /// Two recipes by turns.
    Either(Box<Recipe>, Box<Recipe>),
    /// Lines of YAML.
    Lines(&'static str, &'static str),
}

impl Recipe {
    /// Returns an ordinary text: a map with short values.
    pub fn plain() -> Recipe {
        Recipe::Map("k#", Box::new(Recipe::Text("a")), 40)
    }

    /// Returns a list that repeats one item.
    pub fn list_of(item: &'static str) -> Recipe {
        Recipe::List(Box::new(Recipe::Token(item)), item.len())
    }

    pub fn draw(random: &mut Random) -> Recipe {
        match random.below(8) {
            0 => Recipe::Lines(random.of(LINES), random.of(LINES)),
            1 => Recipe::Text(random.of(UNITS)),
            2 | 3 => Recipe::List(Box::new(Recipe::inner(random, 2)), random.of(EACH)),
            4 | 5 => Recipe::Map(random.of(KEYS), Box::new(Recipe::inner(random, 2)), random.of(EACH)),
            _ => Recipe::inner(random, 3),
        }
    }

    fn inner(random: &mut Random, levels: usize) -> Recipe {
        let below = |random: &mut Random| Box::new(Recipe::inner(random, levels.saturating_sub(1)));
        match random.below(if levels == 0 { 5 } else { 10 }) {
            0..=3 => Recipe::Token(random.of(TOKENS)),
            4 => Recipe::Text(random.of(UNITS)),
            5 => Recipe::List(below(random), random.of(EACH)),
            6 | 7 => Recipe::Map(random.of(KEYS), below(random), random.of(EACH)),
            8 => Recipe::Deep(random.of(LEVELS), random.of(DEPTHS), below(random)),
            _ => Recipe::Either(below(random), below(random)),
        }
    }

    /// Returns the recipe with one part replaced.
    pub fn changed(&self, random: &mut Random) -> Recipe {
        if random.below(4) == 0 {
            return Recipe::draw(random);
        }
        let stays = random.below(2) == 0;
        match self.clone() {
            Recipe::Token(_) => Recipe::inner(random, 1),
            Recipe::Text(_) => Recipe::Text(random.of(UNITS)),
            Recipe::List(item, _) if stays => Recipe::List(item, random.of(EACH)),
            Recipe::List(item, each) => Recipe::List(Box::new(item.changed(random)), each),
            Recipe::Map(_, item, each) if stays && random.below(2) == 0 => Recipe::Map(random.of(KEYS), item, each),
            Recipe::Map(keys, item, _) if stays => Recipe::Map(keys, item, random.of(EACH)),
            Recipe::Map(keys, item, each) => Recipe::Map(keys, Box::new(item.changed(random)), each),
            Recipe::Deep(_, depth, inner) if stays => Recipe::Deep(random.of(LEVELS), depth, inner),
            Recipe::Deep(level, _, inner) => Recipe::Deep(level, random.of(DEPTHS), Box::new(inner.changed(random))),
            Recipe::Either(one, other) => Recipe::Either(other, Box::new(one.changed(random))),
            Recipe::Lines(one, _) => Recipe::Lines(one, random.of(LINES)),
        }
    }

    /// Generates a text of about `bytes` bytes.
    pub fn fill(&self, bytes: usize) -> String {
        let mut filling = Filling { text: String::with_capacity(bytes + 4_096), count: 0 };
        filling.add(self, bytes);
        filling.text
    }
}

/// A text that is being generated.
struct Filling {
    text: String,
    /// The number of parts so far.
    count: usize,
}

impl Filling {
    fn put(&mut self, token: &str) {
        self.count += 1;
        match token.split_once('#') {
            Some(_) => self.text.push_str(&token.replace('#', &self.count.to_string())),
            None => self.text.push_str(token),
        }
    }

    /// Repeats `add` until the text has grown by `bytes`, but at least once.
    fn repeat(&mut self, bytes: usize, mut add: impl FnMut(&mut Filling)) {
        let end = self.text.len() + bytes;
        loop {
            add(self);
            if self.text.len() >= end {
                return;
            }
        }
    }

    fn add(&mut self, recipe: &Recipe, bytes: usize) {
        match recipe {
            Recipe::Token(token) => self.put(token),
            Recipe::Text(unit) => {
                self.text.push('"');
                self.repeat(bytes, |filling| filling.put(unit));
                self.text.push('"');
            }
            Recipe::List(item, each) => {
                self.text.push('[');
                self.repeat(bytes, |filling| {
                    filling.add(item, *each);
                    filling.text.push(',');
                });
                self.text.pop();
                self.text.push(']');
            }
            Recipe::Map(key, value, each) => {
                self.text.push('{');
                self.repeat(bytes, |filling| {
                    filling.text.push('"');
                    filling.put(key);
                    filling.text.push_str("\":");
                    filling.add(value, *each);
                    filling.text.push(',');
                });
                self.text.pop();
                self.text.push('}');
            }
            Recipe::Deep((open, close), depth, inner) => {
                let levels = (bytes / (open.len() + close.len())).clamp(1, *depth);
                self.text.push_str(&open.repeat(levels));
                self.add(inner, bytes.saturating_sub(levels * (open.len() + close.len())));
                self.text.push_str(&close.repeat(levels));
            }
            Recipe::Either(one, other) => {
                self.count += 1;
                self.add(if self.count.is_multiple_of(2) { one } else { other }, bytes);
            }
            Recipe::Lines(one, other) => {
                self.text.push('\n');
                self.repeat(bytes, |filling| {
                    filling.put(one);
                    filling.put(other);
                });
            }
        }
    }
}

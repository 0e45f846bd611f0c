//! Searches for the inputs that cost most processor time for their size.
//!
//! Small recipes ([`recipe`]) generate bodies, patches, selectors, schemas, queries and headers. The search sends them
//! in several ways ([`ways`]), and measures the processor time that the server takes per unit of size ([`size_of`]). It
//! then changes the most expensive inputs a little and tries them again. The speed of the machine does not matter: the
//! result is divided by the time for a plain object on the same server.
//!
//! The test fails if an input is much more expensive for its size than a plain object, or if its cost per unit rises
//! with its size: its cost is then not linear.
//!
//! By default, the test tries a few hundred inputs, always the same ones, and those whose cost earlier searches found
//! not to be linear. `FLOTILLA_WORST_CASE_SECONDS=1800 cargo test --release --test black_box worst_case -- --nocapture`
//! searches for that many seconds, with bodies of up to 3 MB. `FLOTILLA_WORST_CASE_SEED=N` starts a different search.
//! The results of a search depend on measured times, and therefore on the machine; for that reason the default does not
//! search.

mod beside;
mod recipe;
mod ways;

use std::fmt;
use std::time::{Duration, Instant};

use self::recipe::{Random, Recipe};
use self::ways::{Place, WAYS, Way};
use crate::support::{Connection, DataDir, Server};
use crate::unreadable::define_widgets;

/// The number of inputs if FLOTILLA_WORST_CASE_SECONDS is not set.
const TRIES: usize = 300;
/// The sizes of these inputs, in bytes.
const SIZES: [usize; 2] = [4_000, 16_000];
/// The sizes of inputs in a long search, in bytes.
const LONG_SIZES: [usize; 4] = [10_000, 100_000, 1_000_000, 2_900_000];
/// Smaller inputs count as if they had this size, so that the fixed cost of a request is not counted per unit.
const SIZE_MIN: usize = 4_000;
/// How many units of size each value counts for, besides its bytes: even a value of two bytes, as `[]`, is stored,
/// checked, compared and owned on its own. (Kubernetes 1.36 spends 70 ns on each byte of a plain object, and 5,000 ns
/// on each byte of applied maps in maps, of which six make a map.)
const VALUE_UNITS: usize = 30;
/// The largest filling of a path or a header, in bytes.
const LINE_BYTES_MAX: usize = 60_000;
/// How many times as expensive for its size as a plain object an input may be. A few bytes may make an error with a
/// path, or a rule with a cost. No byte justifies more than that.
const COST_RATIO_MAX: f64 = 60.0;
/// How many times as expensive for its size an input that is four times as large may be.
const GROWTH_MAX: f64 = 2.0;
/// The number of expensive inputs that the search keeps and changes.
const KEPT: usize = 24;
/// How often an expensive input is sent. The smallest time counts, because the machine also does other work.
const LOOKS: usize = 5;
/// How often the costs of two sizes are compared.
const GROWTH_LOOKS: usize = 3;
/// Shorter times cannot be told from noise.
const NOISE: Duration = Duration::from_millis(2);

/// An input, and its cost.
#[derive(Clone)]
struct Tried {
    way: &'static Way,
    recipe: Recipe,
    size: usize,
    /// Processor time per unit of size, in nanoseconds.
    score: f64,
}

impl fmt::Debug for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tried { way, recipe, size, score } = self;
        write!(f, "{score:.1} ns a unit, {size} bytes: {} {} with {recipe:?}", way.method, way.path)
    }
}

/// The server, and the state of the search.
struct Search<'a> {
    server: &'a Server,
    client: Connection,
    random: Random,
    sizes: &'a [usize],
    kept: Vec<Tried>,
    tries: usize,
    /// Whether the search changes the most expensive inputs and tries them again.
    climbs: bool,
}

impl Search<'_> {
    /// Sends an input. Returns the processor time that the server took, and the size of the input.
    fn cost(&mut self, way: &Way, recipe: &Recipe, size: usize) -> (Duration, usize) {
        let size = if way.place == Place::Body { size } else { size.min(LINE_BYTES_MAX) };
        let filling = recipe.fill(size);
        let (path, header, body) = way.put(&filling);
        let size = size_of(&path) + header.as_ref().map_or(0, |(_, value)| size_of(value)) + size_of(&body);
        let mut headers = vec![("Content-Type", way.media)];
        headers.extend(header.as_ref().map(|(name, value)| (*name, value.as_str())));
        let before = self.server.processor_time();
        match self.client.call(way.method, &path, &headers, body.as_bytes()) {
            // The reference, too, refuses some patches with 500 and a `Status` that states why.
            Ok(answer) => assert!(answer.status != 500 || answer.text().contains("\"Status\""), "{}", answer.text()),
            Err(_) => self.client = self.server.connect(), // the server closes connections that send too much
        }
        (self.server.processor_time().saturating_sub(before), size.max(SIZE_MIN))
    }

    /// Sends an input `looks` times. Returns the least processor time per unit of size, in nanoseconds.
    fn score(&mut self, way: &Way, recipe: &Recipe, size: usize, looks: usize) -> f64 {
        let times: Vec<_> = (0..looks).map(|_| self.cost(way, recipe, size)).collect();
        let (least, size) = times.into_iter().min().unwrap_or_default();
        least.as_nanos() as f64 / size.max(1) as f64
    }

    /// Tries one more input: a new one, or one of the most expensive ones with a change.
    fn step(&mut self) {
        let (way, recipe, size) = match self.random.below(4) {
            0 => (&WAYS[self.tries % WAYS.len()], Recipe::draw(&mut self.random), self.size()),
            _ if self.kept.is_empty() || !self.climbs => {
                (&WAYS[self.tries % WAYS.len()], Recipe::draw(&mut self.random), self.size())
            }
            choice => {
                let Tried { way, recipe, size, .. } = self.kept[self.random.below(self.kept.len())].clone();
                let way = if choice == 1 { &WAYS[self.random.below(WAYS.len())] } else { way };
                (way, recipe.changed(&mut self.random), size)
            }
        };
        self.tries += 1;
        let first = self.score(way, &recipe, size, 1);
        if self.kept.len() == KEPT && self.kept.iter().all(|kept| first <= kept.score) {
            return;
        }
        let score = self.score(way, &recipe, size, LOOKS);
        self.keep(Tried { way, recipe, size, score });
    }

    fn size(&mut self) -> usize {
        self.sizes[self.random.below(self.sizes.len())]
    }

    /// Keeps the most expensive inputs, at most a few of each way.
    fn keep(&mut self, tried: Tried) {
        const OF_A_WAY: usize = 3;
        let is_same = |kept: &Tried| std::ptr::eq(kept.way, tried.way);
        let same = self.kept.iter().filter(|kept| is_same(kept)).count();
        if same >= OF_A_WAY || self.kept.len() >= KEPT {
            let among = |kept: &&(usize, &Tried)| same < OF_A_WAY || is_same(kept.1);
            let cheapest = self.kept.iter().enumerate().filter(|kept| among(&kept));
            match cheapest.min_by(|one, other| one.1.score.total_cmp(&other.1.score)) {
                Some((at, kept)) if kept.score < tried.score => drop(self.kept.swap_remove(at)),
                _ => return,
            }
        }
        self.kept.push(tried);
    }

    /// Returns a description if one of the most expensive inputs violates a bound.
    fn finding(&mut self, tried: &Tried, plain: f64) -> Option<String> {
        let Tried { way, recipe, size, .. } = tried;
        // Other work may have disturbed the first measurement. An input that is expensive stays so when it is measured
        // again.
        let score = self.score(way, recipe, *size, LOOKS).min(tried.score);
        if score > COST_RATIO_MAX * plain {
            return Some(format!("{tried:?}: {:.0} times as expensive as a plain object", score / plain));
        }
        let growth = self.growth(way, recipe, *size)?;
        (growth > GROWTH_MAX).then(|| format!("{tried:?}: a unit costs {growth:.1} times as much in a larger input"))
    }

    /// Returns how many times as expensive for its size an input that is four times as large is. Returns `None` if the
    /// times are too short to compare.
    ///
    /// Other work may disturb one of the two measurements: the least of several counts.
    fn growth(&mut self, way: &Way, recipe: &Recipe, size: usize) -> Option<f64> {
        (0..GROWTH_LOOKS).filter_map(|_| self.growth_once(way, recipe, size)).min_by(f64::total_cmp)
    }

    fn growth_once(&mut self, way: &Way, recipe: &Recipe, size: usize) -> Option<f64> {
        let larger = (4 * size).min(LONG_SIZES[LONG_SIZES.len() - 1]);
        let (small, large) = (self.cost_of(way, recipe, size), self.cost_of(way, recipe, larger));
        let of_a_unit = |(time, size): (Duration, usize)| time.as_nanos() as f64 / size as f64;
        (small.0 > NOISE).then(|| of_a_unit(large) / of_a_unit(small))
    }

    fn cost_of(&mut self, way: &Way, recipe: &Recipe, size: usize) -> (Duration, usize) {
        (0..LOOKS).map(|_| self.cost(way, recipe, size)).min().unwrap_or_default()
    }
}

/// Returns the size of a text: its bytes, and [`VALUE_UNITS`] for each value that it may contain.
fn size_of(text: &str) -> usize {
    text.len() + VALUE_UNITS * text.bytes().filter(|byte| b"{[,\n".contains(byte)).count()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn the_most_expensive_input_costs_little_more_than_a_plain_one() {
    let seconds = number("FLOTILLA_WORST_CASE_SECONDS");
    let sizes: &[usize] = if seconds.is_some() { &LONG_SIZES } else { &SIZES };
    let directory = DataDir::new();
    let server = directory.start_with(&["--embedded-controllers=false"]);
    let mut client = server.connect();
    define_widgets(&mut client);
    ways::prepare(&mut client);
    let random = Random::new(number("FLOTILLA_WORST_CASE_SEED").unwrap_or(1));
    let mut search =
        Search { server: &server, client, random, sizes, kept: Vec::new(), tries: 0, climbs: seconds.is_some() };
    let began = Instant::now();
    let goes_on = |tries: usize| match seconds {
        Some(seconds) => began.elapsed() < Duration::from_secs(seconds),
        None => tries < TRIES,
    };
    while goes_on(search.tries) {
        search.step();
    }
    for (way, recipe) in ways::found() {
        let growth = search.growth(way, &recipe, sizes[1]);
        assert!(growth.is_none_or(|growth| growth <= GROWTH_MAX), "{way:?} with {recipe:?}: {growth:?}");
    }
    assert!(!server.messages().contains("panicked at"), "{}", server.messages());
    let plain = search.score(&WAYS[0], &Recipe::plain(), sizes[sizes.len() - 1], LOOKS);
    let mut kept = std::mem::take(&mut search.kept);
    kept.sort_by(|one, other| other.score.total_cmp(&one.score));
    eprintln!("{} inputs; {plain:.1} ns a unit of a plain object; the most expensive:", search.tries);
    kept.iter().take(12).for_each(|tried| eprintln!("{tried:?}"));
    let findings: Vec<_> = kept.iter().filter_map(|tried| search.finding(tried, plain)).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

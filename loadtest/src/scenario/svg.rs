//! Charts as SVG, in the page's colours, and readable at the width of a phone.

use std::fmt::Write as _;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 264.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 36.0;

/// The number of colours for series. Further series use them again.
const COLOURS: usize = 8;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Linear, from 0 on.
    Linear,
    /// Logarithmic.
    Log,
    /// By the logarithm of the remaining share: 0.9, 0.99 and 0.999 have equal distances.
    Tail,
}

/// The values of a line. The line is interrupted where a value is missing.
pub struct Series {
    /// The name.
    pub name: String,
    /// The points.
    pub points: Vec<(f64, Option<f64>)>,
}

/// A line chart.
pub struct Chart<'a> {
    /// The title, which is also the text for readers who do not see the chart.
    pub title: &'a str,
    /// The lines.
    pub series: Vec<Series>,
    /// The first and the last value of the horizontal axis.
    pub x: (f64, f64),
    /// The scale of the horizontal axis.
    pub x_scale: Scale,
    /// The scale of the vertical axis.
    pub y_scale: Scale,
    /// Formats values of the vertical axis.
    pub y_text: fn(f64) -> String,
    /// Named periods: name, start and end.
    pub bands: Vec<(String, f64, f64)>,
    /// Whether the area below the lines is filled.
    pub is_filled: bool,
}

/// Escapes a text for HTML and for attributes.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns at most six round values from 0 up to at least `most`.
fn linear_ticks(most: f64) -> Vec<f64> {
    let rough = (most / 4.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(rough);
    let count = (most / step - 1e-9).ceil().max(1.0) as usize;
    (0..=count).map(|number| number as f64 * step).collect()
}

/// Returns powers of ten that enclose `least` and `most`.
fn log_ticks(least: f64, most: f64) -> Vec<f64> {
    let (first, last) = (least.max(1e-9).log10().floor() as i32, most.max(1e-9).log10().ceil() as i32);
    (first..=last.max(first + 1)).map(|power| 10f64.powi(power)).collect()
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(1e-9).log10(),
            Self::Tail => -(1.0 - value).max(1e-9).log10(),
        }
    }
}

impl Chart<'_> {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|series| series.points.iter().filter_map(|(_, value)| *value))
    }

    fn y_ticks(&self) -> Vec<f64> {
        let most = self.values().fold(0.0, f64::max);
        match self.y_scale {
            Scale::Log => log_ticks(self.values().filter(|value| *value > 0.0).fold(most, f64::min), most),
            _ => linear_ticks(most),
        }
    }

    fn x_ticks(&self) -> Vec<(f64, String)> {
        match self.x_scale {
            Scale::Tail => {
                let all = [(0.0, "0"), (0.9, "90%"), (0.99, "99%"), (0.999, "99.9%"), (0.9999, "99.99%")];
                let shown = all.into_iter().filter(|(at, _)| *at <= self.x.1 + 1e-12);
                shown.map(|(at, text)| (at, text.to_owned())).collect()
            }
            _ => {
                let ticks = linear_ticks(self.x.1).into_iter().filter(|at| *at <= self.x.1 + 1e-9);
                ticks.map(|at| (at, format!("{} s", trimmed(at)))).collect()
            }
        }
    }

    fn across(&self, x: f64) -> f64 {
        let (first, last) = (self.x_scale.place(self.x.0), self.x_scale.place(self.x.1));
        LEFT + (self.x_scale.place(x) - first) / (last - first).max(1e-9) * (WIDTH - LEFT - RIGHT)
    }

    /// Returns the chart as SVG.
    pub fn draw(&self) -> String {
        let ticks = self.y_ticks();
        let (least, most) = (ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0));
        let (bottom, top) = (self.y_scale.place(least), self.y_scale.place(most));
        let up = |y: f64| {
            let share = (self.y_scale.place(y) - bottom) / (top - bottom).max(1e-9);
            HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
        };
        let title = escaped(self.title);
        let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">"#);
        self.draw_bands(&mut svg);
        for tick in &ticks {
            let (y, text) = (up(*tick), escaped(&(self.y_text)(*tick)));
            let end = WIDTH - RIGHT;
            let _ = write!(svg, r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{end}" y2="{y:.1}"/>"#);
            let (x, y) = (LEFT - 7.0, y + 4.0);
            let _ = write!(svg, r#"<text class="tick" x="{x}" y="{y:.1}" text-anchor="end">{text}</text>"#);
        }
        let y = HEIGHT - BOTTOM + 18.0;
        for (at, text) in self.x_ticks() {
            let x = self.across(at);
            let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y}" text-anchor="middle">{text}</text>"#);
        }
        for (number, series) in self.series.iter().enumerate() {
            self.draw_series(&mut svg, number, series, &up);
        }
        svg + "</svg>"
    }

    fn draw_bands(&self, svg: &mut String) {
        for (number, (name, from, to)) in self.bands.iter().enumerate() {
            let (x, width) = (self.across(*from), self.across(*to) - self.across(*from));
            let (height, class) = (HEIGHT - TOP - BOTTOM, if number % 2 == 0 { "band" } else { "band odd" });
            let _ = write!(svg, r#"<rect class="{class}" x="{x:.1}" y="{TOP}" width="{width:.1}" height="{height}"/>"#);
            // A longer name would overlap the next one.
            if width > name.len() as f64 * 6.0 {
                let (x, y, name) = (x + width / 2.0, TOP + 11.0, escaped(name));
                let _ = write!(svg, r#"<text class="phase" x="{x:.1}" y="{y}" text-anchor="middle">{name}</text>"#);
            }
        }
    }

    fn draw_series(&self, svg: &mut String, number: usize, series: &Series, up: &dyn Fn(f64) -> f64) {
        let (class, name) = (number % COLOURS, escaped(&series.name));
        let base = HEIGHT - BOTTOM;
        for stretch in series.points.split(|(_, value)| value.is_none()).filter(|stretch| !stretch.is_empty()) {
            let mut path = String::new();
            let mut ends = (0.0, 0.0);
            for (at, (x, value)) in stretch.iter().enumerate() {
                let (x, y) = (self.across(*x), up(value.unwrap_or_default()));
                ends = (if at == 0 { x } else { ends.0 }, x);
                let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
            }
            if self.is_filled {
                let (first, last) = ends;
                let _ = write!(svg, r#"<path class="area s{class}" d="{path}L{last:.1} {base}L{first:.1} {base}Z"/>"#);
            }
            // A single point is drawn as a line of length zero with round ends.
            let dot = if stretch.len() == 1 { "h0.01" } else { "" };
            let _ = write!(svg, r#"<path class="line s{class}" d="{path}{dot}"><title>{name}</title></path>"#);
        }
    }

    /// Returns the legend, if the chart has more than one line.
    pub fn legend(&self) -> String {
        if self.series.len() < 2 {
            return String::new();
        }
        let item = |(number, series): (usize, &Series)| {
            format!(r#"<li><i class="s{}"></i>{}</li>"#, number % COLOURS, escaped(&series.name))
        };
        format!(r#"<ul class="legend">{}</ul>"#, self.series.iter().enumerate().map(item).collect::<String>())
    }
}

/// Formats a number without trailing zeros.
pub fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(linear_ticks(7.3), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(linear_ticks(0.0).len(), 2);
        assert_eq!(log_ticks(30.0, 4_000.0), [10.0, 100.0, 1_000.0, 10_000.0]);
        for most in [0.3, 1.0, 9.99, 123.0, 99_999.0] {
            let ticks = linear_ticks(most);
            assert!((2..=6).contains(&ticks.len()) && ticks[ticks.len() - 1] >= most - 1e-6, "{most}: {ticks:?}");
        }
    }

    #[test]
    fn a_line_is_interrupted_at_missing_values() {
        let points = vec![(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, None), (3.0, Some(1.0))];
        let chart = Chart {
            title: "a < b",
            series: vec![Series { name: "\"x\"".into(), points }],
            x: (0.0, 3.0),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            y_text: trimmed,
            bands: vec![("p".into(), 0.0, 3.0)],
            is_filled: false,
        };
        let svg = chart.draw();
        assert_eq!(svg.matches("<path class=\"line").count(), 2, "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("&quot;x&quot;") && !svg.contains("NaN"), "{svg}");
    }
}

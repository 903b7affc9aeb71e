//! A bar chart as SVG, from data alone. No script, no font, no other file; it follows the reader's light or dark theme.

use std::fmt::Write;

pub struct Bar {
    pub label: String,
    pub value: f64,
    /// What stands beside the bar.
    pub text: String,
    /// Between the tenth and the ninetieth of a hundred measurements, where that was measured.
    pub spread: Option<(f64, f64)>,
    /// The one the chart is about.
    pub is_ours: bool,
}

pub struct Chart {
    pub title: String,
    /// What a bar means, and in which unit.
    pub subtitle: String,
    pub bars: Vec<Bar>,
    /// How and on what it was measured, in lines.
    pub notes: Vec<String>,
}

const WIDTH: f64 = 720.0;
const LABELS: f64 = 150.0;
/// Room for the text behind the longest bar.
const TEXTS: f64 = 180.0;
const TOP: f64 = 76.0;
const ROW: f64 = 34.0;

const STYLE: &str = "text{font-family:system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif;fill:#1f2328}\
.quiet{fill:#59636e}.bar{fill:#8c959f}.ours{fill:#0969da}.spread{stroke:#1f2328;stroke-opacity:.55;stroke-width:1.5}\
.axis{stroke:#d1d9e0}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet{fill:#9198a1}.bar{fill:#656c76}.ours{fill:#4493f8}\
.spread{stroke:#f0f6fc}.axis{stroke:#3d444d}}";

pub fn svg(chart: &Chart) -> String {
    let most = chart.bars.iter().map(Bar::reach).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABELS - TEXTS) / most;
    let rows = TOP + ROW * chart.bars.len() as f64;
    let height = rows + 14.0 + 16.0 * chart.notes.len() as f64;
    let spoken: Vec<String> =
        chart.bars.iter().map(|bar| format!("{} {}", bar.label, bar.text)).collect();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{}</title>\n\
         <desc id=\"desc\">{}: {}</desc>\n<style>{STYLE}</style>\n",
        escaped(&chart.title),
        escaped(&chart.subtitle),
        escaped(&spoken.join("; ")),
    );
    let mut line = |text: String| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{text}");
    };
    line(text(0.0, 22.0, 18, "", "600", &chart.title));
    line(text(0.0, 46.0, 13, "quiet", "400", &chart.subtitle));
    for (number, bar) in chart.bars.iter().enumerate() {
        let top = TOP + ROW * number as f64;
        let (middle, width) = (top + ROW / 2.0 - 4.0, (bar.value * scale).max(1.5));
        let weight = if bar.is_ours { "600" } else { "400" };
        line(text(0.0, middle + 5.0, 14, "", weight, &bar.label));
        let class = if bar.is_ours { "ours" } else { "bar" };
        line(format!(
            "<rect class=\"{class}\" x=\"{LABELS}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"18\" rx=\"2\"/>",
            middle - 9.0
        ));
        let mut end = LABELS + width;
        if let Some((low, high)) = bar.spread {
            let (low, high) = (LABELS + low.max(0.0) * scale, LABELS + high * scale);
            line(format!(
                "<path class=\"spread\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {:.1}v6M{high:.1} {:.1}v6\"/>",
                middle - 3.0,
                middle - 3.0
            ));
            end = end.max(high);
        }
        line(text(end + 8.0, middle + 5.0, 13, "", weight, &bar.text));
    }
    line(format!(
        "<path class=\"axis\" d=\"M{LABELS} {:.1}V{rows:.1}\" stroke-width=\"1\"/>",
        TOP - 6.0
    ));
    for (number, note) in chart.notes.iter().enumerate() {
        line(text(0.0, rows + 18.0 + 16.0 * number as f64, 11, "quiet", "400", note));
    }
    out + "</svg>\n"
}

impl Bar {
    /// How far to the right it is drawn.
    fn reach(&self) -> f64 {
        self.spread.map_or(self.value, |(_, high)| high.max(self.value))
    }
}

fn text(x: f64, y: f64, size: u32, class: &str, weight: &str, words: &str) -> String {
    let words = escaped(words);
    format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"{weight}\">{words}</text>"
    )
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64, spread: Option<(f64, f64)>) -> Bar {
        Bar {
            label: label.into(),
            value,
            text: format!("{value}"),
            spread,
            is_ours: label == "mcp",
        }
    }

    fn widths(svg: &str) -> Vec<f64> {
        let parts = svg.split("<rect").skip(1);
        parts
            .filter_map(|part| part.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect()
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let bars =
            vec![bar("a", 1.0, None), bar("mcp", 2.0, None), bar("c", 4.0, Some((3.0, 8.0)))];
        let chart =
            Chart { title: "t".into(), subtitle: "s".into(), bars, notes: vec!["n".into()] };
        let drawn = svg(&chart);
        let widths = widths(&drawn);
        assert_eq!(widths.len(), 3);
        assert!(
            (widths[1] / widths[0] - 2.0).abs() < 0.01
                && (widths[2] / widths[0] - 4.0).abs() < 0.01
        );
        // The longest spread ends before the room for texts.
        assert!(widths[2] <= (WIDTH - LABELS - TEXTS) / 2.0 + 0.1);
        assert_eq!(drawn.matches("class=\"ours\"").count(), 1);
    }

    #[test]
    fn words_cannot_break_the_picture() {
        let bars = vec![bar("<a & \"b\">", 0.0, None)];
        let drawn = svg(&Chart {
            title: "<".into(),
            subtitle: String::new(),
            bars,
            notes: vec!["&".into()],
        });
        assert!(drawn.contains("&lt;a &amp; &quot;b&quot;&gt;") && !drawn.contains("<a &"));
    }
}

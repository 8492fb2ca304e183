//! Prints the results.

use std::time::Duration;

/// A table of rows with a target, a figure and a verdict.
pub struct Table {
    missed: usize,
}

impl Table {
    pub fn begin() -> Self {
        println!("{:<62} {:>9} {:>60}", "promise", "target", "figure");
        Self { missed: 0 }
    }

    pub fn end(self) {
        println!("{} missed", self.missed);
    }

    /// Prints a row without a target.
    pub fn info(&mut self, what: &str, figure: String) {
        println!("{what:<62} {:>9} {figure:>60}", "-");
    }

    /// Prints a time.
    pub fn timed(&mut self, what: &str, most: Option<Duration>, time: Duration) {
        let figure = format!("{} ms", time.as_millis());
        let Some(most) = most else {
            return self.info(what, figure);
        };
        let verdict = if time <= most { "pass" } else { "MISS" };
        self.missed += usize::from(time > most);
        let target = format!("<= {} ms", most.as_millis());
        println!("{what:<62} {target:>9} {figure:>60}  {verdict}");
    }

    /// Prints a value of paired runs: the median, minimum and maximum of the ratios, and the medians
    /// of both sides.
    pub fn compared<R>(
        &mut self,
        what: &str,
        most: Option<f64>,
        ours: &[R],
        theirs: &[R],
        unit: &str,
        value: fn(&R) -> f64,
    ) {
        let pairs = ours.iter().zip(theirs);
        let ratios = sorted(pairs.map(|(a, b)| value(a) / value(b)));
        let middle = median(&ratios);
        let figure = format!(
            "{middle:.2} x ({:.2} to {:.2}): {:.0} against {:.0} {unit}",
            ratios[0],
            ratios[ratios.len() - 1],
            median(&sorted(ours.iter().map(value))),
            median(&sorted(theirs.iter().map(value))),
        );
        let target = most.map_or("-".to_owned(), |most| format!("<= {most} x"));
        let verdict = match most {
            Some(most) if middle > most => "MISS",
            Some(_) => "pass",
            None => "",
        };
        self.missed += usize::from(verdict == "MISS");
        println!("  {what:<60} {target:>9} {:>60}  {verdict}", figure.trim());
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

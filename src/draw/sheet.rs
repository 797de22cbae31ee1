//! The sheet that grids are put on: text, rectangles and lines, a title and a caption.

use svg::node::element::{Element, Group, Path, Rectangle, Title};
use svg::{Document, Node};

use super::palette::Colour;

/// Pixels around everything.
pub(super) const MARGIN: i64 = 12;
/// Pixels between grids.
pub(super) const GAP: i64 = 28;
const TITLE_SIZE: i64 = 15;
const CAPTION_SIZE: i64 = 12;
const CAPTION_LINE: i64 = 17;
/// Captions have at least this width to wrap in.
const LEAST_WIDTH: i64 = 640;
/// They are not wider than this, however wide the picture.
const MOST_WIDTH: i64 = 1100;
const FONT: &str = "DejaVu Sans Mono, Menlo, Consolas, monospace";

/// The width of text in a monospaced font of this size, in pixels: 0.602 of the size for each character.
pub(super) fn text_width(characters: usize, size: i64) -> i64 {
    (characters as i64 * size * 602 + 999) / 1000
}

/// How a text is set.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) size: i64,
    /// `start`, `middle` or `end`.
    pub(super) anchor: &'static str,
    pub(super) bold: bool,
    pub(super) fill: &'static str,
}

/// A picture in the making; coordinates are pixels from the upper left corner, below the title.
pub(super) struct Sheet {
    nodes: Group,
    width: i64,
    height: i64,
}

impl Sheet {
    pub(super) fn new() -> Sheet {
        Sheet { nodes: Group::new(), width: 0, height: 0 }
    }

    /// Makes room: content reaches to here.
    pub(super) fn reach(&mut self, x: i64, y: i64) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    /// Filled cells of one colour, as one path.
    pub(super) fn fill(&mut self, colour: Colour, cells: &[(i64, i64)], (width, height): (i64, i64)) {
        let outline: Vec<String> = cells.iter().map(|(x, y)| format!("M{x} {y}h{width}v{height}h-{width}z")).collect();
        self.nodes.append(Path::new().set("d", outline.join("")).set("fill", colour.hex()));
    }

    /// Lines of one width, as one path; `thickness` in halves of a pixel.
    pub(super) fn lines(&mut self, thickness: i64, colour: &'static str, outline: String) {
        let width = format!("{}{}", thickness / 2, if thickness % 2 == 1 { ".5" } else { "" });
        let path = Path::new().set("d", outline).set("fill", "none").set("stroke", colour);
        self.nodes.append(path.set("stroke-linecap", "square").set("stroke-width", width));
    }

    /// Texts of one style: `(x, y of the base line, text)`.
    pub(super) fn texts(&mut self, style: Style, texts: Vec<(i64, i64, String)>) {
        if texts.is_empty() {
            return;
        }
        let mut group = Group::new().set("fill", style.fill).set("font-size", style.size);
        group = group.set("text-anchor", style.anchor);
        if style.bold {
            group = group.set("font-weight", "bold");
        }
        for (x, y, text) in texts {
            group.append(text_node(x, y, text));
        }
        self.nodes.append(group);
    }

    /// The whole picture with a title above and a caption below; the caption's paragraphs are wrapped to the width.
    pub(super) fn finish(self, title: &str, caption: &[String]) -> String {
        let inside = self.width.max(LEAST_WIDTH);
        let title_lines = wrap(title, inside, TITLE_SIZE);
        let caption_lines: Vec<String> =
            caption.iter().flat_map(|text| wrap(text, inside.min(MOST_WIDTH), CAPTION_SIZE)).collect();
        let top = MARGIN + title_lines.len() as i64 * (TITLE_SIZE + 5) + 6;
        let below = top + self.height + 8;
        let width = inside + 2 * MARGIN;
        let height = below + caption_lines.len() as i64 * CAPTION_LINE + MARGIN;
        let line = |lines: Vec<String>, first: i64, step: i64, size: i64, bold: bool| {
            let mut group = Group::new().set("fill", "#000000").set("font-size", size);
            if bold {
                group = group.set("font-weight", "bold");
            }
            for (i, text) in lines.into_iter().enumerate() {
                group.append(text_node(MARGIN, first + i as i64 * step, text));
            }
            group
        };
        let background = Rectangle::new().set("fill", "#ffffff").set("width", width).set("height", height);
        let body = self.nodes.set("transform", format!("translate({MARGIN} {top})"));
        let mut document = Document::new()
            .set("viewBox", format!("0 0 {width} {height}"))
            .set("width", width)
            .set("height", height)
            .set("font-family", FONT)
            .set("role", "img")
            .add(Title::new(title))
            .add(background)
            .add(line(title_lines, MARGIN + TITLE_SIZE, TITLE_SIZE + 5, TITLE_SIZE, true))
            .add(body);
        if !caption_lines.is_empty() {
            document.append(line(caption_lines, below + CAPTION_SIZE, CAPTION_LINE, CAPTION_SIZE, false));
        }
        let mut text = document.to_string();
        text.push('\n');
        text
    }
}

/// A `<text>`, on one line: the crate's own `Text` puts its content on a line of its own.
fn text_node(x: i64, y: i64, text: String) -> Element {
    let mut node = Element::new("text");
    node.assign("x", x);
    node.assign("y", y);
    node.append(svg::node::Text::new(text));
    node
}

/// Lines of at most `width` pixels, broken at spaces; a word that is longer is cut.
fn wrap(text: &str, width: i64, size: i64) -> Vec<String> {
    let most = (width * 1000 / (size * 602)).max(20) as usize;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let used = lines.last().map_or(0, |line| line.chars().count());
            let space = usize::from(used > 0);
            if used + space + word.len() <= most {
                if let Some(line) = lines.last_mut() {
                    line.extend(std::iter::repeat_n(' ', space).chain(word));
                }
                break;
            }
            if used == 0 {
                let rest = word.split_off(most);
                if let Some(line) = lines.last_mut() {
                    line.extend(word);
                }
                word = rest;
            }
            lines.push(String::new());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_are_cut() {
        let text = format!("one two three four five six {}", "x".repeat(45));
        let lines = wrap(&text, 144, 12);
        assert!(lines.iter().all(|line| line.chars().count() <= 20), "{lines:?}");
        assert_eq!(lines[0], "one two three four");
        assert_eq!(lines.join("").replace(' ', ""), text.replace(' ', ""));
    }
}

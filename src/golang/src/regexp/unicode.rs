//! The classes of Unicode that Go knows by name.

/// A set of code points with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// All of them.
    Any,
    /// Those that Unicode has given a meaning.
    Assigned,
    /// The first 128.
    Ascii,
    /// Those of a general category, by its short name.
    Category(&'static str),
    /// Those of a script.
    Script(&'static str),
}

const CATEGORIES: [&str; 38] = [
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "LC", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl",
    "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// Scripts with names of one word. Go stores the others under names that its own lookup never asks for.
const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi \
    Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han \
    Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage \
    Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo \
    Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto \
    Ugaritic Vai Vithkuqi Wancho Yezidi Yi";

/// Long names of categories, as they read without separators.
const ALIASES: [(&str, &str); 42] = [
    ("Casedletter", "LC"),
    ("Closepunctuation", "Pe"),
    ("Cntrl", "Cc"),
    ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"),
    ("Control", "Cc"),
    ("Currencysymbol", "Sc"),
    ("Dashpunctuation", "Pd"),
    ("Decimalnumber", "Nd"),
    ("Digit", "Nd"),
    ("Enclosingmark", "Me"),
    ("Finalpunctuation", "Pf"),
    ("Format", "Cf"),
    ("Initialpunctuation", "Pi"),
    ("Letter", "L"),
    ("Letternumber", "Nl"),
    ("Lineseparator", "Zl"),
    ("Lowercaseletter", "Ll"),
    ("Mark", "M"),
    ("Mathsymbol", "Sm"),
    ("Modifierletter", "Lm"),
    ("Modifiersymbol", "Sk"),
    ("Nonspacingmark", "Mn"),
    ("Number", "N"),
    ("Openpunctuation", "Ps"),
    ("Other", "C"),
    ("Otherletter", "Lo"),
    ("Othernumber", "No"),
    ("Otherpunctuation", "Po"),
    ("Othersymbol", "So"),
    ("Paragraphseparator", "Zp"),
    ("Privateuse", "Co"),
    ("Punct", "P"),
    ("Punctuation", "P"),
    ("Separator", "Z"),
    ("Spaceseparator", "Zs"),
    ("Spacingmark", "Mc"),
    ("Surrogate", "Cs"),
    ("Symbol", "S"),
    ("Titlecaseletter", "Lt"),
    ("Unassigned", "Cn"),
    ("Uppercaseletter", "Lu"),
];

/// Returns the set of a name, ignoring case, spaces, `_` and `-`; `None` if there is none.
pub fn table(name: &str) -> Option<Table> {
    let mut plain: String = name.chars().filter(|sign| !matches!(sign, ' ' | '_' | '-')).collect();
    plain.make_ascii_lowercase();
    if let Some(first) = plain.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    match &*plain {
        "Any" => return Some(Table::Any),
        "Assigned" => return Some(Table::Assigned),
        "Ascii" => return Some(Table::Ascii),
        "Lc" => return Some(Table::Category("LC")),
        _ => {}
    }
    let category = CATEGORIES.iter().find(|known| **known == plain).copied();
    let alias = || ALIASES.iter().find(|(known, _)| *known == plain).map(|(_, category)| *category);
    let script = || SCRIPTS.split_ascii_whitespace().find(|known| *known == plain).map(Table::Script);
    category.or_else(alias).map(Table::Category).or_else(script)
}

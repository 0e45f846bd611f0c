//! The page, and the events that bring it up to date.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::PAGE_PATH;
use super::sections::{Section, sections};
use crate::overview::{Overview, Rates};

/// The one style of the page.
pub(super) const STYLE: &str = include_str!("style.css");
/// The one script of the page: it replaces the sections that changed.
pub(super) const SCRIPT: &str = include_str!("script.js");

/// Returns a document with the style of the console.
fn document(title: &str, head: Markup, body: Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
                (head)
            }
            body { (body) }
        }
    };
    document.into_string()
}

/// Returns the page of a member.
pub fn page(now: &Overview) -> String {
    let name = &now.cluster.told_by;
    let title = if name.is_empty() { "Flotilla".to_owned() } else { format!("{name} – Flotilla") };
    let without_script = html! { noscript { meta http-equiv="refresh" content="10"; } };
    let body = html! {
        a.skip href="#main" { "Skip to the content" }
        header {
            h1 { (title) }
            p { (now.version) }
            p #state role="status" { "This is the state at the time of loading." }
        }
        main #main {
            @for section in sections(now, None) { (framed(&section)) }
        }
        footer { p { "This page is read-only. Times and rates are those of this member alone." } }
        script { (PreEscaped(SCRIPT)) }
    };
    document(&title, without_script, body)
}

/// Returns a section with its headline. Its content can be scrolled sideways, also by keyboard.
fn framed(Section { id, title, content }: &Section) -> Markup {
    let label = format!("{id}-title");
    html! {
        section aria-labelledby=(label) {
            h2 id=(label) { (title) }
            div.wide id=(id) role="region" aria-labelledby=(label) tabindex="0" data-live { (content) }
        }
    }
}

/// Returns an event with the current content of all sections.
pub fn event(now: &Overview, rates: Option<&Rates>) -> String {
    let parts = html! {
        @for Section { id, content, .. } in sections(now, rates) { div id=(id) data-live { (content) } }
    };
    let mut event = String::new();
    for line in parts.into_string().split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event
}

/// Returns the answer to an opened link, which leads to the page at once.
pub fn opened() -> String {
    let go_on = html! { meta http-equiv="refresh" content={ "0; url=" (PAGE_PATH) }; };
    document("Flotilla", go_on, html! { main { h1 { "Flotilla" } p { a href=(PAGE_PATH) { "To the console" } } } })
}

/// Returns the answer to a browser that may not see the page.
pub fn refused(why: &str) -> String {
    let body = html! {
        main {
            h1 { "Flotilla" }
            p { (why) }
            p { "To get a link to the console, run " code { "flotilla console" } " with the kubeconfig of an administrator." }
        }
    };
    document("Flotilla", html! {}, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overview::example;

    #[test]
    fn names_from_clients_are_escaped() {
        let mut now = example();
        now.cluster.members[1].name = "<img src=x onerror=alert(1)>".into();
        let rates = Rates::between(&now, &now);
        for text in [page(&now), event(&now, Some(&rates))] {
            for raw in ["<script>alert", "<b>", "<warning>", "<img"] {
                assert!(!text.contains(raw), "{raw} in {text}");
            }
            for shown in ["&lt;script&gt;alert(1)", "&lt;b&gt;&amp;&quot;x&quot;/", "&lt;img src=x"] {
                assert!(text.contains(shown), "no {shown} in {text}");
            }
        }
        assert!(refused("<i>").contains("<p>&lt;i&gt;</p>"));
    }

    #[test]
    fn a_page_has_landmarks_headlines_and_heads_of_tables() {
        let text = page(&example());
        for part in
            ["<html lang=\"en\">", "<main id=\"main\">", "<header>", "<footer>", "role=\"status\"", "scope=\"col\""]
        {
            assert!(text.contains(part), "no {part}");
        }
        assert_eq!(text.matches("<h1>").count(), 1);
        let sections = text.matches("<section ").count();
        assert!(sections >= 8 && sections == text.matches("<h2 ").count());
        assert!(!text.contains(" style=") && !text.contains(" onclick"), "the policy would refuse it");
        assert_eq!(text.matches("<script>").count(), 1);
    }

    #[test]
    fn an_event_has_every_part_of_the_page() {
        let (now, mut odd) = (example(), example());
        odd.warnings[0].text = "a\nb\r\n\nc".into();
        let text = event(&odd, None);
        assert!(text.ends_with("\n\n") && text.trim_end().lines().all(|line| line.starts_with("data: ")), "{text}");
        for Section { id, .. } in sections(&now, None) {
            assert!(page(&now).contains(&format!("id=\"{id}\"")) && text.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
}

//! Walks a tree of pages in the order of its keys.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::limits::{PAGE_BYTES_MAX, TREE_LEVELS_MAX};
use crate::page::{BUCKET_BYTES, Element, HEADER_BYTES, Header, Page, long};
use crate::{Error, FileLocation};

/// The pages of a file.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) file: File,
    pub(crate) page_size: u64,
    /// The first page that is not used.
    pub(crate) count: u64,
}

impl Pages {
    fn read(&self, number: u64) -> Result<Page, Error> {
        if number < 2 || number >= self.count {
            return Err(Error::page(number, "the file has no such page in use"));
        }
        let (offset, mut head) = (number * self.page_size, [0; HEADER_BYTES]);
        self.file.read_exact_at(&mut head, offset)?;
        let header = Header::read(&head).filter(|header| header.number == number);
        let header = header.ok_or(Error::page(number, "it says to be another page"))?;
        let pages = u64::from(header.overflow) + 1;
        if pages > self.count - number {
            return Err(Error::page(number, "it says to go on behind the last page"));
        }
        if pages * self.page_size > PAGE_BYTES_MAX {
            return Err(Error::page(number, "it says to be larger than any page is"));
        }
        let mut bytes = vec![0; (pages * self.page_size) as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Page::of(number, offset, bytes)
    }
}

/// The root of a bucket's tree.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    /// On a page of its own.
    Page(u64),
    /// Inline in the bucket's value.
    Inline(Page),
}

impl Root {
    /// Parses the value of a bucket.
    pub(crate) fn of(value: &[u8], location: FileLocation) -> Result<Root, Error> {
        let page = long(value, 0).filter(|_| value.len() >= BUCKET_BYTES);
        match page.ok_or(Error::page(location.page, "a bucket is cut off"))? {
            0 => {
                let (inner, offset) = (value[BUCKET_BYTES..].to_vec(), location.offset + BUCKET_BYTES as u64);
                let page = Page::of(location.page, offset, inner)?;
                let wrong = Error::page(location.page, "a bucket within it is a branch");
                if page.is_branch { Err(wrong) } else { Ok(Root::Inline(page)) }
            }
            page => Ok(Root::Page(page)),
        }
    }
}

/// The set of visited pages: a page that occurs twice is an error.
struct VisitedPages(Vec<u64>);

impl VisitedPages {
    fn add(&mut self, page: u64) -> Result<(), Error> {
        let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
        match self.0.get_mut(word) {
            Some(bits) if *bits & bit == 0 => {
                *bits |= bit;
                Ok(())
            }
            _ => Err(Error::page(page, "it stands twice in a tree")),
        }
    }
}

/// Calls `see` for every element of a tree, in the order of the keys.
pub(crate) fn walk(
    pages: &Pages,
    root: &Root,
    mut see: impl FnMut(Element<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let first = match root {
        Root::Inline(page) => return leaf(page, &mut None, &mut see),
        Root::Page(number) => *number,
    };
    let mut seen = VisitedPages(vec![0; (pages.count / 64 + 1) as usize]);
    let mut above: Vec<(Page, usize)> = Vec::new();
    let (mut next, mut last) = (Some(first), None);
    loop {
        let number = match next.take() {
            Some(number) => number,
            None => {
                let Some((page, index)) = above.last_mut() else { return Ok(()) };
                if *index == page.count {
                    above.pop();
                    continue;
                }
                *index += 1;
                page.branch(*index - 1)?.1
            }
        };
        seen.add(number.min(pages.count))?;
        let page = pages.read(number)?;
        if page.is_branch {
            if above.len() == TREE_LEVELS_MAX {
                return Err(Error::page(number, "it lies deeper than any page does"));
            }
            above.push((page, 0));
        } else {
            leaf(&page, &mut last, &mut see)?;
        }
    }
}

/// Calls `see` for the elements of a leaf. `last` is the key before it.
fn leaf(
    page: &Page,
    last: &mut Option<Vec<u8>>,
    see: &mut impl FnMut(Element<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    for index in 0..page.count {
        let element = page.leaf(index)?;
        if last.as_deref().is_some_and(|last| element.key <= last) {
            return Err(Error::page(page.number, "its keys are out of order"));
        }
        match last {
            Some(last) => {
                last.clear();
                last.extend_from_slice(element.key);
            }
            None => *last = Some(element.key.to_vec()),
        }
        see(element)?;
    }
    Ok(())
}

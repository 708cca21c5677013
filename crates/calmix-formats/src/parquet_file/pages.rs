//! The pages of a column, counted: a page of few bytes can claim billions of numbers.

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Pages until they have more numbers than the rows of their row group.
pub(super) struct CountedPages {
    pages: Box<dyn PageReader>,
    /// Numbers that the pages to come may have.
    left: u64,
}

impl CountedPages {
    /// A little more than `numbers` is let through, so that the row whose vector is too long can be named.
    pub(super) fn new(pages: impl PageReader + 'static, numbers: u64) -> Self {
        Self { pages: Box::new(pages), left: numbers.saturating_add(1 << 20) }
    }
}

impl Iterator for CountedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CountedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.pages.get_next_page()? else { return Ok(None) };
        let numbers = u64::from(page.num_values());
        let left = match &page {
            // A dictionary may have words that no row uses, but not more than bytes.
            Page::DictionaryPage { buf, .. } => Some(self.left).filter(|_| numbers <= buf.len() as u64),
            _ => self.left.checked_sub(numbers),
        };
        self.left = left.ok_or_else(|| {
            ParquetError::General(format!("a page of {numbers} numbers, more than its rows can have"))
        })?;
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

//! The pages of a column, counted: a page of few bytes can claim billions of levels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// The most numbers of a page; writers put tens of thousands into one.
pub(super) const LARGEST_PAGE: u64 = 1 << 24;

/// Pages until the budget of numbers is spent.
pub(super) struct CountedPages {
    pages: Box<dyn PageReader>,
    /// Numbers that the pages to come may have. The reader of rows renews it before each block.
    budget: Arc<AtomicU64>,
}

impl CountedPages {
    pub(super) fn new(pages: impl PageReader + 'static, budget: &Arc<AtomicU64>) -> Self {
        Self { pages: Box::new(pages), budget: Arc::clone(budget) }
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
        let left = self.budget.load(Ordering::Relaxed).checked_sub(numbers);
        let Some(left) = left.filter(|_| numbers <= LARGEST_PAGE) else {
            return Err(ParquetError::General(format!(
                "a page of {numbers} numbers, more than its rows can have"
            )));
        };
        self.budget.store(left, Ordering::Relaxed);
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

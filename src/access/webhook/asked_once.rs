//! Questions in progress. Callers with the same question wait for one answer.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::tasks;
use crate::webhooks::answers::QuestionDigest;

/// The questions in progress, by their keys.
#[derive(Debug)]
pub struct AskedOnce<V> {
    asked_max: usize,
    asked: Arc<Mutex<HashMap<QuestionDigest, watch::Receiver<Option<V>>>>>,
}

impl<V: Clone + Send + Sync + 'static> AskedOnce<V> {
    /// Creates room for this many questions at a time.
    pub fn new(asked_max: usize) -> Self {
        Self { asked_max, asked: Arc::default() }
    }

    /// Returns the answer to a question. Runs `ask` unless the question is in progress. `ask` goes on even if the
    /// caller stops waiting. Returns `None` if too many questions are in progress, or if `ask` panics or its runtime
    /// ends.
    pub async fn answer(&self, key: QuestionDigest, ask: impl Future<Output = V> + Send + 'static) -> Option<V> {
        let mut answer = self.begin(key, ask)?;
        let answered = answer.wait_for(Option::is_some).await.ok()?;
        answered.clone()
    }

    fn begin(
        &self,
        key: QuestionDigest,
        ask: impl Future<Output = V> + Send + 'static,
    ) -> Option<watch::Receiver<Option<V>>> {
        let mut asked = self.asked.lock();
        if let Some(answer) = asked.get(&key) {
            return Some(answer.clone());
        }
        if asked.len() >= self.asked_max {
            return None;
        }
        let (tell, answer) = watch::channel(None);
        asked.insert(key, answer.clone());
        let end = QuestionEnd { key, asked: Arc::clone(&self.asked) };
        tasks::detached("question", async move {
            let answer = ask.await;
            drop(end);
            tell.send_replace(Some(answer));
        });
        Some(answer)
    }
}

/// Removes a question when it is answered or can no longer be answered.
struct QuestionEnd<V> {
    key: QuestionDigest,
    asked: Arc<Mutex<HashMap<QuestionDigest, watch::Receiver<Option<V>>>>>,
}

impl<V> Drop for QuestionEnd<V> {
    fn drop(&mut self) {
        self.asked.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn equal_questions_are_asked_once() {
        let (questions, asked, may_answer) =
            (AskedOnce::new(1), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let ask = || {
            let (asked, may_answer) = (Arc::clone(&asked), Arc::clone(&may_answer));
            async move {
                may_answer.notified().await;
                asked.fetch_add(1, Ordering::Relaxed) + 1
            }
        };
        let answered =
            futures_util::future::join3(questions.answer([1; 32], ask()), questions.answer([1; 32], ask()), async {
                assert_eq!(questions.answer([2; 32], ask()).await, None, "there is room for one question");
                may_answer.notify_one();
            });
        let (one, other, ()) = answered.await;
        assert_eq!((one, other), (Some(1), Some(1)));
        may_answer.notify_one();
        assert_eq!(questions.answer([1; 32], ask()).await, Some(2), "answers are not kept here");
    }
}

"use strict";
const state = document.getElementById("state");
const source = new EventSource("/console/events");
source.onmessage = (event) => {
  const update = document.createElement("template");
  update.innerHTML = event.data;
  const chosen = getSelection();
  for (const part of update.content.querySelectorAll("[data-live]")) {
    const shown = document.getElementById(part.id);
    if (!shown || shown.innerHTML === part.innerHTML) continue;
    // A selection that somebody is about to copy stays.
    if (!chosen.isCollapsed && shown.contains(chosen.anchorNode)) continue;
    shown.innerHTML = part.innerHTML;
  }
  state.textContent = "This page is live.";
};
source.onerror = () => {
  state.textContent = source.readyState === EventSource.CLOSED
    ? "This page is not live any more: load it again."
    : "The page connects to the member again.";
};

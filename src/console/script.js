"use strict";
const state = document.getElementById("state");
const source = new EventSource("/console/events");
source.onmessage = (event) => {
  const news = document.createElement("template");
  news.innerHTML = event.data;
  const chosen = getSelection();
  for (const part of news.content.querySelectorAll("[data-live]")) {
    const shown = document.getElementById(part.id);
    if (!shown || shown.innerHTML === part.innerHTML) continue;
    // What somebody is about to copy stays as it is.
    if (!chosen.isCollapsed && shown.contains(chosen.anchorNode)) continue;
    shown.innerHTML = part.innerHTML;
  }
  state.textContent = "Kept up to date.";
};
source.onerror = () => {
  state.textContent = source.readyState === EventSource.CLOSED
    ? "Not kept up to date any more: load the page again."
    : "The member does not answer; trying again.";
};

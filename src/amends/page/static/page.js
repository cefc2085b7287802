// Swaps fragments of the page that the server has rendered again. Without this script the page is a static view.
"use strict";
(() => {
  const address = document.body.dataset.live;
  const state = document.getElementById("live-state");
  const pause = document.getElementById("pause");
  if (!address || !window.EventSource || !state || !pause) return;

  let source = null;
  let waiting = new Map();
  let paused = false;

  const show = (text, name) => {
    if (state.textContent !== text) state.textContent = text;
    state.dataset.state = name;
  };

  // What a person has focused, opened or scrolled stays so.
  const place = (node) => {
    const parts = [];
    for (let at = node; at && at.parentElement && !at.id; at = at.parentElement) {
      parts.unshift([...at.parentElement.children].indexOf(at));
    }
    return parts;
  };
  const find = (root, parts) => parts.reduce((at, index) => at && at.children[index], root);

  const swap = (id, html) => {
    const target = document.getElementById(id);
    if (!target || target.innerHTML === html) return;
    const active = document.activeElement;
    const focused = target.contains(active) && active !== target ? active : null;
    const link = focused && focused.getAttribute("href");
    const path = focused && place(focused);
    const details = [...target.querySelectorAll("details")].map((each) => each.open);
    const scrolled = [...target.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    target.innerHTML = html;
    target.querySelectorAll("details").forEach((each, index) => {
      if (index < details.length) each.open = details[index];
    });
    target.querySelectorAll(".scroll").forEach((each, index) => {
      each.scrollLeft = scrolled[index] || 0;
    });
    if (!focused) return;
    const again = link
      ? [...target.querySelectorAll("a")].find((each) => each.getAttribute("href") === link)
      : find(target, path);
    if (again) again.focus({ preventScroll: true });
  };

  const take = (message) => {
    const { id, html } = JSON.parse(message.data);
    if (paused) waiting.set(id, html);
    else swap(id, html);
  };

  const connect = () => {
    source = new EventSource(address);
    source.onopen = () => { if (!paused) show("Live", "live"); };
    source.onerror = () => { if (!paused) show("Reconnecting", "lost"); };
    source.onmessage = take;
  };

  pause.hidden = false;
  pause.setAttribute("aria-pressed", "false");
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume" : "Pause";
    show(paused ? "Paused" : "Live", paused ? "paused" : "live");
    if (!paused) {
      waiting.forEach((html, id) => swap(id, html));
      waiting = new Map();
    }
  });
  window.addEventListener("pagehide", () => source && source.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
  show("Connecting", "lost");
  connect();
})();

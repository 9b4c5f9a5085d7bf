"use strict";
// A page that is served beside its run: asks for news, shows them, and passes on pause, continue and stop.

(() => {
  const bar = document.querySelector(".watching");
  const say = document.getElementById("run-state");
  const [pause, go, stop, news] = ["pause", "continue", "stop", "news"].map((name) => document.getElementById(`run-${name}`));
  const seen = bar.dataset.version;
  let over = false;
  let refused = "";

  function show(state) {
    bar.dataset.state = state.state;
    const trouble = refused || state.trouble;
    say.textContent = trouble ? `${state.words}: ${trouble}` : state.words;
    pause.hidden = state.state !== "running";
    go.hidden = state.state !== "paused";
    stop.hidden = state.state === "ended";
    if (state.version === seen) return;
    // Who is drawing does not want the page to change under the hand.
    const busy = document.getElementById("try")?.dataset.answer !== undefined;
    news.hidden = !busy;
    if (!busy) location.reload();
  }

  async function ask() {
    if (over) return;
    try {
      const answer = await fetch("state", { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      show(await answer.json());
    } catch {
      bar.dataset.state = "gone";
      say.textContent = "Nobody serves this page any more; what it shows stays.";
      for (const button of [pause, go, stop]) button.hidden = true;
    }
    setTimeout(ask, 1500);
  }

  async function tell(what) {
    for (const button of [pause, go, stop]) button.disabled = true;
    say.textContent = what === "continue" ? "Continuing …" : "Stopping as soon as everything is written …";
    try {
      const answer = await (await fetch(what, { method: "POST" })).json();
      refused = answer.refused || "";
      over = what === "stop" && !refused;
      if (over) say.textContent = answer.words;
    } finally {
      for (const button of [pause, go, stop]) {
        button.disabled = false;
        button.hidden = button.hidden || over;
      }
      if (over) bar.dataset.state = "gone";
    }
  }

  pause.addEventListener("click", () => tell("pause"));
  go.addEventListener("click", () => tell("continue"));
  stop.addEventListener("click", () => tell("stop"));
  news.addEventListener("click", () => location.reload());
  ask();
})();

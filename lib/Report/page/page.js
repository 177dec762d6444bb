"use strict";
// The tree by arrow keys. Everything else on the page works without this.
for (const tree of document.querySelectorAll(".tree")) {
  tree.addEventListener("keydown", (event) => {
    const here = document.activeElement;
    const visible = [...tree.querySelectorAll("summary, .leaf")].filter((e) => e.checkVisibility());
    const at = visible.indexOf(here);
    if (at < 0) return;
    const parent = here.parentElement;
    const move = (to) => visible[to] && visible[to].focus();
    if (event.key === "ArrowDown") move(at + 1);
    else if (event.key === "ArrowUp") move(at - 1);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(visible.length - 1);
    else if (event.key === "ArrowRight" && here.tagName === "SUMMARY") {
      if (parent.open) move(at + 1);
      else parent.open = true;
    } else if (event.key === "ArrowLeft") {
      if (here.tagName === "SUMMARY" && parent.open) parent.open = false;
      else {
        const up = (here.tagName === "SUMMARY" ? parent.parentElement : parent).closest("details");
        if (up && tree.contains(up)) up.querySelector("summary").focus();
      }
    } else return;
    event.preventDefault();
  });
}
// On paper nothing is closed.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));

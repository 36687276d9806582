// A picture that leads to a replay shows it in its own place when it is clicked; without this script it is a link.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.replay");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const frame = document.createElement("iframe");
  frame.className = "replay";
  frame.src = link.href;
  frame.title = link.querySelector("img")?.alt ?? "Replay";
  link.replaceWith(frame);
});

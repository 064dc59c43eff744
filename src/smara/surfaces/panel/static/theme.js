// Loaded before the page is drawn, so that a dark page does not flash white.
const chosen = localStorage.getItem("smara-theme");
if (chosen) document.documentElement.dataset.theme = chosen;

"use strict";
// Words narrow down every list of the page; all of them must be there, in any case.
const words = document.getElementById("words");
const items = [...document.querySelectorAll("[data-item]")].map((each) => [each, each.textContent.toLowerCase()]);
words.addEventListener("input", () => {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const [item, text] of items) {
    item.hidden = !wanted.every((word) => text.includes(word));
    count += !item.hidden;
  }
  document.getElementById("count").textContent = wanted.length ? String(count) : "";
});

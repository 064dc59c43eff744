// Views with names of one's own: addresses, kept in this browser.
"use strict";
{
  const find = (name) => document.querySelector(name);
  const name = `smara-views:${document.body.dataset.project}`;
  const read = () => { try { return JSON.parse(localStorage.getItem(name) ?? "{}"); } catch { return {}; } };
  const draw = () => {
    const list = find("[data-views]");
    if (!list) return;
    find("[data-save-view]").hidden = !location.search;
    for (const old of list.querySelectorAll("[data-own]")) old.remove();
    for (const [label, address] of Object.entries(read())) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      const drop = document.createElement("button");
      item.dataset.own = "";
      link.href = String(address).startsWith("/ui/") ? address : "/ui/browse";
      link.textContent = label;
      drop.type = "button";
      drop.className = "quiet";
      drop.textContent = "×";
      drop.setAttribute("aria-label", `${list.dataset.empty}: ${label}`);
      drop.onclick = () => { const views = read(); delete views[label]; localStorage.setItem(name, JSON.stringify(views)); draw(); };
      item.append(link, drop);
      list.append(item);
    }
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-save-view]")) return;
    event.preventDefault();
    const label = form.querySelector("input").value.trim();
    if (!label) return;
    localStorage.setItem(name, JSON.stringify({ ...read(), [label]: location.pathname + location.search }));
    form.reset();
    draw();
  });
  document.addEventListener("htmx:after:swap", draw);
  draw();
  // Filters are open beside a table, and closed above one.
  for (const each of document.querySelectorAll("details[data-wide]")) each.open = matchMedia("(min-width: 801px)").matches;
}

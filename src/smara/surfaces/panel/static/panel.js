// Keys, the palette, the peek panel, drafts and what htmx must leave alone. Everything works by links and forms without it.
"use strict";
const rows = () => [...document.querySelectorAll(".row")];
const current = () => document.activeElement?.closest(".row");

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(current());
  all[Math.min(all.length - 1, Math.max(0, at + step))].focus();
}

async function peek(row) {
  const panel = document.getElementById("peek");
  if (!row?.dataset.peek) return;
  const answer = await fetch(row.dataset.peek, { headers: { "HX-Request": "true" } });
  panel.innerHTML = await answer.text();
  panel.hidden = false;
}

function press(key, row) {
  const find = (place) => place?.querySelector(`[data-key="${CSS.escape(key)}"]`);
  const target = find(row) ?? find([...document.querySelectorAll("#main :is(.banner, .acts)")].find((each) => !each.closest(".row") && find(each)));
  if (!target) return false;
  target.click();
  return true;
}

let lead = "";
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.key === "Escape") {
    document.getElementById("peek").hidden = true;
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (lead === "g") {
    lead = "";
    document.querySelector(`[data-go="${event.key}"]`)?.click();
    return;
  }
  const acts = {
    g: () => { lead = "g"; setTimeout(() => { lead = ""; }, 1500); },
    j: () => move(1),
    k: () => move(-1),
    p: () => peek(current()),
    n: () => openDialog({ href: `/ui/teach?file=${encodeURIComponent(document.querySelector("[data-file]")?.dataset.file ?? new URLSearchParams(location.search).get("file") ?? "")}` }),
    "/": () => document.getElementById("find").focus(),
    "?": () => document.getElementById("keys").showModal(),
    Enter: () => { const row = current(); if (row?.dataset.href && event.target === row) location.href = row.dataset.href; else return false; },
  };
  const act = acts[event.key];
  if (act) { if (act() !== false) event.preventDefault(); return; }
  if (event.key.length === 1 && press(event.key, current())) event.preventDefault();
});

// A link that is answered beside the page: the form of one memory.
async function openDialog(link) {
  const answer = await fetch(`${link.href}${link.href.includes("?") ? "&" : "?"}peek=1`, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok) { location.assign(link.href); return; }
  const dialog = document.getElementById("dialog");
  dialog.querySelector("div").innerHTML = await answer.text();
  restoreDrafts();
  dialog.showModal();
  dialog.querySelector("textarea")?.focus();
}

// What accepting the row at hand would change is asked for once, when the row is reached.
async function showEffect(row) {
  const place = row?.querySelector("[data-effect-text]");
  if (!place || place.textContent) return;
  place.textContent = "…";
  const answer = await fetch(row.dataset.effect).catch(() => null);
  const tokens = answer?.ok ? (await answer.json()).effect.tokens : null;
  place.textContent = tokens === null ? "" : `${place.dataset.effectText} ${tokens > 0 ? "+" : ""}${tokens} ${place.dataset.tokens}`;
}
document.addEventListener("focusin", (event) => showEffect(event.target.closest("[data-effect]")));

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-dialog]");
  if (link && !event.ctrlKey && !event.metaKey) { event.preventDefault(); openDialog(link); return; }
  const opener = event.target.closest("[data-open]");
  if (opener) document.getElementById(opener.dataset.open).showModal();
  if (event.target.closest("[data-theme-switch]")) {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme ?? (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    localStorage.setItem("smara-theme", root.dataset.theme);
  }
});

function openPalette() {
  const dialog = document.getElementById("palette");
  const words = dialog.querySelector("input");
  const list = dialog.querySelector("ul");
  const draw = () => {
    const wanted = words.value.toLowerCase();
    const pages = [...document.querySelectorAll("[data-go]")].filter((each) => each.textContent.toLowerCase().includes(wanted));
    list.replaceChildren(...pages.map((each) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = each.href;
      link.textContent = each.textContent;
      item.append(link);
      return item;
    }));
  };
  words.value = "";
  words.oninput = draw;
  words.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const first = list.querySelector("a");
    location.href = first ? first.href : `/ui/search?q=${encodeURIComponent(words.value)}`;
  };
  draw();
  dialog.showModal();
}

// A form whose server went away keeps what was typed, also over a reload.
const draftName = (form) => `smara-draft:${form.dataset.draft}`;
function restoreDrafts() {
  for (const form of document.querySelectorAll("form[data-draft]")) {
    const text = form.querySelector("textarea");
    const draft = localStorage.getItem(draftName(form));
    if (draft !== null && draft !== text.value) { text.value = draft; keep(form); }
  }
}

// What a person is filling in is left alone when the page around it changes: its text, and the version that was seen.
const kept = (form) => [form.closest(".row > td") ?? form, form.matches("[data-live]") && document.getElementById("preview")].filter(Boolean);
const keep = (form) => kept(form).forEach((each) => { each.dataset.keep = ""; });
const release = (form) => kept(form).forEach((each) => { delete each.dataset.keep; });
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form?.closest("#main") || form.method !== "post") return;
  keep(form);
  if (form.dataset.draft) localStorage.setItem(draftName(form), form.querySelector("textarea").value);
});
// Show the page that a form led to. On the same page only the content changes, and the row at hand stays.
async function show(answer, text) {
  const place = rows().indexOf(current());
  if (new URL(answer.url).pathname !== location.pathname || !text.includes('id="main"')) { location.assign(answer.url); return; }
  history.replaceState(null, "", answer.url);
  document.getElementById("dialog").close();
  await htmx.swap({ sourceElement: document.getElementById("main"), target: "#main", select: "#main", swap: "outerMorph", text });
  if (place >= 0 && !current()) rows()[Math.min(place, rows().length - 1)]?.focus();
  refresh();
}

// While a form is on its way the page does not change by itself: what it was before must not come after the answer.
let sends = 0;
const refresh = () => htmx.trigger("#main", "changed");
document.addEventListener("htmx:before:request", (event) => {
  if (sends && event.detail.ctx.sourceElement.id === "main") event.preventDefault();
});

async function send(form, submitter) {
  sends += 1;
  htmx.trigger("#main", "htmx:abort");
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, submitter)) }).catch(() => null);
  const text = await answer?.text().catch(() => null);
  sends -= 1;
  if (text === null || text === undefined) {
    say("lost");
  } else if (answer.ok) {
    if (form.dataset.draft) localStorage.removeItem(draftName(form));
    release(form);
    await show(answer, text);
  } else if (answer.headers.get("content-type").startsWith("text/html")) {
    document.open(); document.write(text); document.close();
  } else {
    say("refused", undefined, JSON.parse(text).detail);
    refresh();
  }
}

document.addEventListener("submit", (event) => {
  if (new URL(event.target.action).pathname !== "/ui/act") return;
  event.preventDefault();
  send(event.target, event.submitter);
});

function say(kind, act, detail) {
  const banner = document.querySelector("[data-banner]");
  banner.textContent = [banner.dataset[kind], detail].filter(Boolean).join(" ");
  if (act) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = banner.dataset.load;
    button.onclick = act;
    banner.append(" ", button);
  }
  banner.hidden = false;
}

// A text that would vanish with its row stays, and the page says that there is more.
document.addEventListener("htmx:before:swap", (event) => {
  const [task] = event.detail.tasks;
  if (task?.target?.id !== "main" || task.swapSpec.style === "none") return;
  const places = [...document.querySelectorAll("#main [data-keep]")].map((each) => each.closest("[id]:not(main)")).filter(Boolean);
  if (places.every((each) => task.fragment.querySelector(`#${CSS.escape(each.id)}`))) return;
  event.preventDefault();
  say("new", () => location.reload());
});
document.addEventListener("htmx:after:swap", (event) => {
  restoreDrafts();
  showEffect(current()?.closest("[data-effect]"));
  if (event.target.matches("[data-inline]")) edit(event.target.closest(".row").querySelector("form[data-draft]"));
});

// The text of a row is edited in its place; Esc leaves it as it was.
function edit(form) {
  keep(form);
  form.querySelector("textarea").focus();
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    localStorage.removeItem(draftName(form));
    release(form);
    form.closest(".row").focus();
    refresh();
  });
}

// What a person opened stays open when the page around it changes.
htmx.registerExtension("panel", {
  htmx_before_morph_attr: (element, { attrName }) => !(attrName === "open" && element.matches("details")),
});
restoreDrafts();

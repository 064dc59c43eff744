// The whole code graph: laid out by the server, drawn here by sigma. The search box reaches every node without a mouse.
"use strict";
{
  const atlas = document.getElementById("atlas");
  const part = (name) => atlas.querySelector(`[data-${name}]`);
  const say = (text) => { part("status").textContent = text; };
  const make = (tag, text, facts = {}) => Object.assign(document.createElement(tag), { textContent: text }, facts);
  const hex = (number) => Math.round(255 * number).toString(16).padStart(2, "0");

  // Hues that follow each other are far apart; a dark page gets lighter ones.
  function color(module, light) {
    const hue = (module * 137.508) % 360;
    const channel = (at) => {
      const place = (at + hue / 30) % 12;
      return light - 0.5 * Math.min(light, 1 - light) * Math.max(-1, Math.min(place - 3, 9 - place, 1));
    };
    return `#${hex(channel(0))}${hex(channel(8))}${hex(channel(4))}`;
  }

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function readTheme() {
    const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
    return { ink: style("--ink"), paper: style("--paper"), quiet: isDark ? "#3a3f4a" : "#d5d8de", edge: isDark ? "#2b3038" : "#dcdfe5", strong: style("--warn"), light: isDark ? 0.62 : 0.42 };
  }

  function draw(facts) {
    const label = (node) => facts.names[node] || facts.paths[facts.nodes[node][0]].split("/").pop();
    const symbol = (node) => facts.paths[facts.nodes[node][0]] + (facts.names[node] ? `:${facts.names[node]}` : "");
    const bySymbol = new Map(facts.nodes.map((_, node) => [symbol(node), node]));
    let theme = readTheme();
    let chosen = null;
    let isNear = false;  // from afar one line for all links of two modules says more
    const graph = new graphology.Graph({ type: "directed" });
    const scale = Math.max(1, 5 - Math.log10(facts.nodes.length + 1));  // few nodes are drawn larger than many
    facts.nodes.forEach(([, module, x, y, uses], node) => graph.addNode(node, { x, y: -y, module, size: scale * (1.2 + Math.log2(1 + uses) / 2), label: label(node) }));
    for (let at = 0; at < facts.links.length; at += 2) graph.addDirectedEdge(facts.links[at], facts.links[at + 1]);

    const sigma = new Sigma(graph, part("canvas"), {
      labelFont: "system-ui, sans-serif", labelSize: 12, labelRenderedSizeThreshold: facts.nodes.length < 300 ? 4 : 7, labelColor: { color: theme.ink },
      hideEdgesOnMove: graph.size > 5000, hideLabelsOnMove: true, minCameraRatio: 0.005, maxCameraRatio: 3, stagePadding: 20,
      nodeReducer: (node, data) => {
        const shade = color(data.module, theme.light);
        if (!chosen) return { ...data, color: shade };
        if (Number(node) === chosen.node) return { ...data, color: theme.strong, size: Math.max(8, data.size), forceLabel: true, zIndex: 2 };
        return chosen.reached.has(Number(node)) ? { ...data, color: shade, size: Math.max(4, data.size), zIndex: 1 } : { ...data, color: theme.quiet, label: null };
      },
      edgeReducer: (edge, data) => {
        if (!chosen) return { ...data, color: theme.edge, size: 0.5, hidden: !isNear };
        const isHit = graph.extremities(edge).every((each) => chosen.reached.has(Number(each)) || Number(each) === chosen.node);
        return isHit ? { ...data, color: theme.strong, size: 0.7 } : { ...data, hidden: true };
      },
      defaultDrawNodeHover: (context, data) => {
        if (!data.label) return;
        context.font = "600 12px system-ui, sans-serif";
        context.fillStyle = theme.paper;
        context.strokeStyle = theme.ink;
        context.beginPath();
        context.roundRect(data.x + data.size + 2, data.y - 10, context.measureText(data.label).width + 10, 20, 4);
        context.fill();
        context.stroke();
        context.fillStyle = theme.ink;
        context.fillText(data.label, data.x + data.size + 7, data.y + 4);
      },
      zIndex: true,
    });

    // Under the nodes the islands, above them their names: the largest first, none over another.
    const below = sigma.createCanvasContext("islands", { beforeLayer: "edges" });
    const above = sigma.createCanvasContext("names", { afterLayer: "labels" });
    sigma.resize(true);
    const reach = (axis, sign) => facts.modules.map((each) => each[axis] + sign * (each.radius + 25));
    sigma.setCustomBBox({ x: [Math.min(...reach("x", -1)), Math.max(...reach("x", 1))], y: [-Math.max(...reach("y", 1)), -Math.min(...reach("y", -1))] });
    const roads = new Map();
    for (let at = 0; at < facts.links.length; at += 2) {
      const ends = [facts.nodes[facts.links[at]][1], facts.nodes[facts.links[at + 1]][1]].sort((one, other) => one - other);
      if (ends[0] !== ends[1]) roads.set(ends.join(), { ends, count: (roads.get(ends.join())?.count ?? 0) + 1 });
    }
    const widest = [...roads.values()].sort((one, other) => other.count - one.count).slice(0, 400);
    sigma.getCamera().on("updated", ({ ratio }) => {
      if (isNear === ratio < 0.4) return;
      isNear = !isNear;
      sigma.refresh({ skipIndexation: true });
    });
    const bySize = facts.modules.map((each, number) => ({ ...each, number })).sort((one, other) => other.nodes - one.nodes);
    sigma.on("afterRender", () => {
      const { islands, names } = sigma.getCanvases();
      const { width, height } = sigma.getDimensions();
      const [under, over] = [islands.getContext("2d"), names.getContext("2d")];
      for (const each of [under, over]) each.clearRect(0, 0, width, height);
      over.font = "600 12px system-ui, sans-serif";
      over.textAlign = "center";
      const spot = (number) => sigma.graphToViewport({ x: facts.modules[number].x, y: -facts.modules[number].y });
      under.strokeStyle = theme.ink;
      for (const { ends, count } of isNear || chosen ? [] : widest) {
        const [from, to] = ends.map(spot);
        under.globalAlpha = 0.06 + 0.4 * Math.sqrt(count / widest[0].count);
        under.lineWidth = Math.min(4, 0.5 + Math.log2(count) / 3);
        under.beginPath();
        under.moveTo(from.x, from.y);
        under.lineTo(to.x, to.y);
        under.stroke();
      }
      under.globalAlpha = 1;
      const taken = [];
      for (const { path: folder, number, x, y, radius } of bySize) {
        const path = folder === "." ? "./" : folder;
        const middle = sigma.graphToViewport({ x, y: -y });
        const far = Math.abs(sigma.graphToViewport({ x: x + radius, y: -y }).x - middle.x);
        under.fillStyle = `${color(number, theme.light)}1c`;
        under.beginPath();
        under.arc(middle.x, middle.y, far, 0, 2 * Math.PI);
        under.fill();
        const half = over.measureText(path).width / 2;
        const box = [middle.x - half, middle.y - far - 14, middle.x + half, middle.y - far];
        if (far < 8 || taken.some((each) => box[0] < each[2] && each[0] < box[2] && box[1] < each[3] && each[1] < box[3])) continue;
        taken.push(box);
        over.lineWidth = 3;
        over.strokeStyle = theme.paper;
        over.fillStyle = theme.ink;
        over.strokeText(path, middle.x, middle.y - far - 3);
        over.fillText(path, middle.x, middle.y - far - 3);
      }
    });

    async function choose(node, isMoved) {
      const name = symbol(node);
      const answer = await fetch(`${atlas.dataset.impact}?symbol=${encodeURIComponent(name)}`).catch(() => null);
      const impact = answer?.ok ? (await answer.json()).impact : null;
      const places = (impact?.reached ?? []).map((each) => each.name);
      chosen = { node, reached: new Set(places.map((each) => bySymbol.get(each)).filter((each) => each !== undefined)) };
      const list = make("ul", "", { className: "facet" });
      for (const each of places.slice(0, 60)) {
        const item = make("li", "");
        const link = make("a", "", { href: `${atlas.dataset.page}?symbol=${encodeURIComponent(each)}` });
        link.append(make("code", each));
        item.append(link);
        list.append(item);
      }
      const heading = make("h2", `${atlas.dataset.depends} `);
      heading.append(make("code", name));
      const more = make("a", atlas.dataset.more, { href: `${atlas.dataset.page}?symbol=${encodeURIComponent(name)}` });
      const sum = make("p", impact?.total ? `${impact.total} ${atlas.dataset.places} · ` : `${atlas.dataset.none} `);
      sum.append(more);
      part("found").replaceChildren(heading, sum, list);
      sigma.refresh({ skipIndexation: true });
      if (isMoved) sigma.getCamera().animate({ ...place(node), ratio: 0.25 }, { duration: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 400 });
    }
    const place = (node) => { const { x, y } = sigma.getNodeDisplayData(node); return { x, y }; };
    function clear() {
      chosen = null;
      part("found").replaceChildren();
      sigma.refresh({ skipIndexation: true });
    }

    function match(words) {
      const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
      if (!parts.length) return [];
      const fits = [...bySymbol].filter(([name]) => parts.every((each) => name.toLowerCase().includes(each)));
      return fits.sort((one, other) => facts.nodes[other[1]][4] - facts.nodes[one[1]][4]).slice(0, 12);
    }
    const words = atlas.querySelector("input");
    const showMatches = () => part("matches").replaceChildren(...match(words.value).map(([name, node]) => {
      const item = make("li", "");
      item.append(make("button", name, { type: "button", onclick: () => { part("matches").replaceChildren(); words.value = name; choose(node, true); } }));
      return item;
    }));
    words.addEventListener("input", showMatches);
    atlas.querySelector("form").addEventListener("submit", (event) => {
      const first = match(words.value)[0];
      if (!first) return;
      event.preventDefault();
      part("matches").replaceChildren();
      choose(bySymbol.get(words.value) ?? first[1], true);
    });
    part("zoom").hidden = false;
    part("zoom").addEventListener("click", (event) => {
      const by = Number(event.target.closest("[data-by]")?.dataset.by);
      const camera = sigma.getCamera();
      if (by) camera.animatedZoom(1 / by);
      else if (by === 0) { clear(); camera.animatedReset(); }
    });
    sigma.on("clickNode", ({ node }) => choose(Number(node), false));
    sigma.on("clickStage", clear);
    new MutationObserver(() => {
      theme = readTheme();
      sigma.setSetting("labelColor", { color: theme.ink });
      sigma.refresh();
    }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    sigma.refresh();
    say("");
    part("canvas").dataset.count = String(graph.order);
  }

  // Without WebGL the library fails while it loads, so it is loaded after a look.
  const load = (address) => new Promise((done, failed) => {
    document.head.append(make("script", "", { src: address, onload: done, onerror: failed }));
  });
  async function start() {
    if (!document.createElement("canvas").getContext("webgl2")) { say(atlas.dataset.failed); return; }
    say("…");
    try {
      const answer = await fetch(atlas.dataset.source);
      for (const each of atlas.dataset.scripts.split(" ")) await load(each);
      draw((await answer.json()).graph);
    } catch {
      say(atlas.dataset.failed);
    }
  }
  if (atlas) start();
}

"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filters"), list = document.getElementById("list");
  const PAGE = 25;
  let page = 0, found = [];

  // Everything from the data becomes text nodes: no string is ever read as HTML.
  const make = (tag, className, ...children) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  };
  const shown = (value) => value === null || value === undefined ? "unknown"
    : typeof value === "number" ? String(+value.toPrecision(6))
    : Array.isArray(value) ? "[" + value.map(shown).join(", ") + "]" : String(value);
  const plain = (value) => typeof value === "string" ? value : JSON.stringify(value, null, 1);
  const ending = (text) => text.length > 90 ? "…" + text.slice(-89) : text;
  const completion = (row) => plain(row.inputs.completion ?? "");

  const haystack = (row) => row.haystack ??= [row.id, row.group, row.reason, plain(row.inputs), plain(row.nodes),
    plain(row.evidence)].join("\n").toLowerCase();

  const select = (name, title, values) => {
    const box = make("select", "", ...["", ...values].map((v) => new Option(v === "" ? "all" : v, v)));
    box.name = name;
    return make("label", "", title + " ", box);
  };
  const more = document.getElementById("more-filters");
  for (const name of data.by) {
    more.append(select("by:" + name, name, [...new Set(data.rows.map((r) => r.by[name]))].sort()));
  }
  for (const name of data.nodes) {
    const values = [...new Set(data.rows.map((r) => shown(r.nodes[name][0])))];
    if (values.length > 1 && values.length <= 12) more.append(select("node:" + name, name, values.sort()));
  }

  const orders = {
    row: (a, b) => a.row - b.row,
    low: (a, b) => (a.reward ?? Infinity) - (b.reward ?? Infinity),
    high: (a, b) => (b.reward ?? -Infinity) - (a.reward ?? -Infinity),
    long: (a, b) => completion(b).length - completion(a).length,
  };

  const filter = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const words = (wanted.text || "").toLowerCase().split(/\s+/).filter(Boolean);
    found = data.rows.filter((row) => {
      if (wanted.outcome === "disagree" ? !row.disagrees : wanted.outcome && row.verdict !== wanted.outcome) return false;
      for (const name of data.by) if (wanted["by:" + name] && row.by[name] !== wanted["by:" + name]) return false;
      for (const name of data.nodes) {
        if (wanted["node:" + name] && shown(row.nodes[name][0]) !== wanted["node:" + name]) return false;
      }
      return words.every((w) => haystack(row).includes(w));
    }).sort(orders[wanted.order] || orders.row);
    page = 0;
    draw(words);
  };

  const marked = (text, words) => {
    const spans = document.createDocumentFragment(), lower = text.toLowerCase();
    let at = 0;
    while (words.length && lower.length === text.length) {
      let start = -1, word = "";
      for (const w of words) {
        const i = lower.indexOf(w, at);
        if (i >= 0 && (start < 0 || i < start)) { start = i; word = w; }
      }
      if (start < 0) break;
      spans.append(text.slice(at, start), make("mark", "", text.slice(start, start + word.length)));
      at = start + word.length;
    }
    spans.append(text.slice(at));
    return spans;
  };

  const evidence = (record) => {
    const cell = make("td", "wrap");
    if (record && typeof record === "object" && !Array.isArray(record)) {
      for (const [key, value] of Object.entries(record)) {
        cell.append(make("span", "pair", make("span", "quiet", key), " ", make("code", "", value === null ? "nothing" : plain(value))), " ");
      }
    } else if (record) cell.append(make("code", "", plain(record)));
    return cell;
  };

  const body = (row, words) => {
    const inside = make("div", "body");
    const lines = [["reward", row.reward, row.reason, row.evidence], ...data.nodes.map((n) => [n, ...row.nodes[n]])];
    const why = lines.some((line) => line[2]);
    const rows = lines.map(([name, value, reason, proof]) => make("tr", "", make("th", "", name),
      make("td", "n", shown(value)), ...(why ? [make("td", "wrap", reason || "")] : []), evidence(proof)));
    const heads = ["node", "value", ...(why ? ["reason"] : []), "evidence"];
    const head = make("tr", "", ...heads.map((h) => make("th", h === "value" ? "n" : "", h)));
    inside.append(make("div", "scroll", make("table", "", make("thead", "", head), make("tbody", "", ...rows))));
    inside.append(make("p", "quiet", "group " + row.group + ", row " + row.row));
    for (const [name, value] of Object.entries(row.inputs)) {
      const text = plain(value);
      if (text.length < 80 && !text.includes("\n")) inside.append(make("p", "", make("span", "quiet", name + " "), marked(text, words)));
      else inside.append(make("h3", "", name), make("pre", "", marked(text, words)));
    }
    return inside;
  };

  const item = (row, words, open) => {
    const badge = make("span", "badge " + (row.disagrees ? "bad" : row.verdict), row.reward === null ? "unknown" : shown(row.reward));
    badge.title = row.disagrees ? "disagrees with " + data.label + " = " + row.label : row.verdict;
    const head = make("summary", "", badge, make("span", "id", marked(String(row.id), words)),
      make("span", "peek", row.reward === null ? row.reason : ending(completion(row).replace(/\s+/g, " "))));
    const details = make("details", "", head);
    const fill = () => { if (details.open && details.childElementCount === 1) details.append(body(row, words)); };
    details.addEventListener("toggle", fill);
    if (open) { details.open = true; fill(); }
    return details;
  };

  const draw = (words = [], open = false) => {
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    list.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map((row) => item(row, words, open)));
    document.getElementById("count").textContent = found.length.toLocaleString("en") + " of " +
      data.rows.length.toLocaleString("en") + " rollouts in this page match";
    document.getElementById("place").textContent = "page " + (page + 1) + " of " + pages;
    document.getElementById("back").disabled = page === 0;
    document.getElementById("next").disabled = page >= pages - 1;
  };

  const words = () => form.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  let waiting = 0;
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("back").addEventListener("click", () => { page -= 1; draw(words()); });
  document.getElementById("next").addEventListener("click", () => { page += 1; draw(words()); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-show], [data-row]");
    if (!link) return;
    form.reset();
    if (link.dataset.show) {
      form.outcome.value = link.dataset.show;
      filter();
    } else {
      found = data.rows.filter((row) => row.place === Number(link.dataset.row));
      page = 0;
      draw([], true);
    }
  });
  filter();
})();

"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const findings = $$("details.audit");

  // --- findings: a link opens what it points to; on paper, what is open is printed

  const target = () => {
    try { return document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return null; }
  };
  const follow = () => {
    const details = target()?.closest("details.audit");
    if (!details) return;
    if (details.hidden) clear();
    details.open = true;
    details.scrollIntoView();
    $("summary", details).focus({ preventScroll: true });
  };
  $$("[data-all]").forEach((button) => button.addEventListener("click", () => {
    findings.forEach((details) => { details.open = button.dataset.all === "open"; });
  }));

  // --- commands can be copied

  if (navigator.clipboard) {
    $$(".command").forEach((place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText($("code", place).textContent);
          button.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren($("code", place));
          button.textContent = "Selected";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      place.append(button);
    });
  }

  // --- the rows, of a table or findings themselves: sort, show by verdict and by words

  const table = $("#summary");
  const rows = table ? $$("tbody tr", table) : findings;
  let clear = () => {};
  if (table) {
    const body = $("tbody", table);
    const heads = $$("thead th", table);
    const key = (row, column, type) => {
      const cell = row.cells[column];
      const value = cell.dataset.sort ?? cell.textContent.trim();
      if (type !== "number") return value;
      return value === "inf" ? Infinity : Number(value);
    };
    const order = new Map(rows.map((row, index) => [row, index]));
    const sort = (column, direction) => {
      const type = heads[column].dataset.type;
      const sign = direction === "descending" ? -1 : 1;
      const compare = type === "number"
        ? (a, b) => (a === b ? 0 : a < b ? -1 : 1)
        : new Intl.Collator("en", { numeric: true }).compare;
      const keys = new Map(rows.map((row) => [row, key(row, column, type)]));
      rows.sort((a, b) => sign * compare(keys.get(a), keys.get(b)) || order.get(a) - order.get(b));
      body.append(...rows);
      heads.forEach((head, index) => {
        if (index === column) head.setAttribute("aria-sort", direction);
        else head.removeAttribute("aria-sort");
      });
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const first = head.dataset.first ?? "ascending";
        const second = first === "ascending" ? "descending" : "ascending";
        sort(column, now === first ? second : first);
      });
    });
  }
  if (rows.length) {
    $$(".tools").forEach((tools) => { tools.hidden = false; });
    const filters = $$("[data-filter]");
    const search = $(".search input");
    const words = (row) => (table ? row : $("summary", row)).textContent.toLowerCase();
    const texts = new Map(rows.map((row) => [row, words(row)]));
    const byAnchor = new Map(findings.map((details) => [`#${$("article", details).id}`, details]));
    const finding = (row) => (table ? byAnchor.get($(".id a", row).getAttribute("href")) : row);
    const show = () => {
      const kind = filters.find((button) => button.getAttribute("aria-pressed") === "true").dataset.filter;
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row) => {
        const fits = (kind === "all" || row.dataset.kind === kind)
          && words.every((word) => texts.get(row).includes(word));
        row.hidden = !fits;
        finding(row).hidden = !fits;
        shown += fits;
      });
      $(".shown").textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
      $("#nothing").hidden = shown > 0;
    };
    const press = (kind) => filters.forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.filter === kind));
    });
    clear = () => { press("all"); search.value = ""; show(); };
    filters.forEach((button) => button.addEventListener("click", () => {
      press(button.dataset.filter);
      show();
    }));
    search.addEventListener("input", show);
    $("[data-clear]").addEventListener("click", clear);
    if (search.value) show(); // browsers keep what was typed across a reload
  }

  addEventListener("hashchange", follow);
  follow();
})();

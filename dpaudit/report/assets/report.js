"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const findings = $$("details.audit");

  // --- findings: a link opens what it points to; on paper, what is open is printed

  // A long page holds findings compressed; each is unpacked once, when it is opened first.
  const unpack = async (details) => {
    const packed = $("script.packed", details);
    if (!packed || packed.dataset.busy) return;
    packed.dataset.busy = "yes";
    const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const holder = document.createElement("template");
    holder.innerHTML = await new Response(stream).text();
    copyable(holder.content);
    packed.replaceWith(holder.content);
  };
  findings.forEach((details) => details.addEventListener("toggle", () => {
    if (details.open) unpack(details);
  }));

  const target = () => {
    try { return document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return null; }
  };
  const follow = async () => {
    const details = target()?.closest("details.audit");
    if (!details) return;
    if (details.hidden) clear();
    details.open = true;
    await unpack(details);
    details.scrollIntoView();
    $("summary", details).focus({ preventScroll: true });
  };
  $$("[data-all]").forEach((button) => button.addEventListener("click", () => {
    findings.forEach((details) => { details.open = button.dataset.all === "open"; });
  }));

  // --- commands can be copied

  const copyable = (root) => {
    if (!navigator.clipboard) return;
    $$(".command", root).forEach((place) => {
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
  };
  copyable(document);

  // --- the rows, of tables or findings themselves: sort, show by verdict and by words

  const tables = $$("table.summary");
  const rows = tables.length ? tables.flatMap((table) => $$("tbody tr", table)) : findings;
  let clear = () => {};
  const key = (row, column, type) => {
    const cell = row.cells[column];
    const value = cell.dataset.sort ?? cell.textContent.trim();
    if (type !== "number") return value;
    return value === "inf" ? Infinity : Number(value);
  };
  const sortable = (table) => {
    const body = $("tbody", table);
    const own = $$("tr", body);
    const heads = $$("thead th", table);
    const order = new Map(own.map((row, index) => [row, index]));
    const sort = (column, direction) => {
      const type = heads[column].dataset.type;
      const sign = direction === "descending" ? -1 : 1;
      const compare = type === "number"
        ? (a, b) => (a === b ? 0 : a < b ? -1 : 1)
        : new Intl.Collator("en", { numeric: true }).compare;
      const keys = new Map(own.map((row) => [row, key(row, column, type)]));
      own.sort((a, b) => sign * compare(keys.get(a), keys.get(b)) || order.get(a) - order.get(b));
      body.append(...own);
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
  };
  tables.forEach(sortable);
  if (rows.length) {
    $$(".tools").forEach((tools) => { tools.hidden = false; });
    const filters = $$("[data-filter]");
    const search = $(".search input");
    const words = (row) => (tables.length ? row : $("summary", row)).textContent.toLowerCase();
    const texts = new Map(rows.map((row) => [row, words(row)]));
    const byAnchor = new Map(findings.map((details) => [`#${$("article", details).id}`, details]));
    const finding = (row) => (tables.length ? byAnchor.get($(".id a", row).getAttribute("href")) : row);
    let wasOpen = null; // state of the fold before a search opened it
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
      tables.forEach((table) => {
        const isEmpty = !$$("tbody tr", table).some((row) => !row.hidden);
        table.closest(".scroll").hidden = isEmpty;
        const fold = table.closest("details");
        if (!fold) return;
        fold.hidden = isEmpty;
        const seeks = kind !== "all" || words.length > 0;
        if (seeks && !isEmpty) { wasOpen ??= fold.open; fold.open = true; }
        if (!seeks && wasOpen !== null) { fold.open = wasOpen; wasOpen = null; }
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

  addEventListener("beforeprint", () => {
    $$("details.fold").forEach((fold) => { fold.open = true; });
  });
  addEventListener("hashchange", follow);
  follow();
})();

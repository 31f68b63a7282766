// Adds and removes lines of the invoice form without a request, and shows the amounts of what is
// typed so far, and what is lacking. The server finds both, by the same rules as for the stored
// invoice. Without this script, buttons of the form add and remove lines.

"use strict";

const form = document.querySelector("[data-invoice-form]");
const lines = form.querySelector("[data-lines]");
const totals = form.querySelector("[data-totals]");
const addButton = form.querySelector("[name=add_line]");
const maxLines = Number(form.dataset.maxLines);
const checks = form.querySelector("[data-checks]");
const noTotals = totals.innerHTML;

// Back from the preview leads to the form of this tab, and from elsewhere to its lines.
history.replaceState(history.state, "", form.getAttribute("action"));

// Amounts

const WAIT_MS = 250;
const PREVIEWED = ["quantity", "unit_price", "vat_rate", "tax_category"];
let asked = 0;
let timer;

const field = (line, name) => line.querySelector(`[name$="-${name}"]`);

/** What the amounts depend on, and what is lacking. */
function previewed() {
  const data = new FormData();
  const fields = [...form.elements].filter(
    ({ name, type }) => name && type !== "submit" && !name.startsWith("lines-"),
  );
  for (const line of lines.children) fields.push(...PREVIEWED.map((name) => field(line, name)));
  for (const { name, value, type, checked } of fields) {
    if (type !== "checkbox" || checked) data.append(name, value);
  }
  return data;
}

/** Ask for the amounts. An answer is ignored if there was another question since. */
async function showAmounts() {
  keepLines();
  const number = ++asked;
  let found = { lines: [], totals: "", checks: checks.innerHTML };
  try {
    const answer = await fetch(form.dataset.preview, { method: "POST", body: previewed() });
    if (answer.ok) found = await answer.json();
  } catch {
    // Not reachable: the amounts stay unknown.
  }
  if (number !== asked) return;
  [...lines.children].forEach((line, at) => {
    line.querySelector("[data-line-net]").textContent = found.lines[at] ?? "";
  });
  totals.innerHTML = found.totals || noTotals;
  totals.removeAttribute("aria-busy");
  // A link there may have the focus.
  if (checks.innerHTML !== found.checks) checks.innerHTML = found.checks;
}

/** A category matters if there is no VAT, or if the seller's country marks reduced rates. */
function showCategories() {
  for (const line of lines.children) {
    const category = field(line, "tax_category");
    const hasNoVat = /^[0０]+([.,．，][0０]*)?\s*[%％]?$/.test(field(line, "vat_rate").value.trim());
    category.closest(".field").hidden = !(hasNoVat || category.value || "categories" in form.dataset);
  }
}

function showAmountsSoon() {
  showCategories();
  asked++;
  totals.setAttribute("aria-busy", "true");
  clearTimeout(timer);
  timer = setTimeout(showAmounts, WAIT_MS);
}

// Lines

/** Number the names, ids and headings in the order of the lines. */
function renumber() {
  [...lines.children].forEach((line, at) => {
    for (const element of line.querySelectorAll("*")) {
      for (const name of ["name", "id", "for", "aria-describedby"]) {
        const value = element.getAttribute(name);
        if (value) element.setAttribute(name, value.replace(/lines-(\d+|__prefix__)-/g, `lines-${at}-`));
      }
    }
    for (const number of line.querySelectorAll("[data-number]")) number.textContent = at + 1;
    line.querySelector("[name=remove_line]").value = at;
  });
  form.elements["lines-TOTAL_FORMS"].value = lines.children.length;
  addButton.disabled = lines.children.length >= maxLines;
  showAmountsSoon();
}

const appendLine = () => lines.append(form.querySelector("[data-new-line]").content.cloneNode(true));

function addLine() {
  if (lines.children.length < maxLines) {
    const last = lines.lastElementChild;
    appendLine();
    for (const name of last ? ["vat_rate", "tax_category", "unit"] : []) {
      field(lines.lastElementChild, name).value = field(last, name).value;
    }
    renumber();
  }
  field(lines.lastElementChild, "description").focus();
}

function removeLine(line) {
  const neighbour = line.nextElementSibling ?? line.previousElementSibling;
  line.remove();
  if (neighbour) {
    renumber();
    field(neighbour, "description").focus();
  } else {
    addLine();
  }
}

// After going back, browsers restore what was typed, but not the lines that a script added.

const fieldsOf = (line) => [...line.querySelectorAll("[name^=lines-]")];

function keepLines() {
  const typed = [...lines.children].map((line) => fieldsOf(line).map(({ value }) => value));
  history.replaceState({ lines: typed }, "");
}

// Not every browser lets a page change its entry of the history while it is left.
addEventListener("pagehide", keepLines);

if (history.state?.lines) {
  const typed = history.state.lines;
  while (lines.children.length > typed.length) lines.lastElementChild.remove();
  while (lines.children.length < typed.length) appendLine();
  typed.forEach((values, at) => {
    fieldsOf(lines.children[at]).forEach((input, number) => { input.value = values[number]; });
  });
  renumber();
}

form.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.name === "enter" && document.activeElement?.name === "customer_name") {
    event.preventDefault();
    form.elements.find_customer.click();
  } else if (button?.name === "add_line" || button?.name === "enter") {
    event.preventDefault();
    addLine();
  } else if (button?.name === "remove_line") {
    event.preventDefault();
    removeLine(button.closest("[data-line]"));
  }
});
form.addEventListener("input", showAmountsSoon);

// Customers, suggested while the name is typed. A chosen one is filled in by the server.

const names = form.querySelector("#customers");
const useCustomer = form.querySelector("[data-use-customer]");
const customerName = form.elements.customer_name;
let suggested = {};
let suggestTimer;

async function suggest() {
  const name = customerName.value.trim();
  if (!name) return;
  try {
    const answer = await fetch(`${names.dataset.names}?${new URLSearchParams({ name })}`);
    if (!answer.ok || answer.redirected) return;
    suggested = await answer.json();
    names.replaceChildren(...Object.keys(suggested).map((text) => new Option(text, text)));
  } catch {
    // Not reachable: the button finds the customer.
  }
}

customerName.setAttribute("list", names.id);
customerName.addEventListener("input", () => {
  clearTimeout(suggestTimer);
  const typed = customerName.value;
  if (Object.hasOwn(suggested, typed)) {
    useCustomer.value = suggested[typed];
    useCustomer.click();
  } else {
    suggestTimer = setTimeout(suggest, WAIT_MS);
  }
});

// What is typed is not lost without a question. Buttons send it.

let isTyped = "typed" in form.dataset;
form.addEventListener("input", () => { isTyped = true; });
form.addEventListener("submit", () => { isTyped = false; });
addEventListener("beforeunload", (event) => {
  // Chromium asks nothing on a page that was never touched, and logs an error instead.
  if (isTyped && (navigator.userActivation?.hasBeenActive ?? true)) event.preventDefault();
});

// Also after going back, when the browser restores what was typed.
addEventListener("pageshow", showAmountsSoon);
// A link of a notice leads to a field that may be folded away.
addEventListener("click", (event) => {
  const id = event.target.closest("a[href^='#']")?.hash.slice(1);
  document.getElementById(id)?.closest("details")?.setAttribute("open", "");
});
totals.hidden = false;

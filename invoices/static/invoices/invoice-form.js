// Adds and removes lines of the invoice form without a request, and shows totals while typing.
// Without this script, buttons of the form add and remove lines. The server always computes the
// totals again.
//
// Amounts are exact: a decimal is a whole number (BigInt) and the number of its decimals.

"use strict";

const form = document.querySelector("[data-invoice-form]");
const lines = form.querySelector("[data-lines]");
const totals = form.querySelector("[data-totals]");
const addButton = form.querySelector("[name=add_line]");
const decimalsOf = JSON.parse(form.dataset.decimals);
const maxLines = Number(form.dataset.maxLines);

// Numbers

/** `text` as {whole, decimals}, or null if it is not a number by the server's rule. */
function parse(text) {
  const match = /^([+-]?)(\d*)\.?(\d*)$/.exec(text.trim());
  if (!match || !(match[2] || match[3])) return null;
  const whole = BigInt(match[2] + match[3]);
  return { whole: match[1] === "-" ? -whole : whole, decimals: match[3].length };
}

/** numerator / denominator, rounded half away from zero. */
function rounded(numerator, denominator) {
  const size = numerator < 0n ? -numerator : numerator;
  const result = (2n * size + denominator) / (2n * denominator);
  return numerator < 0n ? -result : result;
}

const power = (decimals) => 10n ** BigInt(decimals);

/** An amount in minor units as the server formats it: −€1,234.50. */
function readable(amount, currency, decimals) {
  const digits = String(amount < 0n ? -amount : amount).padStart(decimals + 1, "0");
  const at = digits.length - decimals;
  const plain = decimals ? `${digits.slice(0, at)}.${digits.slice(at)}` : digits;
  const options = { style: "currency", currency, minimumFractionDigits: decimals };
  // As text, because a float could not hold every number.
  const text = new Intl.NumberFormat(document.documentElement.lang, options).format(plain);
  return amount < 0n ? `\u200e\u2212\u2060${text}` : text;
}

/** A rate without extra zeros: 7, 7.0 and 07 are the same. */
function plainRate({ whole, decimals }) {
  const digits = String(whole).padStart(decimals + 1, "0");
  const at = digits.length - decimals;
  const fraction = digits.slice(at).replace(/0+$/, "");
  return digits.slice(0, at) + (fraction && `.${fraction}`);
}

// Totals

const field = (line, name) => line.querySelector(`[name$="-${name}"]`);

/** A line as {rate, net}; null if it is not complete, undefined if a text is not a number. */
function read(line, decimals) {
  const texts = ["quantity", "unit_price", "vat_rate"].map((name) => field(line, name).value);
  if (texts.some((text) => text.trim() && !parse(text))) return undefined;
  const [quantity, price, rate] = texts.map(parse);
  if (!quantity || !price) return null;
  const net = rounded(
    quantity.whole * price.whole * power(decimals),
    power(quantity.decimals + price.decimals),
  );
  return { rate, net };
}

function showTotals() {
  const currency = form.elements.currency.value;
  const decimals = decimalsOf[currency] ?? 2;
  const write = (amount) => readable(amount, currency, decimals);
  const shares = new Map();
  let known = true;
  for (const line of lines.children) {
    const found = read(line, decimals);
    line.querySelector("[data-line-net]").textContent = found ? write(found.net) : "";
    known &&= found !== undefined;
    if (!found?.rate) continue;
    const name = plainRate(found.rate);
    const share = shares.get(name) ?? { rate: found.rate, net: 0n };
    share.net += found.net;
    shares.set(name, share);
  }
  show(known ? shares : new Map(), known ? write : () => "–");
}

function show(shares, write) {
  for (const old of totals.querySelectorAll("[data-share]")) old.remove();
  let net = 0n;
  let gross = 0n;
  for (const share of sorted(shares)) {
    const vat = rounded(share.net * share.rate.whole, 100n * power(share.rate.decimals));
    const row = form.querySelector("[data-new-share]").content.cloneNode(true);
    row.querySelector("[data-rate]").textContent = plainRate(share.rate);
    row.querySelector("[data-share-net]").textContent = write(share.net);
    row.querySelector("[data-share-vat]").textContent = write(vat);
    totals.lastElementChild.before(row);
    net += share.net;
    gross += share.net + vat;
  }
  totals.querySelector("[data-net]").textContent = write(net);
  totals.querySelector("[data-gross]").textContent = write(gross);
}

const sorted = (shares) =>
  [...shares].sort(([one], [other]) => Number(one) - Number(other)).map(([, share]) => share);

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
  showTotals();
}

function addLine() {
  if (lines.children.length < maxLines) {
    const last = lines.lastElementChild;
    lines.append(form.querySelector("[data-new-line]").content.cloneNode(true));
    if (last) field(lines.lastElementChild, "vat_rate").value = field(last, "vat_rate").value;
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

form.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.name === "add_line" || button?.name === "enter") {
    event.preventDefault();
    addLine();
  } else if (button?.name === "remove_line") {
    event.preventDefault();
    removeLine(button.closest("[data-line]"));
  }
});
form.addEventListener("input", showTotals);
// Also after going back, when the browser restores what was typed.
addEventListener("pageshow", showTotals);
totals.hidden = false;

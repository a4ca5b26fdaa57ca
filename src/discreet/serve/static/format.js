// Numbers, times and texts as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (number) => whole.format(number);

/** A number with this many significant digits. */
export function digits(number, most = 3) {
  if (number === null || number === undefined) return "–";
  if (number !== 0 && Math.abs(number) < 1e-4) return String(Number(number.toPrecision(2))).replace("e-0", "e-");
  return new Intl.NumberFormat("en", { maximumSignificantDigits: most }).format(number);
}

/** An error is rounded up to three digits, so that what is shown still holds. */
export function errorText(error) {
  if (error === null || error === undefined || !Number.isFinite(error)) return "∞";
  return digits(roundedUp(error));
}

export function roundedUp(error) {
  if (!(error > 0)) return error;
  const unit = 10 ** (Math.floor(Math.log10(error)) - 2);
  return Number((Math.ceil(error / unit - 1e-4) * unit).toPrecision(3));
}

/** What is left is rounded down, so that what is shown still fits. */
export function roundedDown(number, most = 3) {
  if (!(number > 0)) return number;
  const unit = 10 ** (Math.floor(Math.log10(number)) - most + 1);
  return Number((Math.floor(number / unit + 1e-12) * unit).toPrecision(most));
}

/** A value is rounded to the digits that its error leaves meaningful. */
export function valueText(value, error) {
  if (value === null || value === undefined) return "unknown";
  if (!(error > 0) || error >= 10) return whole.format(value);
  const places = Math.min(8, 1 + Math.max(0, Math.ceil(-Math.log10(error))));
  return new Intl.NumberFormat("en", { maximumFractionDigits: places }).format(value);
}

export const percent = (share) => `${digits(100 * share, share > 0.99 && share < 1 ? 4 : 3)} %`;

/** A number that nobody counts to. */
const large = new Intl.NumberFormat("en", { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 2 });
export const vast = (number) => large.format(number);

/** 1, 2 or 5 times a power of ten, not below. */
export function nice(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].find((step) => step * power >= number * 0.999) * power;
}

export const when = (text) =>
  new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" }).format(new Date(text));

export const label = (value) => (value === null || value === undefined ? "missing" : String(value));

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

export function bytes(number) {
  return number === null ? "–" : number < 1e9 ? `${count(number / 1e6)} MB` : `${digits(number / 1e9)} GB`;
}

/** Rows for a spreadsheet; a text that would be computed is only shown. */
export function csv(names, rows) {
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

// What a question would cost, shown while somebody types, with the curve of price against error.

import { latest, post, tablePath } from "./api.js";
import { button, byId, el, svg } from "./dom.js";
import { digits, errorText, nice, roundedUp, percent } from "./format.js";

const POINTS = 8;
const HEIGHT = 70;
// A question whose price takes more milliseconds than this gets no curve.
const SLOW = 600;
// An error larger than every table: a plan for it uses only what is known.
const ANY = 1e9;
// The largest error of the slider, in multiples of the smallest error that the budget buys.
const REACH = 400;

/**
 * The live price. `wish()` says what is asked for: {question, error, confidence, joint}; `left()` what is left to pay;
 * `spread(question)` the range of the values of a mean, null where no mean is asked for.
 */
export class Price {
  constructor({ wish, left, spread, said }) {
    Object.assign(this, { wish, left, spread, said });
    this.from = 1;
    this.curve = [];
    this.free = null;
    this.touched = false;
    this.slider = byId("slider");
    this.error = byId("error");
    this.place = byId("price");
    this.slider.addEventListener("input", () => this.chosen(Number(digitsOf(this.errorAt(this.slider.value / 1000)))));
    this.error.addEventListener("input", () => { this.touched = true; this.follow(); this.priced(); });
    new ResizeObserver(() => this.draw()).observe(byId("curve"));
    this.changed = latest((signal) => this.explore(signal), 300);
    this.priced = latest((signal) => this.showPrice(signal), 120);
  }

  errorAt(share) { return this.from * REACH ** share; }
  shareOf(error) { return Math.min(1, Math.max(0, Math.log(error / this.from) / Math.log(REACH))); }

  /** Somebody chose an error. */
  chosen(error) {
    this.touched = true;
    this.error.value = error;
    this.follow();
    this.priced();
  }

  follow() {
    const error = Number(this.error.value);
    if (error > 0) this.slider.value = Math.round(1000 * this.shareOf(error));
    this.slider.setAttribute("aria-valuetext", `± ${errorText(error)}`);
    this.draw();
  }

  plan(body, signal) { return post(`${tablePath()}/plan`, body, { signal }); }

  /** The question is another one: its range, its price, then its curve. */
  async explore(signal) {
    const { question, error, ...rest } = this.wish();
    byId("sql").removeAttribute("aria-invalid");
    this.said("");
    this.curve = [];
    if (!question.trim()) {
      this.draw();
      this.place.textContent = "Type a question to see its price.";
      return;
    }
    const maybe = (body) => this.plan({ question, ...rest, ...body }, signal).catch((problem) => {
      if (problem.name === "AbortError") throw problem;
      return null;
    });
    const left = this.left();
    // The price of a mean is found in steps, so what the whole budget would buy says nothing about it.
    const spread = this.spread(question);
    const best = spread || !(left > 0) ? null : await maybe({ epsilon: left * 0.999 });
    const known = await maybe({ error: ANY });
    this.free = known?.free ? known.error : null;
    const counted = (best && !best.free && best.error) || Math.max(1e-3, (this.free ?? 20) / 20);
    this.from = spread ? spread / 1000 : counted;
    const usual = nice(this.from * (spread ? 10 : 18));
    if (!this.touched) this.error.value = spread ? usual : roundedUp(Math.min(usual, this.free ?? Infinity));
    this.follow();
    const begun = performance.now();
    if (!(await this.showPrice(signal)) || performance.now() - begun > SLOW) return;
    const end = this.free === null ? this.errorAt(1) : Math.min(this.errorAt(1), this.free * 0.999);
    if (end <= this.from) return;
    for (let place = 0; place < POINTS; place++) {
      const each = this.from * (end / this.from) ** (place / (POINTS - 1));
      const plan = await maybe({ error: each });
      if (plan) this.curve.push([each, plan.price.epsilon]);
    }
    this.draw();
  }

  /** Show the price of the current question; returns whether it has one. */
  async showPrice(signal) {
    const wish = this.wish();
    if (!wish.question.trim()) return false;
    if (!(wish.error > 0)) { this.place.textContent = "Say how large the error may be."; return false; }
    const past = () => JSON.stringify(this.wish()) !== JSON.stringify(wish);
    this.place.classList.add("busy");
    try {
      const plan = await this.plan(wish, signal);
      // Of two requests under way the older reply may come last: it is out of date.
      if (past()) return true;
      this.said("");
      this.show(plan, wish);
      return true;
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      if (past()) return false;
      this.place.textContent = problem.status ? "No price yet." : problem.message;
      if (problem.status) this.said(problem.message);
      return false;
    } finally {
      this.place.classList.remove("busy");
    }
  }

  show(plan, wish) {
    const error = `± ${errorText(plan.error)}`;
    const parts = [];
    if (plan.free) parts.push(el("b", { class: "free" }, "free: it is known"), `, ${error}`);
    else {
      const epsilon = el("b", { class: plan.fits ? "paid" : "warning" }, `epsilon ${digits(plan.price.epsilon)}`);
      const share = plan.share > 1 ? `${digits(plan.share, 2)} times` : `${percent(plan.share)} of`;
      parts.push(epsilon, `, ${share} the budget, ${error}`);
      if (!plan.fits) parts.push(el("br"), el("span", { class: "warning" }, "more than is left; allow a larger error"));
    }
    if (plan.note) parts.push(el("br"), el("span", { class: "note" }, plan.note));
    const useful = this.free !== null && this.free < 20 * wish.error;
    if (!plan.free && useful) parts.push(el("br"), this.freeButton({ class: "quiet" }));
    this.place.replaceChildren(...parts);
  }

  /** A button that takes what is known of the question: with this error, or as the last plan said; null if nothing is. */
  freeButton(facts, said = this.free) {
    if (!(said >= 0) || said === null) return null;
    const error = roundedUp(said);
    return button(`Take ± ${errorText(error)}, known for free`, () => this.chosen(error), facts);
  }

  /** Price against error, both by powers of ten; what is known shades the part that is free. */
  draw() {
    const place = byId("curve");
    const [width, height] = [Math.max(120, place.clientWidth), HEIGHT];
    // The middle of the slider's knob does not reach the ends of its track.
    const across = (error) => 8 + (width - 16) * this.shareOf(error);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    const words = (x, y, text, anchor) => svg("text", { x, y, "text-anchor": anchor }, text);
    if (this.free !== null && this.free < this.errorAt(1)) {
      const from = across(this.free);
      picture.append(svg("rect", { x: from, y: 6, width: width - from, height: height - 6, fill: "var(--wash)" }));
      if (width - from > 44) picture.append(words((from + width) / 2, 36, "free", "middle"));
    }
    const paid = this.curve.filter(([, epsilon]) => epsilon > 0);
    if (paid.length > 1) {
      const logs = paid.map(([, epsilon]) => Math.log(epsilon));
      const [low, high] = [Math.min(...logs), Math.max(...logs)];
      const up = (log) => height - 4 - ((height - 22) * (log - low)) / (high - low || 1);
      const points = paid.map(([error], at) => `${across(error)},${up(logs[at])}`).join(" ");
      picture.append(svg("polyline", { points, fill: "none", stroke: "var(--second)", "stroke-width": 2.2 }));
      picture.append(words(8, 11, `epsilon ${digits(paid[0][1], 2)}`, "start"));
    }
    const here = across(Number(this.error.value) || this.from);
    picture.append(svg("line", { x1: here, x2: here, y1: 14, y2: height, stroke: "var(--ours)", "stroke-width": 2 }));
    place.replaceChildren(picture);
  }
}

const digitsOf = (error) => error.toPrecision(2);

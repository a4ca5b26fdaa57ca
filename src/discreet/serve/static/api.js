// The server, as the pages speak to it: JSON, sentences for errors, patience where patience helps.

import { sentence } from "./format.js";

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** What the server said instead of a reply. */
export class Problem extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/**
 * Call the server. What is safe to repeat (reading, or a request with a key) is repeated once if the connection is
 * lost; who comes too often waits and comes again; who is not known is sent to the form for a token.
 */
export async function call(method, path, { body, key, signal } = {}) {
  const headers = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key) headers["idempotency-key"] = key;
  const request = { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) };
  let lost = 0;
  for (let late = 0; ; ) {
    let reply;
    try {
      reply = await fetch(`/v1${path}`, request);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      const safe = method === "GET" || key;
      if (lost++ || !safe) throw new Problem(0, "The server cannot be reached. Try again in a moment.");
      await pause(700);
      continue;
    }
    if (reply.status === 429 && late++ < 3) {
      await pause(1000 * Math.min(10, Number(reply.headers.get("retry-after")) || 1));
      continue;
    }
    if (reply.status === 401) {
      location.assign(`/sign-in?to=${encodeURIComponent(location.pathname)}`);
      await new Promise(() => {}); // The page is left; nothing after this shall be seen.
    }
    const body = await reply.json().catch(() => null);
    if (!reply.ok) throw new Problem(reply.status, said(body));
    return body;
  }
}

export const get = (path, options) => call("GET", path, options);
export const post = (path, body, options) => call("POST", path, { ...options, body });

// The library breaks its lines for a terminal and indents them.
const said = (body) => sentence((body?.detail ?? "The server failed. A retry is safe.").replace(/\n\s+/g, "\n"));

/** The path of the table of this page. */
export const table = document.body.dataset.table;
export const tablePath = (name = table) => `/tables/${encodeURIComponent(name)}`;
export const { who, role } = document.body.dataset;

/** A key that nobody else has; with it a request is safe to repeat. */
export const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

/** Do the last of many calls, after a pause; the earlier ones are given up. */
export function latest(work, wait = 250) {
  let timer;
  let control;
  return (...given) => {
    clearTimeout(timer);
    control?.abort();
    control = new AbortController();
    const { signal } = control;
    timer = setTimeout(async () => {
      try {
        await work(signal, ...given);
      } catch (error) {
        if (error.name !== "AbortError") throw error;
      }
    }, wait);
  };
}

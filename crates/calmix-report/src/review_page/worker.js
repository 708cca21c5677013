// Runs the program of the page in a worker, so that keys are never blocked: it fits the head of a page that learns, and tests an audit.
//
// The program is calmix-live, compiled to WebAssembly for WASI. Of WASI it needs its input and its output; crates/calmix-live says what
// the bytes mean. Each request runs it anew: nothing is left of the one before.
"use strict";

const WORD = 4;
/** The first number of a request. */
const FIT = 0;
const AUDIT = 1;
/** The numbers before the predictions of an answer. */
const HEADER = 6;
/** The numbers of a share of an audit, of twice the size of a word. */
const SHARE = 5;
/** WASI's number for a function that does not exist. */
const NO_SUCH_FUNCTION = 52;

let vectors = null;
let program = null;

function bytesOf(base64) {
  const text = atob(base64);
  return Uint8Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
}

/** Writes words in front of room for so many bytes. */
function bytesOfWords(words, room) {
  const bytes = new Uint8Array(words.length * WORD + room);
  const view = new DataView(bytes.buffer);
  for (const [at, word] of words.entries()) view.setUint32(at * WORD, word, true);
  return bytes;
}

/** Writes a request for a fit to labels, each of which is [row, class, whether it was chosen]. */
function fitRequest({ classes, labels }) {
  const { ids, width, folds, seed } = vectors;
  const ordered = [...labels].sort((a, b) => a[0] - b[0]);
  const low = (number) => number % 2 ** 32;
  const high = (number) => Math.floor(number / 2 ** 32);
  const words = [FIT, ids.length, width, classes, labels.length, folds, ...seed];
  for (const id of ids) words.push(low(id), high(id));
  for (const [row, label, isChosen] of ordered) words.push(row, label, isChosen ? 1 : 0);
  const bytes = bytesOfWords(words, vectors.numbers.length);
  bytes.set(vectors.numbers, words.length * WORD);
  return bytes;
}

/** Writes a request for what an audit shows; each row of the order is [rank, answer]. */
function auditRequest({ limit, delta, shares, order }) {
  const halves = [limit, delta].flatMap((number) => [...new Uint32Array(Float64Array.of(number).buffer)]);
  const words = [AUDIT, shares.length, order.length, ...halves, ...shares, ...order.flat()];
  return bytesOfWords(words, 0);
}

/** Reads what an audit shows of each share. */
function outcomesOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const outcome = (_, share) => {
    const number = (at) => view.getFloat64((share * SHARE + at) * 2 * WORD, true);
    return { rows: number(0), answers: number(1), wrong: number(2), high: number(3), isCertified: number(4) === 1 };
  };
  return Array.from({ length: bytes.length / (SHARE * 2 * WORD) }, outcome);
}

/** Reads the answer of a fit. */
function answerOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const word = (at) => view.getUint32(at * WORD, true);
  const number = (at) => view.getFloat32(at * WORD, true);
  const rows = word(0);
  const column = (read, place) => Array.from({ length: rows }, (_, row) => read(HEADER + place * rows + row));
  return {
    kept: word(1),
    labels: word(2),
    wrong: word(3),
    low: number(4),
    high: number(5),
    classes: column(word, 0),
    confidences: column(number, 1),
    margins: column(number, 2),
  };
}

/** Runs the program on an input; returns its output and the bytes of memory that it took. */
async function run(input) {
  const written = { 1: [], 2: [] };
  let memory = null;
  let read = 0;
  // Buffers are pairs of address and length.
  const buffers = (at, count) => {
    const view = new DataView(memory.buffer);
    const place = (n) => [view.getUint32(at + 2 * n * WORD, true), view.getUint32(at + (2 * n + 1) * WORD, true)];
    return Array.from({ length: count }, (_, n) => new Uint8Array(memory.buffer, ...place(n)));
  };
  const succeed = (place, count) => {
    new DataView(memory.buffer).setUint32(place, count, true);
    return 0;
  };
  const system = {
    fd_read(_, at, count, done) {
      const before = read;
      for (const buffer of buffers(at, count)) {
        const part = input.subarray(read, read + buffer.length);
        buffer.set(part);
        read += part.length;
      }
      return succeed(done, read - before);
    },
    fd_write(file, at, count, done) {
      const parts = buffers(at, count).map((buffer) => buffer.slice());
      written[file].push(...parts);
      return succeed(done, parts.reduce((sum, part) => sum + part.length, 0));
    },
    environ_sizes_get: (count, bytes) => succeed(count, 0) + succeed(bytes, 0),
    environ_get: () => 0,
    proc_exit(code) {
      throw new Error(`it ended with code ${code}`);
    },
  };
  const imports = WebAssembly.Module.imports(program).map(({ name }) => [name, system[name] ?? (() => NO_SUCH_FUNCTION)]);
  const instance = await WebAssembly.instantiate(program, { wasi_snapshot_preview1: Object.fromEntries(imports) });
  memory = instance.exports.memory;
  const bytes = async (file) => new Uint8Array(await new Blob(written[file]).arrayBuffer());
  try {
    instance.exports._start();
  } catch (error) {
    throw new Error(new TextDecoder().decode(await bytes(2)).trim() || error.message);
  }
  return { output: await bytes(1), memory: memory.buffer.byteLength };
}

/** The first message has the program and, for fits, the vectors; each further one is a request. */
async function onMessage({ data }) {
  try {
    if (data.program) {
      if (data.vectors) vectors = { ...data.vectors, numbers: bytesOf(data.numbers) };
      program = await WebAssembly.compile(bytesOf(data.program));
      postMessage({ isReady: true });
      return;
    }
    if (data.audit) {
      const { output } = await run(auditRequest(data.audit));
      postMessage({ outcomes: outcomesOf(output) });
      return;
    }
    const began = performance.now();
    const { output, memory } = await run(fitRequest(data));
    postMessage({ answer: answerOf(output), milliseconds: performance.now() - began, memory });
  } catch (error) {
    postMessage({ problem: error.message });
  }
}

addEventListener("message", onMessage);

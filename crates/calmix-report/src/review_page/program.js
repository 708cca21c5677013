// Starts the program of this page in a worker. Without WebAssembly or workers, the page works as it does without this.
"use strict";

const counted = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/**
 * Returns the worker, which gets the program and what else it needs before the first request. Its blocks stand behind the scripts, so the
 * page must be complete.
 */
function startProgram(needed, onMessage, onProblem) {
  let worker = null;
  try {
    worker = new Worker(URL.createObjectURL(new Blob([element("worker").textContent], { type: "text/javascript" })));
  } catch (error) {
    onProblem(error.message);
    return null;
  }
  worker.addEventListener("error", (event) => onProblem(event.message || "a worker cannot be started"));
  worker.addEventListener("message", ({ data: message }) => {
    if (message.problem) onProblem(message.problem);
    else onMessage(message);
  });
  worker.postMessage({ program: element("program").textContent, ...needed });
  return worker;
}

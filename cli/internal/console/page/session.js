// The token of the console, and requests with it.
//
// The token comes in the fragment of the address, which browsers send to no server, and is kept for this tab alone.

const place = "keelson-console-token";

// takeToken reads the token from the address and removes it from there, so that it is in no history and no screenshot.
export function takeToken() {
  const given = /^#token=([A-Za-z0-9]+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(place, given[1]);
    history.replaceState(null, "", location.pathname + "#/workloads");
  }
}

// Refused is an answer of the console that is no success.
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// request asks the console for a path with parameters, and returns its response.
export async function request(path, parameters, signal) {
  const token = sessionStorage.getItem(place) ?? "";
  const response = await fetch(`${path}?${new URLSearchParams(parameters)}`, {
    headers: { Authorization: `Bearer ${token}` },
    credentials: "omit",
    cache: "no-store",
    signal,
  });
  if (response.ok) {
    return response;
  }
  const said = await response.json().catch(() => ({}));
  throw new Refused(response.status, said.problem ?? `the console answers ${response.status}`);
}

// events calls each(name, data) for the server-sent events of a response, until it ends or breaks off. It is no
// EventSource, since that sends no token.
export async function events(response, each) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) {
      return;
    }
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const event = /^event: (.*)\ndata: (.*)$/.exec(part); // a comment only shows that the stream is alive
      if (event) {
        each(event[1], JSON.parse(event[2]));
      }
    }
  }
}

// The agent's API. Over TCP it wants a token, which the page keeps until its tab is closed.
// A link may carry it behind a # (browsers do not send that part): /ui/#token=…

const KEY = "pleach-token";
const TIMEOUT = 10000;

export class APIError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// takeToken keeps the token of the address, and removes it from what the browser shows.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    setToken(given);
    history.replaceState(null, "", location.pathname + location.search);
  }
}

export const setToken = (token) => sessionStorage.setItem(KEY, token.trim());

// get asks for a route, as in get("status").
export async function get(route) {
  const headers = {}, token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(`../v1/${route}`, { headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(TIMEOUT) });
  } catch {
    throw new APIError(0, "the agent does not answer");
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new APIError(response.status, body.error ?? response.statusText);
  return body;
}

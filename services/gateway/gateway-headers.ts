/**
 * Which header fields pass a gateway. A task is not trusted: it must not see what its clients prove their
 * identity with, and must not set anything that reaches beyond its own answers in a browser.
 */

/** RFC 9110, 7.6.1, and older names: for one connection only. */
const OF_CONNECTION = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['proxy-authentication-info', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
  ...['http2-settings'],
])
/** Headers that prove the identity of a client, or claim its origin. */
const OF_CLIENT = new Set(['authorization', 'cookie', 'cookie2', 'forwarded', 'x-real-ip', 'via'])
/**
 * What a browser keeps for other paths, other hosts of the same domain, or later visits. The pages of all
 * tasks share one origin, and a cookie knows neither ports nor paths.
 */
const OF_BROWSER = new Set([
  ...['set-cookie', 'set-cookie2', 'clear-site-data', 'service-worker-allowed', 'alt-svc'],
  ...['strict-transport-security', 'public-key-pins', 'nel', 'report-to', 'reporting-endpoints'],
  ...['origin-agent-cluster', 'headroom-refusal'],
])
/** A page of a task gets an origin of its own, without cookies, storage and workers. */
const SANDBOX = ['Content-Security-Policy', 'sandbox allow-scripts allow-forms'] as const

/** @param raw names and values in turn, as they arrived @returns the same for the task */
export function headersForTask(raw: readonly string[]): string[] {
  const named = namedByConnection(raw)
  const own = kept(raw, (name) => {
    if (OF_CONNECTION.has(name) || OF_CLIENT.has(name) || named.has(name)) return false
    return !name.startsWith('x-forwarded')
  })
  // A body of unknown length is sent so with every method; otherwise it could be read as another request.
  const isChunked = [...pairsOf(raw)].some(([name]) => name === 'transfer-encoding')
  return isChunked ? [...own, 'Transfer-Encoding', 'chunked'] : own
}

/** @returns the same for the client */
export function headersForClient(raw: readonly string[]): string[] {
  const named = namedByConnection(raw)
  const own = kept(raw, (name) => !OF_CONNECTION.has(name) && !OF_BROWSER.has(name) && !named.has(name))
  return [...own, ...SANDBOX]
}

function kept(raw: readonly string[], isKept: (name: string) => boolean): string[] {
  const fields: string[] = []
  for (const [name, value] of pairsOf(raw))
    if (isKept(name.replaceAll('_', '-'))) fields.push(value[0], value[1])
  return fields
}

/** Fields that the sender wants removed. The length of the body is not one of them. */
function namedByConnection(raw: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>()
  for (const [name, [, value]] of pairsOf(raw))
    if (name === 'connection') for (const each of value.split(',')) names.add(each.trim().toLowerCase())
  for (const name of ['content-length', 'host']) names.delete(name)
  return names
}

/** Some servers read `X_Forwarded_For` as `X-Forwarded-For`. */
function* pairsOf(raw: readonly string[]): Generator<[name: string, field: [string, string]]> {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]]
    yield [name.toLowerCase(), [name, value]]
  }
}

/** Every version of every object of a control plane that keeps its history, in the order of its writes. */
export interface HistoryEvent {
  readonly revision: number
  /** As the API server names it in etcd: `/registry/pods/NAMESPACE/NAME`. */
  readonly key: string
  /** Null: it was deleted. */
  readonly value: unknown
}

const FIRST = '/registry/'
/** After all objects, and no resource of the API server. */
const MARK = '/registry/~read'
const END = '/registry0'

interface Answer {
  readonly result?: { readonly events?: readonly EtcdEvent[] }
}

interface EtcdEvent {
  /** PUT is left out. */
  readonly type?: 'DELETE'
  readonly kv: { readonly key: string; readonly value?: string; readonly mod_revision: string }
}

/** @param isWanted by key: the others are not read */
export async function historyOf(
  etcdUrl: string,
  isWanted: (key: string) => boolean,
): Promise<readonly HistoryEvent[]> {
  await post(etcdUrl, '/v3/kv/put', { key: base64(MARK), value: '' })
  const create_request = { key: base64(FIRST), range_end: base64(END), start_revision: '1' }
  const answer = await post(etcdUrl, '/v3/watch', { create_request })
  const events: HistoryEvent[] = []
  for await (const line of linesOf(answer))
    for (const { type, kv } of (JSON.parse(line) as Answer).result?.events ?? []) {
      const key = Buffer.from(kv.key, 'base64').toString()
      if (key === MARK) return events
      if (!isWanted(key)) continue
      const text = Buffer.from(kv.value ?? '', 'base64').toString()
      const value: unknown = type === 'DELETE' ? null : JSON.parse(text)
      events.push({ revision: Number(kv.mod_revision), key, value })
    }
  throw new Error('etcd ended its answer before the last version')
}

/** The caller may leave before the end: the answer is then cancelled. */
async function* linesOf({ body }: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body ?? []) {
    const lines = `${rest}${decoder.decode(chunk as Uint8Array, { stream: true })}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines.filter((line) => line !== '')
  }
}

async function post(url: string, path: string, body: object): Promise<Response> {
  const answer = await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`etcd: ${path} answered ${answer.status} ${await answer.text()}`)
  return answer
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/**
 * kill -9 right after an acknowledged write, repeatedly: everything acknowledged exists after the restart.
 */
import { expect, it } from 'vitest'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { controllerOn, figure, fillStore, newFolder } from './controller-on.ts'
import { storeOn } from './store-on.ts'

const KILLS = figure('DURABILITY_KILLS', 3)
/** Maximum number of acknowledgements before the kill, so that every write is the last one in some case. */
const MAX_WRITES = 23
const NODE = nodeIdFromName('node-0')

type Json = Readonly<Record<string, unknown>>

/** One writer: its consecutive writes, and the condition on the last acknowledged one. */
interface Writer {
  write(url: string): Promise<void>
  check(url: string): Promise<void>
}

/** Available from the first token. */
let authorization: Readonly<Record<string, string>> = {}

const acknowledged = { count: 0, tasks: new Map<string, string>() }

async function send(method: string, url: string, body?: unknown): Promise<Json | null> {
  const json = body === undefined ? {} : { body: JSON.stringify(body) }
  const headers = { ...authorization, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) }
  const answer = await fetch(url, { method, headers, ...json }).catch(() => null)
  // A response is an acknowledgement once its head has arrived, even if the kill cuts off its body.
  if (answer === null) return null
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`)
  return ((await answer.json().catch(() => null)) as Json | null) ?? {}
}

async function get(url: string): Promise<Json> {
  const answer = await send('GET', url)
  if (answer === null) throw new Error(`GET ${url} is not answered`)
  return answer
}

/** An increasing number: the last sent value may be stored without an acknowledgement. */
function counter(
  put: (url: string, n: number) => Promise<Json | null>,
  read: (url: string) => Promise<unknown>,
): Writer {
  let [sent, known] = [0, 0]
  return {
    async write(url) {
      sent += 1
      if ((await put(url, sent)) === null) return
      known = sent
      acknowledged.count += 1
    },
    async check(url) {
      if (known === 0) return
      const value = Number(await read(url))
      expect(value).toBeGreaterThanOrEqual(known)
      expect(value).toBeLessThanOrEqual(sent)
      known = value
      sent = value
    },
  }
}

function things(
  make: (url: string, name: string) => Promise<string | null>,
  isThere: (url: string, key: string, name: string) => Promise<boolean>,
): Writer {
  let made = 0
  const known = new Map<string, string>()
  return {
    async write(url) {
      const name = `thing-${(made += 1)}`
      const key = await make(url, name)
      if (key === null) return
      known.set(key, name)
      acknowledged.count += 1
    },
    async check(url) {
      for (const [key, name] of known) expect(await isThere(url, key, name), key).toBe(true)
      known.clear()
    },
  }
}

function submissions(): Writer {
  return things(
    async (url, name) => {
      const id = (await send('POST', `${url}/tasks`, { name, vram_mib: 1_000 }))?.['id']
      if (typeof id === 'string') acknowledged.tasks.set(id, name)
      return typeof id === 'string' ? id : null
    },
    async (url, id, name) => (await get(`${url}/tasks/${id}`))['name'] === name,
  )
}

/** @param patched a task that exists from the beginning. */
function writers(patched: string): readonly Writer[] {
  return [
    submissions(),
    submissions(),
    counter(
      (url, n) => send('PUT', `${url}/config`, { reservation_after_seconds: n }),
      async (url) => (await get(`${url}/config`))['reservation_after_seconds'],
    ),
    counter(
      (url, n) => send('PATCH', `${url}/tasks/${patched}`, { labels: { n: String(n) } }),
      async (url) => ((await get(`${url}/tasks/${patched}`))['labels'] as Json)['n'],
    ),
    counter(
      (url, n) => send('PUT', `${url}/nodes/${NODE}/config`, { safety_reserve_mib: n }),
      async (url) => (await get(`${url}/nodes/${NODE}`))['safety_reserve_mib'],
    ),
    things(
      async (url, name) =>
        (await send('POST', `${url}/tokens`, { name, role: 'viewer' })) === null ? null : name,
      async (url, name) =>
        ((await get(`${url}/tokens`))['items'] as readonly Json[]).some((token) => token['name'] === name),
    ),
    things(
      async (url, name) =>
        (await send('PUT', `${url}/groups/${name}`, { node_ids: [] })) === null ? null : name,
      async (url, name) => (await get(`${url}/groups/${name}`))['id'] === name,
    ),
  ]
}

it(
  `${KILLS} times kill -9 right after an acknowledged write: no acknowledged write is lost`,
  async () => {
    const data = newFolder()
    const store = await storeOn(data)
    await fillStore(data, { nodes: 1, openTasks: 10 }, store.open())
    const controller = controllerOn(data, store.env)
    await controller.start()
    const patched = String(
      (await send('POST', `${controller.url()}/tasks`, { name: 'patched', vram_mib: 1_000 }))?.['id'],
    )
    const token = await send('POST', `${controller.url()}/tokens`, { name: 'tester', role: 'admin' })
    authorization = { Authorization: `Bearer ${String(token?.['secret'])}` }
    const all = writers(patched)
    for (let kill = 0; kill < KILLS; kill++) {
      const until = acknowledged.count + 1 + ((kill * 7) % MAX_WRITES)
      let isKilled = false
      const url = controller.url()
      const loop = async (writer: Writer): Promise<void> => {
        while (!isKilled) {
          await writer.write(url)
          if (!isKilled && acknowledged.count >= until) {
            isKilled = true
            controller.member.signal('SIGKILL')
          }
        }
      }
      await Promise.all(all.map(loop))
      await controller.member.end()
      await controller.start()
      for (const writer of all) await writer.check(controller.url())
    }
    for (const [id, name] of acknowledged.tasks)
      expect(await get(`${controller.url()}/tasks/${id}`)).toMatchObject({ name })
    await controller.member.end('SIGTERM')
    const verdict = await store.verify()
    console.log(
      `${KILLS} kills on ${store.name}: ${acknowledged.count} writes acknowledged, ` +
        `${acknowledged.tasks.size} of them tasks, none lost; ${verdict.events} events`,
    )
    expect(verdict.problems).toEqual([])
  },
  60_000 + KILLS * 15_000,
)

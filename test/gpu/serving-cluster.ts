/**
 * Serving on GPU 0 with a complete cluster: a PyTorch program whose hooks move its data, compared with a
 * plain copy between VRAM and pinned memory; and PyTorch servers that are unaware of Headroom, share too
 * little VRAM, and are woken by requests.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Mib } from '../../protocol/units.ts'
import { freePort } from '../support/free-port.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import type { Gpu } from './cluster.ts'
import { folderForTasks, isOver, LIVE_STORE, NODE, PYTORCH_CONTEXT_MIB, USABLE_MIB } from './cluster.ts'
import { expect, say } from './say.ts'

const HOOKED_MIB: Mib = 16_384
/** Of all rounds but the first, which also pins the host memory. */
const ROUNDS = 5
const LEAST_SHARE = 0.8
const CLIENT = join(import.meta.dirname, '../../clients/python/src')
const WITHIN_MS = 120_000

interface TaskView {
  readonly id: string
  readonly state: string
  readonly residency: string | null
  readonly end_reason: string | null
}

interface Note {
  readonly ready?: boolean
  readonly plain_out?: number
  readonly plain_in?: number
  readonly hook?: 'suspend' | 'resume'
  readonly ms?: number
  readonly free_mib?: number
}

const ARENA = '24Gi'
/** The first driver with custom storage. */
const ARENA_DRIVER = 615

/** `arena`: the driver's method through the swap arena. */
type Method = 'hooks' | 'driver' | 'arena'

/** Swap-out and swap-in by each method, as the server reports them, of the same program. */
export async function moveByHooks({ physicalMib, driver }: Gpu): Promise<void> {
  const server = await onServer([], async (cluster, folder) => {
    for (const method of ['hooks', 'driver'] as const) await moveBy(method, cluster, folder)
  })
  const fallbacks = linesWith('hook', server)
  expect(fallbacks.length === 0, `no hook failed on ${physicalMib} MiB${fallbacks.join('; ')}`)
  if (Number.parseInt(driver) < ARENA_DRIVER)
    return say(`arena: skipped: driver ${driver} is older than ${ARENA_DRIVER}`)
  const arena = await onServer(['--swap-arena', ARENA], (cluster, folder) => moveBy('arena', cluster, folder))
  const refused = linesWith('swap arena', arena)
  expect(refused.length === 0, `the arena was used${refused.join('; ')}`)
}

async function onServer(
  options: readonly string[],
  work: (cluster: LiveCluster, folder: string) => Promise<void>,
): Promise<{ readonly output: string }> {
  const cluster = await LiveCluster.start(LIVE_STORE)
  try {
    await cluster.send('PUT', '/config', {
      default_vram_overcommit_percent: 100,
      idle_swap_out_seconds: 1,
      eager_swap_in_seconds: null,
      swap_in_probe_seconds: 86_400,
      heartbeat_seconds: 1,
    })
    const server = await cluster.startNvidiaServer(NODE, ...options)
    await work(cluster, folderForTasks('headroom-gpu-hooks-'))
    return server
  } finally {
    await cluster.end()
  }
}

function linesWith(word: string, { output }: { readonly output: string }): readonly string[] {
  return output.split('\n').filter((line) => line.includes(word))
}

async function moveBy(method: Method, cluster: LiveCluster, folder: string): Promise<void> {
  const file = join(folder, method)
  const { id } = await cluster.send<TaskView>('POST', '/tasks', {
    name: `by-${method}`,
    vram_mib: HOOKED_MIB + PYTORCH_CONTEXT_MIB,
    swap_method: method === 'hooks' ? 'hooks' : 'driver',
    env: { PYTHONPATH: CLIENT },
    command: ['/usr/bin/env', 'python3', join(import.meta.dirname, 'hooked.py'), String(HOOKED_MIB), file],
  })
  const notes = (): readonly Note[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as Note)
      : []
  await until(`by-${method} is ready`, () => notes().some(({ ready }) => ready === true), WITHIN_MS)
  const took = { out: [] as number[], in: [] as number[] }
  for (let round = 0; round < (method === 'driver' ? 2 : ROUNDS + 1); round++) {
    took.out.push(await move(cluster, id, 'out'))
    took.in.push(await move(cluster, id, 'in'))
  }
  reportMoves(method, took, notes())
  writeFileSync(`${file}.end`, '')
  await until(`by-${method} has ended`, async () => isOver(await cluster.get(`/tasks/${id}`)), WITHIN_MS)
  const { state, end_reason } = await cluster.get<TaskView>(`/tasks/${id}`)
  expect(state === 'completed', `by-${method} finds its data unchanged (${state}, ${end_reason ?? 'exit 0'})`)
}

/** @param took milliseconds of each round */
function reportMoves(
  method: Method,
  took: { readonly out: readonly number[]; readonly in: readonly number[] },
  notes: readonly Note[],
): void {
  const plain = notes.find(({ plain_out }) => plain_out !== undefined)
  const said = (hook: Note['hook']): number[] =>
    notes.flatMap((note) => (note.hook === hook && note.ms !== undefined ? [note.ms] : []))
  for (const direction of ['out', 'in'] as const) {
    const rate = (direction === 'out' ? plain?.plain_out : plain?.plain_in) ?? 0
    const plainMs = (HOOKED_MIB / rate) * 1000
    const [first = 0, ...warm] = took[direction]
    const warmMs = median(warm)
    const inHook = said(direction === 'out' ? 'suspend' : 'resume')
    const hooked = inHook.length === 0 ? '' : ` (in the hook ${inHook.map(Math.round).join(', ')})`
    const share = plainMs / warmMs
    const times = `first ${Math.round(first)} ms, then ${Math.round(warmMs)} ms${hooked}`
    say(`${method} ${direction}, ${HOOKED_MIB} MiB: ${times}`)
    say(`  a plain copy at ${rate} MiB/s takes ${Math.round(plainMs)} ms: ${share.toFixed(2)} of its speed`)
    if (method === 'hooks') expect(share >= LEAST_SHARE, `that is at least ${LEAST_SHARE}`)
  }
}

/** Milliseconds between the two events of the server. */
async function move(cluster: LiveCluster, id: string, direction: 'out' | 'in'): Promise<number> {
  const wanted = direction === 'out' ? 'swapped_out' : 'resident'
  await until(
    `it may be swapped ${direction}`,
    async () => {
      try {
        await cluster.send('POST', `/tasks/${id}/swap-${direction}`)
        return true
      } catch {
        return false
      }
    },
    WITHIN_MS,
  )
  const began = performance.now()
  while ((await cluster.get<TaskView>(`/tasks/${id}`)).residency !== wanted) {
    if (performance.now() - began > WITHIN_MS) throw new Error(`it is not ${wanted}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return performance.now() - began
}

const SERVERS = 3
const SERVER_MIB: Mib = 9_000
const REQUESTS = 12

/** Unmodified servers: each request is answered, and what it computes depends on data that was swapped. */
export async function wakeServers({ physicalMib }: Gpu): Promise<void> {
  const cluster = await LiveCluster.start(LIVE_STORE)
  try {
    await cluster.send('PUT', '/config', {
      default_vram_overcommit_percent: 100,
      safety_reserve_mib: physicalMib - USABLE_MIB,
      idle_swap_out_seconds: 2,
      heartbeat_seconds: 1,
    })
    await cluster.startNvidiaServer(NODE)
    const ports: number[] = []
    const expected = new Map<number, string>()
    for (let i = 0; i < SERVERS; i++) {
      const port = await freePort()
      ports.push(port)
      await cluster.send('POST', '/tasks', {
        name: `server-${i}`,
        vram_mib: SERVER_MIB,
        ports: [{ name: 'api', target: port, protocol: 'http' }],
        command: [
          '/usr/bin/env',
          'python3',
          join(import.meta.dirname, 'model-server.py'),
          String(SERVER_MIB - PYTORCH_CONTEXT_MIB),
          String(port),
        ],
      })
      await until(
        `server ${i} answers`,
        async () => {
          const answer = await ask(port).catch(() => null)
          if (answer !== null) expected.set(port, answer)
          return answer !== null
        },
        WITHIN_MS,
      )
    }
    const times: number[] = []
    for (let i = 0; i < REQUESTS; i++) {
      const port = ports[i % SERVERS] ?? 0
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      const began = performance.now()
      const answer = await ask(port)
      times.push(performance.now() - began)
      if (answer !== expected.get(port)) throw new Error(`server on ${port} answered ${answer}`)
    }
    const { items } = await cluster.get<{ items: readonly { swap_outs: number }[] }>(
      '/tasks?state=all&limit=50',
    )
    const swaps = items.reduce((sum, { swap_outs }) => sum + swap_outs, 0)
    const sorted = [...times].sort((a, b) => a - b)
    say(`requests took ${times.map(Math.round).join(', ')} ms`)
    expect(
      swaps >= REQUESTS - SERVERS,
      `${REQUESTS} requests to ${SERVERS} × ${SERVER_MIB} MiB in ${USABLE_MIB} MiB are answered, after ` +
        `${swaps} swap-outs; p50 ${Math.round(median(times))} ms, most ${Math.round(sorted.at(-1) ?? 0)} ms`,
    )
  } finally {
    await cluster.end()
  }
}

async function ask(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(WITHIN_MS) })
  return (await answer.text()).trim()
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

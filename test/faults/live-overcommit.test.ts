/**
 * The same scenario in the simulator and on real processes: the production controller must make equal
 * decisions in the same order. Tasks are `headroom work` under real servers; the test plays the router of
 * requests to stopped tasks, at the times of the scenario.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { loadScenario } from '../../simulator/scenario/load.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const FILE = 'scenarios/live-overcommit.scenario.yaml'
const ROOT = join(import.meta.dirname, '../..')
const TIMEOUT_MS = 120_000

interface Happened {
  readonly seq: number
  readonly kind: string
  readonly task: string | null
  readonly node: string | null
  readonly data: Readonly<Record<string, unknown>>
}

let cluster: LiveCluster | null = null
afterAll(() => cluster?.end())

it.skipIf(whyNoNatsServer() !== null)(
  'Real processes are overcommitted, stopped and resumed by the decisions of the simulation',
  async () => {
    const { scenario } = loadScenario(FILE)
    const expected = await simulated()
    // The comparison is meaningful: tasks wait, are swapped out and return.
    expect(expected.filter((each) => each.startsWith('swapping_out')).length).toBeGreaterThan(1)
    expect(expected.filter((each) => each.startsWith('swapping_in')).length).toBeGreaterThan(1)

    cluster = await LiveCluster.start()
    await cluster.send('PUT', '/config', { ...scenario.config, heartbeat_seconds: 1 })
    for (const node of scenario.nodes) await cluster.startServer(node.name, inventoryOf(node))
    const stops = await playLive(cluster, scenario)
    const live = await decisionsOf(cluster)
    expect(live).toEqual(expected)
    expect(stops.sort((a, b) => (a < b ? -1 : 1))).toEqual(['first-a stopped', 'first-b stopped'])
  },
  TIMEOUT_MS,
)

async function simulated(): Promise<readonly string[]> {
  const out = join(temporaryFolder(), 'run')
  const { code, stderr } = await headroom(['sim', 'run', FILE, '--out', out])
  if (code !== 0) throw new Error(stderr)
  const events = readFileSync(join(out, 'journal.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Happened)
  return decisionsIn(events, (id) => id)
}

async function decisionsOf(live: LiveCluster): Promise<readonly string[]> {
  const events: Happened[] = []
  for (let after: number | null = 0; after !== null;) {
    const page: {
      readonly items: readonly (Happened & { readonly task_id?: string; readonly node_id?: string })[]
      readonly next_after: number
    } = await live.get(`/events?after=${after}&limit=200`)
    events.push(
      ...page.items.map((item) => ({
        ...item,
        task: item.task_id ?? item.task ?? null,
        node: item.node_id ?? item.node ?? null,
      })),
    )
    after = page.items.length === 0 ? null : page.next_after
  }
  const { items } = await live.get<{
    readonly items: readonly { readonly id: string; readonly name: string }[]
  }>('/tasks?state=all&limit=200')
  const names = new Map(items.map(({ id, name }) => [id, name]))
  return decisionsIn(events, (id) => names.get(id) ?? id)
}

/** The decisions of the controller: the placement of each task, swap-outs and returns. */
function decisionsIn(events: readonly Happened[], nameOf: (taskId: string) => string): readonly string[] {
  return events.flatMap(({ kind, task, node, data }) => {
    const what =
      kind === 'task_placed'
        ? `placed ${String(data['when'])}`
        : kind === 'task_residency'
          ? String(data['residency'])
          : ''
    return /^(placed|swapping_)/.test(what) ? [`${what} ${nameOf(task ?? '')} on ${node}`] : []
  })
}

function inventoryOf({ gpu, gpuCount }: Scenario['nodes'][number]): string {
  const { outMibPerS, inMibPerS, outFixedMs, inFixedMs } = gpu.swap
  const swap = {
    out_mib_per_s: outMibPerS,
    in_mib_per_s: inMibPerS,
    out_fixed_ms: outFixedMs,
    in_fixed_ms: inFixedMs,
  }
  return JSON.stringify({
    gpus: Array.from({ length: gpuCount }, () => ({ model: gpu.model, vram_mib: gpu.vramMib, swap })),
  })
}

/**
 * Submits each task at its time, signals new work to stopped tasks, and waits for all to end. Returns the
 * tasks that were seen stopped.
 */
async function playLive(live: LiveCluster, scenario: Scenario): Promise<string[]> {
  const startedAt = performance.now()
  const reach = (ms: number): Promise<void> =>
    new Promise((resolve) => setTimeout(resolve, Math.max(0, startedAt + ms - performance.now())))
  const stopped: string[] = []
  await Promise.all(
    scenario.workload.map(async (item) => {
      if (item.kind !== 'task' || item.work.kind !== 'phases')
        throw new Error(`${FILE}: tasks with phases only`)
      const { request, atMs } = item
      const { phases } = item.work
      const socket = live.path(`${request.id}.socket`)
      const steps = phases.flatMap(([busyMs, idleMs]) => [
        `busy=${busyMs}ms`,
        ...(idleMs > 0 ? [`idle=${idleMs}ms`] : []),
      ])
      const work = [
        process.execPath,
        '--import',
        join(ROOT, 'cli/require-node.mjs'),
        join(ROOT, 'cli/main.ts'),
        'work',
        ...steps,
      ]
      const command = ['sh', '-c', 'echo $HEADROOM_SOCKET > "$0"; exec "$@"', socket, ...work]
      await reach(atMs)
      const { id } = await live.send<{ readonly id: string }>('POST', '/tasks', {
        name: request.id,
        vram_mib: request.vramMib,
        priority: request.priority,
        command,
      })
      await until(
        `${request.id} has started`,
        () => existsSync(socket) && readFileSync(socket, 'utf8') !== '',
      )
      let at = atMs
      for (const [busyMs, idleMs] of phases.slice(0, -1)) {
        at += busyMs + idleMs
        await reach(at)
        const { residency } = await live.get<{ readonly residency: string }>(`/tasks/${id}`)
        if (residency !== 'swapped_out') continue
        if (statesOf(id).every((state) => state === 'T')) stopped.push(`${request.id} stopped`)
        createConnection(readFileSync(socket, 'utf8').trim()).end('{"want": true}\n')
      }
      await until(
        `${request.id} is over`,
        async () => (await live.get<{ readonly state: string }>(`/tasks/${id}`)).state === 'completed',
        60_000,
      )
    }),
  )
  return stopped
}

/** The processes of a task in any namespace, without its guard. */
function statesOf(taskId: string): readonly string[] {
  const states = readdirSync('/proc').flatMap((pid) => {
    try {
      const isOfTask =
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HEADROOM_TASK_ID=${taskId}`)
      return isOfTask ? [/^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? ''] : []
    } catch {
      return []
    }
  })
  if (states.length === 0) throw new Error(`no process of task ${taskId}`)
  return states
}
